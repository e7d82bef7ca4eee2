// SPDX-License-Identifier: MIT
// Memory besides files over time, from the recorder's samples.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "formats/oplog/held_memory.h"
#include "formats/oplog/tables.h"
#include "formats/raw/record.h"

namespace reprise {

class RawHeldMemory {
public:
    /// `time`: of the log, ns.
    void see(const raw_memory& record, int64_t time);
    /// The process's last thread ended.
    void ended(uint32_t pid, int64_t time);
    /// Of processes in the table; what a number stood for later belongs to the last one that had it.
    HeldMemories of(const Tables& tables) const;

private:
    std::map<uint32_t, std::vector<HeldMemory>> by_pid_;
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Which rank of a job each process of a recording is, as launchers' variables and the job's own marks say.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "formats/oplog/tables.h"
#include "formats/raw/log.h"

namespace reprise {

class RawRanks {
public:
    /// Of the program that `process` runs.
    void see(const raw_rank& record, ProcessId process);
    /// Marks that a job sets itself: "reprise.rank", "reprise.world".
    void mark(ProcessId process, std::string_view name, int64_t number);
    /// States them in the header: the rank of each process, or, of a recording of one rank, that rank.
    void write(Header& header, const Tables& tables) const;

private:
    static constexpr uint32_t kMost = 1U << 24;
    std::map<ProcessId, uint32_t> ranks_;
    uint32_t world_ = 0;
    std::string source_, job_;
};

}  // namespace reprise

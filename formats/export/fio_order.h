// SPDX-License-Identifier: MIT
// Files that one task writes and another then reads. fio's jobs do not wait for each other.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/export/fio_names.h"
#include "formats/oplog/oplog.h"

namespace reprise {

class FioOrder {
public:
    /// Data of a file, by its number in FioNames, read or written by a task that begins to at `begin`.
    void see(uint32_t name, TaskId task, bool writes, int64_t begin);
    /// One sentence about such files; empty where there is none.
    std::string note(const FioNames& names) const;

private:
    struct Use {
        TaskId task = 0;  // 0: none
        int64_t time = 0;
    };
    /// The first writes and the last reads, of two tasks each: if any task reads after another wrote, one of these
    /// does.
    struct Uses {
        std::array<Use, 2> first_writes, last_reads;
        bool passes() const;
    };
    std::vector<Uses> uses_;  // by name
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Holes of files as they are when a job opens them: it may fill or remove them before the recording ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/raw/log.h"
#include "formats/raw/record.h"

namespace reprise {

/// A file that had fewer blocks than its size needs when it was opened, and where to find it.
struct SparseOpen {
    pid_t pid = 0, tid = 0;
    raw_fd file{};
    int directory = 0;  // the path is relative to that descriptor; AT_FDCWD: to the current directory
    std::string path;   // empty: only the descriptor leads there
};

/// Adds what the record tells of such files.
void note_sparse(const raw_head& record, std::vector<SparseOpen>& to);

class EarlyHoles {
public:
    /// Asks once for the holes of each of these files, at most kMost in all, and empties the list. RAW_HOLES of each.
    void look(std::vector<SparseOpen>& files, RawWriter& to);

private:
    static constexpr auto kMost = std::chrono::seconds(2);  // a look costs microseconds; milliseconds over a network
    std::set<std::pair<uint64_t, uint64_t>> looked_;        // device and inode
    std::chrono::steady_clock::duration spent_{};
};

}  // namespace reprise

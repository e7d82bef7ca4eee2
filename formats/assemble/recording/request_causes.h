// SPDX-License-Identifier: MIT
// What the job knew when it made an asynchronous request: which results of its ring it had taken, and which request had
// read what it writes.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

/// Results of rings, by the rings' own counts. These go on where a recording began late, and begin at 0 again after
/// 2^32.
class TakenResults {
public:
    /// Op `op` of the task reports the result with which the ring had been given `completed` in all.
    void posted(uint64_t ring, uint32_t completed, TaskId task, uint64_t op);
    /// The job has taken so many of the ring. The latest op of the task that reports one of them; nullopt: none that
    /// was not told before.
    std::optional<uint64_t> taken(uint64_t ring, uint32_t count, TaskId task);

private:
    struct Posted {
        uint32_t completed = 0;
        uint64_t op = 0;
    };
    std::map<std::pair<uint64_t, TaskId>, std::deque<Posted>> posted_;  // not told yet, by ring and task
};

/// What the job had taken when it made the requests that a polling thread of the kernel came to later.
class PolledLines {
public:
    /// The thread came to the next request of the ring. `behind`: how many the job had put in line after it by then;
    /// `taken`: how many results it had taken just after. How many it had taken at most when it made this request.
    uint32_t came_to(uint64_t ring, uint32_t behind, uint32_t taken);

private:
    std::unordered_map<uint64_t, std::deque<uint32_t>> lines_;  // by ring, of each request that is in line
};

/// Memory of a process that requests filled.
class FilledMemory {
public:
    /// By the request whose result op `op` of the task reports.
    void filled(uint64_t address, uint64_t bytes, TaskId task, uint64_t op);
    /// Ops of the task that report what was read to there last; by number.
    std::vector<uint64_t> by(uint64_t address, uint64_t bytes, TaskId task) const;
    void clear() { pieces_.clear(); }

private:
    struct Piece {
        uint64_t end = 0;
        TaskId task = 0;
        uint64_t op = 0;
    };
    std::map<uint64_t, Piece> pieces_;  // by address, apart from each other
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Threads that compute one at a time, as each holds the same lock meanwhile: Python's interpreter lock.
//
// A recording shows such a lock only where a thread had to wait for it, and what those waits come to depends on who got
// there first. So the waits are no causes and take no time in a replay; but the lock is one: threads that share it must
// not compute at once. Which of their computing holds it follows from the recording: what never overlaps, although it
// would by chance. Long computing, as of hashes or matrices, releases the lock and overlaps with anything.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "formats/oplog/op.h"

namespace reprise {

struct Plan;

/// Computing of threads of one process, in the order of its begins.
class OneLock {
public:
    void see(TaskId task, int64_t begin, int64_t duration);
    /// By task: computing that is shorter holds the lock, ns. Tasks that do not share a lock, or of which too little
    /// was seen to tell, are not there; one task alone neither.
    std::map<TaskId, int64_t> held_below() const;

private:
    static constexpr size_t kLengths = 64;  // by powers of 2
    struct Length {
        uint64_t count = 0, overlaps = 0;
        double busy_ns = 0;
    };
    struct Running {
        TaskId task;
        int64_t begin, end;
    };
    double expected(TaskId task, size_t length) const;

    std::map<TaskId, std::array<Length, kLengths>> tasks_;
    std::vector<Running> running_;
    int64_t first_ = 0, last_ = 0;
};

/// A task is looked at that had to wait for locks so often.
inline constexpr uint64_t kLeastLockWaits = 8;

/// Fills in TaskPlan::locked_below. Reads the blocks of the tasks once more that had to wait for locks; nothing where
/// there are no two such tasks in a process.
void find_locks(Plan& plan);

}  // namespace reprise

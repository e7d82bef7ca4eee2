// SPDX-License-Identifier: MIT
// Threads that compute one at a time, as each holds the same lock meanwhile: Python's interpreter lock.
//
// A recording shows such a lock only where a thread had to wait for it, and what those waits come to depends on who got
// there first. So the waits are no causes and take no time in a replay; but the lock is one: threads that share it must
// not compute at once. Which of their computing holds it follows from the recording: what never overlaps, although it
// would by chance. Long computing, as of hashes or matrices, releases the lock and overlaps with anything. Short
// computing tells nothing where threads meet, as after one has let the other go on: both are at it then more often than
// by chance. Where one waits for a lock while another computes, that one has it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "formats/oplog/op.h"
#include "replay/plan/computing.h"

namespace reprise {

struct Plan;

/// Computing of threads of one process, and their waits for locks, in the order of their begins.
class OneLock {
public:
    /// `hardly_wait`: tasks that had to wait for locks less than kLeastLockWaits times. They share one only if others
    /// wait for it while they compute.
    explicit OneLock(std::set<TaskId> hardly_wait = {}) : hardly_wait_(std::move(hardly_wait)) {}
    void see(TaskId task, int64_t begin, int64_t duration);
    /// An op of any other kind: what its task computed before is over by then.
    void see_next(TaskId task, int64_t begin);
    /// A wait for a lock.
    void see_wait(TaskId task, int64_t begin, int64_t duration);
    /// By task: the lengths of computing that holds the lock, a bit each. Tasks that do not share a lock, or of which
    /// too little was seen to tell, are not there; one task alone neither. Call once, at the end.
    std::map<TaskId, uint64_t> held();

private:
    static constexpr size_t kLengths = 64;  // by powers of 2
    struct Length {
        uint64_t count = 0, overlaps = 0;
        uint64_t waited_for = 0;           // while another task waited for a lock, for half of it and more
        double busy_ns = 0, inner_ns = 0;  // all of it, and without its ends
        double lasted_ns = 0;              // until the next op of the task: with the time that others had its processor
        double beside_ns = 0;              // of that, others computed: shorter pieces
    };
    struct Running {
        TaskId task;
        int64_t begin, end;      // as if it kept the processor
        int64_t waited_for = 0;  // ns
        int64_t beside = 0;      // ns that others compute from its begin on: shorter pieces
        int64_t duration() const { return end - begin; }
    };
    void ended(const Running& computing, int64_t until);
    using Lengths = std::array<Length, kLengths>;
    double expected(TaskId task, size_t length) const;
    double found_of(TaskId task, size_t length, double expect) const;
    uint64_t alone_from_below(TaskId task) const;
    uint64_t alone_for_long(TaskId task, const Lengths& lengths, bool waited_for) const;

    std::set<TaskId> hardly_wait_;
    std::map<TaskId, Lengths> tasks_;
    Lengths all_;  // of all tasks, how many and how long
    std::vector<Running> running_, waiting_;
    int64_t first_ = 0, last_ = 0;
};

/// A task is looked at that had to wait for locks so often.
inline constexpr uint64_t kLeastLockWaits = 8;

/// Fills in TaskPlan::locked_lengths. Reads the blocks of the tasks once more in whose processes one had to wait for
/// locks.
void find_locks(Plan& plan);

}  // namespace reprise

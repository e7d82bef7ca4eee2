// SPDX-License-Identifier: MIT
// Loops that sleep and look in memory whether threads of their process are done, as fio's for its jobs: where storage
// is faster they see it sooner, and where it is slower they sleep more often.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

struct Plan;
class Polls;

/// The log has no looks in memory. What tells such a loop from one that sleeps for so long is that the last of the
/// threads that were done while it slept was done in the last of its sleeps, or in the one before, however many there
/// were: chance does that to one loop of so many. A thread is done where it ends, or begins to wait for longer than the
/// loop lasts and did not wait at any look before. Between its sleeps the loop may write a line of progress.
class EndLooks {
public:
    /// The ops of one task after the other, each in its order.
    void see(TaskId task, const OpBlock& block, size_t i);
    /// The next op is of another task.
    void end_task();
    /// Once all edges are there: sleeps of such loops are one wait for that thread, and the task goes on at its next
    /// look. Returns how much of Plan::repeated_sleep_ns those are, ns.
    int64_t join(Plan& plan, const Polls& polls);

private:
    struct Loop {
        TaskId task = 0;
        std::vector<std::pair<uint64_t, int64_t>> sleeps;  // op, and ns
        int64_t begin = 0;                                 // ns, of the first of them
        std::vector<int64_t> looks;                        // ns, the end of each
        std::vector<uint64_t> woke, did;                   // ops between them: that woke others, and other calls
    };
    struct Pause {
        int64_t begin = 0, end = 0;  // ns
        uint64_t op = 0;
        bool exits = false;
    };
    struct Done {
        TaskId task = 0;
        uint64_t op = 0;   // the last before it was
        size_t sleep = 0;  // in which of the sleeps
        size_t among = 0;  // threads that were done meanwhile
        bool exits = false;
    };
    Done last_done(const Loop& loop, const std::vector<TaskId>& threads) const;
    static void begin_after_wakes(const Plan& plan, Loop& loop, const Polls& polls);
    static int64_t join(Plan& plan, const Loop& loop, const Done& done);
    void leave();

    std::vector<Loop> loops_;                 // by task
    std::vector<std::vector<Pause>> pauses_;  // by task: long waits for others, and its end
    Loop now_;
    int64_t computed_ = 0;  // ns, since its last sleep
};

}  // namespace reprise

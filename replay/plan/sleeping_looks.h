// SPDX-License-Identifier: MIT
// Jobs that look for results of requests after a sleep, again and again: where storage is faster the first looks find
// them, and where it is slower there are more sleeps.
//
// With libaio the log has the looks: calls that took nothing. Looks in memory (io_uring_peek_cqe) leave none. There,
// what tells such a job from one that sleeps while its requests are in flight is that the first result came at the
// end of its sleeps each time, however many there were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "formats/oplog/op.h"

namespace reprise {

struct Plan;

/// Sleeps of a task that ended with a result.
struct SleptFor {
    struct Sleep {
        uint64_t op = 0;
        int64_t begin = 0, ns = 0;
        bool looked = false;  // a call before it took nothing
    };
    TaskId task = 0;
    uint32_t request = 0;  // the first whose result it found
    bool aio = false;
    uint64_t reaped = 0;        // see RequestScan::Wait
    std::vector<Sleep> sleeps;  // one at least
    uint64_t next = 0;          // op after them that is not a result: the job's next look, or what follows that
};

/// Fed with the ops of a task in order, task after task.
class SleepingLooks {
public:
    void slept(TaskId task, uint64_t op, int64_t begin, int64_t ns);
    void computed(TaskId task, uint64_t op, int64_t ns);
    /// A call that takes results; `none`: it took nothing.
    void looked(TaskId task, uint64_t op, bool none);
    /// `reaped`: what the task had taken before.
    void result(TaskId task, uint64_t op, uint32_t request, bool aio, uint64_t reaped);
    void requests(TaskId task, uint64_t op);

    /// Of all ops seen: sleeps that waited for results.
    std::vector<SleptFor> take();

private:
    struct Evidence {
        size_t in_last = 0, before = 0;  // of three sleeps or more: the first result came in the last two, or before
        double chance = 0;               // -ln of how likely that is by chance
    };
    void at(TaskId task, uint64_t op);
    void follows(uint64_t op);
    void restart();

    TaskId task_ = 0;
    uint64_t next_ = 0;    // op that follows
    bool looked_ = false;  // a call took nothing, and nothing but a little computing came after it
    SleptFor now_;
    size_t first_at_ = 0;  // of io_uring: how many sleeps there were as the first result came; 0: none came
    std::vector<SleptFor> found_;
    std::map<TaskId, Evidence> evidence_;  // of io_uring
};

/// The task does what it did after its next look, as long after its first sleep as that is here. Returns how much of
/// the sleeps Plan::repeated_sleep_ns has, ns.
int64_t sleep_until_results(Plan& plan, const std::vector<SleptFor>& all);

}  // namespace reprise

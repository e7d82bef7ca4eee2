// SPDX-License-Identifier: MIT
// Time-outs of event loops that come from how a runtime keeps its timers, not from a timer of the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

struct Plan;

/// Tokio keeps timers that are due in more than 64 ms in slots of 64 ms, and wakes as such a slot begins, only to sort
/// its timers anew (tokio, runtime/time/wheel). A worker of its that waits for storage, as any with a time-out for its
/// requests, so wakes every 64 or 128 ms, does nothing, and waits on: one wait, for whoever ends it. Such time-outs are
/// known by when they run out: at multiples of 64 ms after some moment, whenever their waits began.
class TimerWheel {
public:
    /// The ops of one task, in their order.
    void see(const OpBlock& block, size_t i);
    /// The next op is of another task.
    void end_task(TaskId task);
    /// Once it is known which waits somebody ended: what ran out before those is over at once, as they wait for it.
    void join(Plan& plan) const;

private:
    struct Expired {
        TaskId task = 0;
        uint64_t op = 0;
        uint64_t next = 0;  // the wait after it; 0: the task did something else
        int64_t end = 0, timeout_ms = 0;
    };
    static void join_process(Plan& plan, std::vector<Expired>& expired);

    std::vector<Expired> expired_;  // by task, by op
    size_t of_task_ = 0;            // where the task's begin
    bool open_ = false;             // nothing but a little computing since the last of them
    int64_t computed_ = 0;          // ns, since then
};

}  // namespace reprise

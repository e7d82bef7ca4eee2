// SPDX-License-Identifier: MIT
// Waits with a time-out that ran out again and again until somebody woke the task: one wait for whoever did.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

struct Plan;
struct TaskPlan;

/// Sorts TaskPlan::explained; what is in there is no timer.
void settle_explained(TaskPlan& task);

/// A thread that looks every 20 ms whether it may end does not sleep 20 ms: where storage is faster it is woken in the
/// first of its waits, and where it is slower it looks more often. A time-out that the program acts on stays: the task
/// did input or output after it, computed, woke somebody who had waited for that (at least half of the time since it
/// last woke somebody), or was not woken in the end. So do those of an event loop, which are its timers, unless all of
/// its waits have the same one. Sleeps between looks for a child's end count as such waits (Python's Popen.wait with a
/// time-out). So do waits that were interrupted and went on.
///
/// A thread for which nobody waited, and which the end of its process cut short, is a bystander once it only computes
/// and waits (an allocator's thread, a runtime's monitor): its time-outs are over at once, as the job ends without it.
/// So is a thread that only computes, idles and blocks outside calls in a process with a ring of io_uring: the kernel
/// makes such for the ring.
class Polls {
public:
    /// The ops of one task, in their order.
    void see(const OpBlock& block, size_t i);
    /// The next op is of another task.
    void end_task(TaskId task);
    /// A task waited `ns` for what an edge names.
    void see_wait_for(const Edge& edge, int64_t ns);
    /// How long a task waited for that op, ns, where that is more than a little; else 0.
    int64_t waited_for(TaskId task, uint64_t op) const;
    /// Once it is known which waits somebody ended: what ran out before those is over at once, as they wait for it.
    void join(Plan& plan);
    /// Threads that only idle, and for which nobody waits, of processes with a ring.
    void leave_idlers(Plan& plan) const;
    /// Sleeps one after the other, three or more, that are no polls as far as the log tells, ns.
    int64_t repeated_sleep_ns() const { return repeated_sleep_ns_; }

private:
    struct Expired {
        uint64_t op = 0;
        int64_t ns = 0;
        std::vector<uint64_t> woke;  // ops that woke somebody, after it
    };
    struct Series {
        TaskId task = 0;
        int64_t wait_class = 0;
        uint64_t last = 0;  // op of the wait that did not run out
        std::vector<Expired> expired;
        bool bystander = false;
        bool looked = false;  // before the first of them
    };
    bool is_awaited(TaskId task) const;
    static void look_again(TaskPlan& task, const Series& series);
    size_t acted_on(const Series& series) const;
    void forget();

    std::vector<Series> series_;  // by task
    Series pending_;
    Series all_;              // every wait that ran out since the task did something else than computing and waiting
    int64_t cut_ = 0;         // result of its last wait
    bool looked_ = false;     // for a child, since the last wait
    bool cut_short_ = false;  // the last wait was
    bool idles_only_ = true;  // the task does nothing but compute besides ...
    std::vector<uint64_t> idles_;  // ... its ops of that kind, and waits of unknown cause
    bool idled_ = false;
    std::vector<std::pair<TaskId, std::vector<uint64_t>>> idlers_;
    size_t of_task_ = 0;   // where the task's series begin
    int64_t epoll_ = 0;    // arg of the task's waits of an event loop
    bool timers_ = false;  // which differs
    int64_t repeated_sleep_ns_ = 0;
    int64_t class_ = 0;                                          // of the pending waits
    int64_t computed_ = 0;                                       // ns, since the last of them
    std::map<std::pair<TaskId, uint64_t>, int64_t> waited_for_;  // the longest wait for an op, ns; only long ones
};

}  // namespace reprise

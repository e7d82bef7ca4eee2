// SPDX-License-Identifier: MIT
// Threads that do a little again and again after a time, until another thread has them stop.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

struct Plan;

/// A sampler of figures, a heartbeat, a progress bar: a thread that waits for time to pass three times or more, does
/// little between, moves none of the job's data, and for whose results nobody waits. Where storage is faster it is told
/// to stop before it has waited for as long as recorded, so all its waits are one: for who tells it. It is told
///  - by a call that wakes it (an Event set, a byte in a pipe) in a wait that is its last, of the same kind as the
///    others and no longer than those get, so that it would have woken it in each of them,
///  - by the end of its process, which cuts its last wait, or
///  - by what it looks at after each sleep (a flag in memory). The log does not show flags. It shows that somebody who
///    waited for the thread's end began to wait in its last period: what that task did before is taken for the cause,
///    and the thread sees it with its next look.
/// What it did between its waits it does at once, as little as it is.
class Samplers {
public:
    /// The ops of one task after the other, each in its order.
    void see(TaskId task, const OpBlock& block, size_t i);
    /// The next op is of another task.
    void end_task();
    /// All were seen: adds what tells threads to stop by a flag to Plan::cut, and returns it; to be called before the
    /// edges are made.
    std::vector<Edge> find(Plan& plan);
    /// Once it is known which waits somebody ended. Returns how long those are that are joined, ns.
    int64_t join(Plan& plan) const;

private:
    struct Sampler {
        TaskId task = 0;
        std::vector<std::pair<uint64_t, int64_t>> waits;  // op and ns
        uint64_t told = 0;  // op of the wait in which it is told; by a flag: where it sees it
        bool by_flag = false;
        int64_t since = 0, end = 0;             // ns: the ends of the last two of `waits`
        int64_t last = 0;                       // ns, begin of its last op
        uint64_t last_op = 0;                   // that
        int64_t waited_ns = 0, longest_ns = 0;  // in all, and the longest
        int64_t work_ns = 0, after_ns = 0;      // between the waits; after it was told
        uint64_t bytes = 0;
        int64_t wait_class = 0;  // of all of them
    };
    struct Join {
        TaskId task = 0;
        uint64_t op = 0;
        int64_t begin = 0;   // ns
        uint64_t ended = 0;  // op of the other that it waited for
    };
    void wait(const OpBlock& block, size_t i);
    void timed(uint64_t op, int64_t begin, int64_t ns, int64_t wait_class);
    bool is_little(const Sampler& one) const;
    bool is_told(Sampler& one, Plan& plan, std::vector<Edge>& told) const;
    void reset();

    std::vector<Sampler> found_;
    std::map<TaskId, Join> joins_;                      // by whom was waited for: who waited for its latest op
    std::vector<std::pair<TaskId, uint64_t>> awaited_;  // ops for which others waited for long
    Sampler now_;
    bool requests_ = false;  // the task has asynchronous ones
    struct {
        uint64_t op = 0;
        int64_t begin = 0, ns = 0, wait_class = 0;
        bool is = false;
    } polled_;            // a wait that something ended which no task did: the next call tells whether that was a timer
    uint64_t bytes_ = 0;  // of all tasks
};

}  // namespace reprise

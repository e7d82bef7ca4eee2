// SPDX-License-Identifier: MIT
// A thread whose work ended while another of its process slept, and for whose end nobody waits: a loop that sleeps and
// looks leaves no other trace. Whether the work is over by then in a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/plan/plan.h"

namespace reprise {

class SleptThrough {
public:
    /// Reads the sleeps of those processes that have such a thread. `plan` outlives it.
    explicit SleptThrough(const Plan& plan);
    /// An op that was performed. ns.
    void see(TaskId task, const OpBlock& block, size_t i, int64_t end) {
        if (!watched_[task].empty()) {
            note(task, block.first + i, end);
        }
    }

    struct Findings {
        TaskId sleeper = 0, worker = 0;
        int64_t late_ns = 0;  ///< from the end of the sleep to that of the work, at most; 0: it was over by then
    };
    Findings finish() const;

private:
    struct Pair {
        TaskId sleeper = 0, worker = 0;
        int64_t slept_until = INT64_MAX, worked_until = INT64_MIN;  // ns, in the run
    };
    struct Watched {
        uint64_t op = 0;
        size_t pair = 0;
        bool sleep = false;
    };
    struct Work {
        TaskId task = 0;
        uint64_t last = 0;  // op
        int64_t end = 0;    // of it, when recorded
    };
    void find_sleeps(const Plan& plan, ProcessId process, const std::vector<Work>& works);
    void note(TaskId task, uint64_t op, int64_t end);

    std::vector<Pair> pairs_;
    std::vector<std::vector<Watched>> watched_;  // by task
};

/// "task 2 was done while task 1 slept when recorded, and 640 ms after that here: ...", where that is more than a share
/// of the run; else empty.
std::string slept_too_short(const SleptThrough::Findings& findings, int64_t elapsed_ns, double share);

}  // namespace reprise

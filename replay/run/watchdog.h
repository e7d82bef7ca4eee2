// SPDX-License-Identifier: MIT
// The promise that a run never hangs: it finds tasks that wait for each other in a circle, and says which edge to
// give up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/plan/broken_edge.h"
#include "replay/plan/plan.h"
#include "replay/run/shared.h"

namespace reprise {

/// Looks at the slots of a run; the tasks go on meanwhile. Not thread-safe.
class Watchdog {
public:
    Watchdog(const Plan& plan, SharedRun& run) : plan_(plan), run_(run) {}

    /// Gives up the weakest edge of every circle of waits, and of a wait whose source has not come although no task ran
    /// for half a minute. True where it gave one up.
    bool look(int64_t now_ns);
    /// What holds the run up, in words; empty while ops get done, or have not for less than two seconds.
    std::string stalled(int64_t now_ns);

    const std::vector<BrokenEdge>& broken() const { return broken_; }

private:
    struct Wait {
        uint64_t edge = 0;  // index + 1; 0: waits for none
        TaskId next = 0;    // whom it waits for; 0: nobody
    };
    Wait wait_of(TaskId task) const;
    bool give_up(const std::vector<TaskId>& tasks);
    bool any_runs() const;
    OpKind kind_of(TaskId task, uint64_t op);

    const Plan& plan_;
    SharedRun& run_;
    std::vector<BrokenEdge> broken_;
    std::vector<Wait> waits_;     // by task, of one look
    std::vector<uint32_t> seen_;  // by task: the walk that came by
    uint64_t done_ = UINT64_MAX;  // ops, when last something moved
    int64_t moved_ns_ = 0, ran_ns_ = 0;
    OpBlock block_;
};

}  // namespace reprise

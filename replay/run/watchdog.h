// SPDX-License-Identifier: MIT
// Keeps a run from hanging: finds dependency cycles and drops their weakest edge.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/plan/broken_edge.h"
#include "replay/plan/plan.h"
#include "replay/run/shared.h"

namespace reprise {

/// Reads the slots of a run while its tasks go on. Not thread-safe.
class Watchdog {
public:
    Watchdog(const Plan& plan, SharedRun& run) : plan_(plan), run_(run) {}

    /// Gives up the weakest edge of every dependency cycle, and of a wait whose source has not come although no task
    /// ran for half a minute. True where it gave one up. `others_run`: tasks of other ranks do.
    bool look(int64_t now_ns, bool others_run = false);
    /// Whether a task runs.
    bool any_runs() const;
    /// What the run is blocked on, as text; empty while ops complete, or for two seconds after the last one.
    std::string stalled(int64_t now_ns);

    const std::vector<BrokenEdge>& broken() const { return broken_; }

private:
    struct Wait {
        uint64_t edge = 0;  // index + 1; 0: waits for none
        TaskId next = 0;    // the task it waits for; 0: none
    };
    Wait wait_of(TaskId task) const;
    bool give_up(const std::vector<TaskId>& tasks);
    bool give_up_requests();
    OpKind kind_of(TaskId task, uint64_t op);

    const Plan& plan_;
    SharedRun& run_;
    std::vector<BrokenEdge> broken_;
    std::vector<Wait> waits_;     // by task, of one check
    std::vector<uint32_t> seen_;  // by task: the walk that visited it
    uint64_t done_ = UINT64_MAX;  // ops, when last something moved
    int64_t moved_ns_ = 0, ran_ns_ = 0;
    OpBlock block_;
};

}  // namespace reprise

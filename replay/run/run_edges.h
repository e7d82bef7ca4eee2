// SPDX-License-Identifier: MIT
// The causes of a recording in the log of its run, whose ops have other numbers where the run left some out.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"
#include "replay/plan/plan.h"
#include "replay/run/shared.h"

namespace reprise {

/// Made once all tasks have ended; reads the spool, and of tasks that other ranks perform the ops.
class RunEdges {
public:
    RunEdges(const Plan& plan, SharedRun& run);

    /// The edges of an op of `task`. Where it is not `written` to the run's log, the next one gets them that is and
    /// that does not wait. Asked in the order of the ops. Edges from ops left out come from the one before. Valid until
    /// the next call.
    std::span<const Edge> of(TaskId task, const OpBlock& block, size_t i, bool written);

    /// Plan::queues, for the run's log. Empty edges where other ranks have some of the ops.
    QueueInference queues() const;

private:
    /// Ops that follow each other and are not in the run's log.
    struct Gap {
        uint64_t op = 0, count = 0;
        uint64_t before = 0;  // left out earlier
    };
    struct Numbers {
        std::vector<Gap> left_out;  // by op
        uint64_t ops = 0;           // of the recording that the run passed
    };
    static void leave_out(Numbers& numbers, uint64_t op);
    void number_elsewhere(TaskId task);
    /// How many of the first `ops` are in the run's log.
    uint64_t in_log(TaskId task, uint64_t ops) const;
    /// The number of the op in the run's log, or of the last one before it; false: there is none.
    bool source(TaskId task, uint64_t& op) const;

    const Plan& plan_;
    std::vector<Numbers> tasks_;
    std::vector<Edge> out_, carried_;
    TaskId last_ = 0;
};

}  // namespace reprise

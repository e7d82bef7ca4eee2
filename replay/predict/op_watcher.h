// SPDX-License-Identifier: MIT
// What a prediction tells about each op as it goes, to whoever makes a smaller model of the job from it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/oplog/oplog.h"
#include "replay/plan/causal_step.h"

namespace reprise {

/// One op that is over.
struct WatchedOp {
    TaskId task = 0;
    const OpBlock& block;
    size_t i = 0;
    CausalRole role = CausalRole::call;
    bool inside = false;                // it was itself a wait for its edges
    int64_t think_ns = 0;               // since the op before it
    int64_t took_ns = 0;                // itself, without what it waited for
    int64_t compute_ns = 0;             // of that: on a processor
    size_t waits = 0;                   // one past the last of TaskPlan::waits that lie behind
    uint32_t stream = 0;                // of an accelerator's op: by Plan::streams
    int64_t busy_ns = 0;                // gpu_submit: the accelerator
    uint64_t fetches = 0, fetched = 0;  // requests to the storage, and their bytes
};

class OpWatcher {
public:
    OpWatcher() = default;
    OpWatcher(const OpWatcher&) = delete;
    OpWatcher& operator=(const OpWatcher&) = delete;
    virtual ~OpWatcher() = default;

    /// `by`: the task whose spawn op does it, which is not over yet; 0: the run does.
    virtual void started(TaskId task, TaskId by) = 0;
    virtual void ended(const WatchedOp& op) = 0;
    /// So many of the task's TaskPlan::sources are done. `begins`: the last of them is not over, but tells others as it
    /// begins.
    virtual void published(TaskId task, uint32_t count, bool begins) = 0;
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// The steps of the accelerators in a log: which submission and which wait belongs to which.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

/// Steps of a process end where its marks `step` end, else its marks `accelerator`, else with each submission.
class AcceleratorSteps {
public:
    explicit AcceleratorSteps(const LogReader& log);

    /// Work of one device in one step.
    struct Step {
        ProcessId process = 0;
        int64_t device = 0;
        int64_t busy = 0;      // ns, of all its submissions
        bool complete = true;  // false: after the last mark
    };
    const std::vector<Step>& steps() const { return steps_; }
    /// Steps of a task's submissions, in their order.
    const std::vector<uint32_t>& of_submissions(TaskId task) const { return submissions_[task]; }
    /// Their numbers among the task's ops.
    const std::vector<uint64_t>& submission_ops(TaskId task) const { return submission_ops_[task]; }
    /// Waits of a task after which a step has ended, by the number of the op.
    const std::vector<uint64_t>& last_waits(TaskId task) const { return waits_[task]; }
    const std::vector<int64_t>& last_wait_ends(TaskId task) const { return wait_ends_[task]; }  // ns
    /// Ends of marks `step` in a task, likewise.
    const std::vector<uint64_t>& marks(TaskId task) const { return marks_[task]; }
    const std::vector<int64_t>& mark_times(TaskId task) const { return mark_times_[task]; }  // ns
    const std::vector<int64_t>& devices() const { return devices_; }                         // ascending
    uint64_t negative() const { return negative_; }  // submissions that are busy for less than nothing

private:
    std::vector<Step> steps_;
    std::vector<std::vector<uint32_t>> submissions_;     // by TaskId
    std::vector<std::vector<uint64_t>> submission_ops_;  // by TaskId
    std::vector<std::vector<uint64_t>> waits_;           // by TaskId
    std::vector<std::vector<int64_t>> wait_ends_;        // by TaskId
    std::vector<std::vector<uint64_t>> marks_;           // by TaskId
    std::vector<std::vector<int64_t>> mark_times_;       // by TaskId
    std::vector<int64_t> devices_;
    uint64_t negative_ = 0;
};

}  // namespace reprise

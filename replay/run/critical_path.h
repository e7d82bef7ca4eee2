// SPDX-License-Identifier: MIT
// The critical path of a run under pace causal: from the op that ended last back along what each op had waited for, the
// op before it in its task or the last one of another task that released it. What the replay itself added there, and
// the recording did not have, the run took longer by; what it added elsewhere, other waits hid.
#pragma once

#include <cstdint>
#include <functional>

#include "replay/interval/path_times.h"
#include "replay/plan/plan.h"
#include "replay/run/shared.h"

namespace reprise {

/// What the collector finds out of an op; takes the place of SpoolRow::result once that has been read.
///
/// A task that is late makes it up: its clock (CausalClock) goes on from when an op was due. So lateness counts once,
/// where others, or the end of the run, wait for the task; what the clock cannot make up counts at each op.
struct PathRow {
    int64_t added_ns = 0;   // for good: compute beyond what was asked, starts of tasks, wakeups; less run-queue delay
    int64_t behind_ns = 0;  // how far the task is behind its clock when the op is over
    bool released = false;  // by another task, after the op before it was over

    /// In units of kUnit, each part at most about 100 s.
    int64_t pack() const;
    static PathRow unpack(int64_t packed);
    static constexpr int64_t kUnit = 100;  // ns
};

/// The collector keeps in SpoolRow::end, beside its ticks, what the time of the op counts as.
inline constexpr int kPartShift = 61;
inline constexpr uint64_t kSpoolEndTicks = (uint64_t{1} << kPartShift) - 1;
inline uint64_t with_part(uint64_t end, PathPart part) {
    return (end & kSpoolEndTicks) | static_cast<uint64_t>(part) << kPartShift;
}
inline PathPart part_of(uint64_t end) { return static_cast<PathPart>(end >> kPartShift); }

struct CriticalPath {
    int64_t added_ns = 0;  // by the replay
    PathTimes times;
};

/// What the collector knows of a finished run.
struct FinishedRun {
    int64_t start_ns = 0;
    std::function<int64_t(uint64_t ticks)> ns;
    std::function<int64_t(const WaitFor&)> ended;  // when an op was done that others wait for; INT64_MIN: it was not
    std::function<double(TaskId)> doubt = {};      // in the inferred edges of a task, 0..1; none: none
};

/// The path that ends with the op `last` of `task`. Every row of the run that was performed holds a PathRow, and its
/// part.
CriticalPath critical_path(const Plan& plan, SharedRun& run, TaskId task, uint64_t last, const FinishedRun& finished);

}  // namespace reprise

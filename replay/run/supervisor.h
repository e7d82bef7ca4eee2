// SPDX-License-Identifier: MIT
// Supervises the worker processes of a run: forks, watches and ends them, and leaves none behind.
#pragma once

#include <string>

#include <string>
#include <vector>

#include "calibrate/clock.h"
#include "replay/run/runner.h"
#include "replay/run/watchdog.h"

namespace reprise {

struct SupervisedRun {
    std::string ended = "complete";  // or "interrupted: why"
    TickTimeline clock;
    int64_t start_unix_ns = 0;  // wall clock at the common start
    std::vector<BrokenEdge> broken;
};

/// Runs all processes of the plan to their end. `clock` begins with `first_point`. Throws Error (machine) where they
/// cannot even start.
SupervisedRun supervise(const WorkerSetup& setup, const ReplayOptions& options, const TickPoint& first_point,
                        SharedTimeline& clock);

}  // namespace reprise

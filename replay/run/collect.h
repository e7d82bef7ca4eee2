// SPDX-License-Identifier: MIT
// Turns the spool of a run into its op log and its numbers.
#pragma once

#include <functional>

#include "calibrate/clock.h"
#include "replay/run/runner.h"

namespace reprise {

/// Reads the recording again, block by block, beside the spool. Fills the counts of `result`, lets `judge` say what
/// they come to, and writes options.output. `start_unix_ns`: wall clock at the common start. Throws Error where the
/// recording or the output fails.
void collect(const Plan& plan, SharedRun& run, const ReplayOptions& options, const TickTimeline& clock,
             int64_t start_unix_ns, ReplayResult& result, const std::function<void()>& judge = {});

}  // namespace reprise

// SPDX-License-Identifier: MIT
// What a run with limits needs before it begins.
#pragma once

#include <memory>

#include "replay/limit/limited_run.h"
#include "replay/prepare/cache_regime.h"
#include "replay/run/runner.h"

namespace reprise {

/// The group of a run with limits, and the page cache in its regime. Pages count for the group of who brings them in:
/// none may be there from before, and those that are to be there are brought in by this process as one of the group.
/// Throws Error (machine) where the limits cannot be made.
std::unique_ptr<LimitedRun> limit_run(const Plan& plan, const ReplayOptions& options, CacheKeeper& cache);

}  // namespace reprise

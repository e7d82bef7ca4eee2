// SPDX-License-Identifier: MIT
// What bounds a job, from its causal graph: how long it would take with infinitely fast storage, processors and
// accelerators, and what its critical path consists of. Joins replay/predict to analyze/job.
#pragma once

#include <functional>

#include "analyze/job/bounds.h"
#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"

namespace reprise::cli {

/// `progress`: told what is computed, of how many. Says in the result why where it cannot.
JobBounds what_bounds(const LogReader& log, const OpFilter& filter,
                      const std::function<void(int done, int all)>& progress = {});

}  // namespace reprise::cli

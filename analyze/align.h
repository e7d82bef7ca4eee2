// SPDX-License-Identifier: MIT
// Aligns the ops of two logs, task by task: which are the same, which are missing, extra or moved.
#pragma once

#include <functional>
#include <vector>

#include "analyze/compare.h"
#include "formats/oplog/op_filter.h"

namespace reprise {

/// Adds counts and examples of one pair of logs to `into`. Paths are compared as byte strings, not as ids.
void align(const LogReader& a, const OpSelector& keep_a, const LogReader& b, const OpSelector& keep_b,
           const CompareOptions& options, Comparison& into);

}  // namespace reprise

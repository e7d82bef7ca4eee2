// SPDX-License-Identifier: MIT
// The verdict of a run on its results: whether it did what the recorded job did.
#pragma once

#include "replay/run/runner.h"

namespace reprise {

/// Ops of kinds that can differ: performed ones, and those whose file did not open.
uint64_t comparable_ops(const ReplayResult& result);

/// Fills `not_same_job`: too many ops with another result, or any op that found the file system full.
void judge_results(const ToleratedDifferences& tolerated, ReplayResult& result);

}  // namespace reprise

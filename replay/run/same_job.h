// SPDX-License-Identifier: MIT
// The verdict of a run on its results: whether it did what the recorded job did.
#pragma once

#include "replay/run/runner.h"

namespace reprise {

/// Ops of kinds that can differ: performed ones, and those whose file did not open.
uint64_t comparable_ops(const ReplayResult& result);

/// Fills `not_same_job`: too many ops with another result, none performed, or any that found the file system full.
/// `alone`: the run is all of the job; a part of it need not have I/O.
void judge_results(const ToleratedDifferences& tolerated, ReplayResult& result, bool alone = true);
/// Of a part, by what is known of the whole log (`doubts`): whether there was anything to replay.
void judge_whole(ReplayResult& result);

}  // namespace reprise

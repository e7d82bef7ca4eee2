// SPDX-License-Identifier: MIT
// Sentences about a run that its figures do not say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/plan/broken_edge.h"
#include "replay/run/runner.h"

namespace reprise {

/// Edges that were dropped to break dependency cycles.
void note_broken(const std::vector<BrokenEdge>& broken, ReplayResult& result);
/// After the run.
/// `uring`, `aio`: why the kernel made no queue for requests, an errno; 0: it did.
void note_no_queue(int uring, int aio, ReplayResult& result);
/// What became of the I/O limits of this process's own control group (ControlGroup::kept_io(), lost_io()).
void note_group_limits(const DiskLimits& kept, const std::string& lost, ReplayResult& result);
/// The same of a run that stays in that group.
void note_group_limits(ReplayResult& result);
void add_notes(ReplayResult& result);
/// What the recording says of itself that bears on the run.
void note_recording(const LogReader& log, ReplayResult& result);
/// Of ops that the root refused; `root`: to root itself, whom another user's rights do not help.
std::string refused_note(uint64_t ops, bool root);

}  // namespace reprise

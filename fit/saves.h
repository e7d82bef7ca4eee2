// SPDX-License-Identifier: MIT
// When a recorded job saves checkpoints, how large they are and who writes them.
#pragma once

#include <set>
#include <utility>

#include "fit/fit.h"
#include "fit/job_trace.h"
#include "fit/training_loop.h"

namespace reprise {

struct SavesFit {
    /// Ops of ranks that copy what a thread then writes: no work of a step.
    std::set<std::pair<TaskId, uint64_t>> copies;
    /// Steps of the first rank, by number, after which it was saved.
    std::set<uint64_t> steps;
};

/// Adds checkpoint_every, checkpoint_size, checkpoint_mode, checkpoint_bs and checkpoint_copy; nothing where none is
/// saved.
SavesFit fit_saves(const JobTrace& trace, const TrainingLoop& loop, FittedJob& job);

}  // namespace reprise

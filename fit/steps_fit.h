// SPDX-License-Identifier: MIT
// The loaders, accelerators and steps of a recorded job as words of a job file.
#pragma once

#include "fit/data_set_fit.h"
#include "fit/saves.h"

namespace reprise {

/// Adds batch, loader_workers, prefetch, epochs, steps, decode, compute, gpus, ranks and sync.
void fit_steps(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, const DataSetFit& set,
               const SavesFit& saves, FittedJob& job);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// In what order a recorded job reads its samples, as a job file says it.
#pragma once

#include "fit/data_set_fit.h"

namespace reprise {

/// Adds shuffle=.
void fit_order(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, const DataSetFit& set,
               FittedJob& job);

}  // namespace reprise

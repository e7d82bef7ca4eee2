// SPDX-License-Identifier: MIT
// What a prediction says besides its times.
#pragma once

#include <optional>

#include "replay/plan/plan.h"
#include "replay/predict/planned_job.h"
#include "replay/predict/predict.h"
#include "replay/predict/virtual_calls.h"

namespace reprise {

/// What is known before the run.
Prediction begun(const PlannedJob& job, const PredictOptions& options);
/// Puts what the plan and the calls know into `out`, which has its times.
void sum_up(Prediction& out, const Plan& plan, const VirtualCalls& calls);
/// None where it is not to be trusted. After sum_up().
std::optional<TimeInterval> interval_of(const Prediction& out, const Plan& plan, const PredictOptions& options);

}  // namespace reprise

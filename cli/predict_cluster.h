// SPDX-License-Identifier: MIT
// `reprise predict --gpus N --hosts H`: many copies of a job on many hosts.
#pragma once

#include "cli/command.h"
#include "formats/oplog/oplog.h"
#include "replay/predict/predict.h"

namespace reprise::cli {

void add_cluster_options(po::options_description& add);
/// Whether one of them is given, or accelerators are swept.
bool cluster_given(const po::variables_map& values);
/// Throws Error (usage) where another option does not go with them.
void check_cluster_options(const po::variables_map& values);
/// Prints what was found, and returns the exit code. `how`: as for the job itself.
int run_cluster(const po::variables_map& values, const LogReader& log, const Predictor& predictor,
                const PredictOptions& how);

}  // namespace reprise::cli

// SPDX-License-Identifier: MIT
// The options by which `prepare`, `replay`, `scale` and `info` see a job on a larger data set.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/table.h"
#include "formats/oplog/oplog.h"
#include "transform/scale.h"

namespace reprise::cli {

/// --scale and --epochs, which `replay` has as what-if options (replay/plan/what_if.def).
void add_scale_factor_options(po::options_description& add);
/// --seed and --scale-as.
void add_scale_detail_options(po::options_description& add);
/// As given. Throws Error (usage).
ScaleOptions scale_options(const po::variables_map& values);
std::vector<SampleOverride> sample_overrides(const po::variables_map& values);

/// The log as recorded or, where that is asked for, on a larger data set: made in a file without a name.
/// With --recover, one that was truncated, too.
LogReader log_at_scale(const std::string& path, const ScaleOptions& options, const po::variables_map& values);
/// "job.oplog --scale 2", as it is given to `prepare` in a shell.
std::string name_at_scale(const std::string& path, const ScaleOptions& options, const po::variables_map& values);

Table scaling_table(const ScalingSurvey& survey);
void print_scaling(const ScalingSurvey& survey);
Json scaling_json(const ScalingSurvey& survey);

}  // namespace reprise::cli

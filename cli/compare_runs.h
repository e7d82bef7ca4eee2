// SPDX-License-Identifier: MIT
// `compare A1 A2 ... --against B1 B2 ...`: runs of A against runs of B.
#pragma once

#include "cli/command.h"

namespace reprise::cli {

/// Exit code: 1 where a metric got worse, or there are too few runs to tell.
int compare_runs(const po::variables_map& values);

}  // namespace reprise::cli

// SPDX-License-Identifier: MIT
// What `sweep` varies, from its options.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "experiment/sweep.h"

namespace reprise::cli {

/// The axes that are asked for. Throws Error (usage) where a value means nothing, or the same as another one.
std::vector<SweepAxis> axes_of(const po::variables_map& values);
/// Of all that there may be.
std::vector<std::string> axis_names();

}  // namespace reprise::cli

// SPDX-License-Identifier: MIT
// Comparisons of runs as one HTML file without network: both sides in each chart.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/show_regression.h"

namespace reprise::cli {

/// Throws Error (machine).
void write_regression_page(const std::filesystem::path& path, const std::string& title,
                           const std::vector<RegressionCase>& cases);

}  // namespace reprise::cli

// SPDX-License-Identifier: MIT
// Analyses on the screen and as JSON.
#pragma once

#include <ostream>
#include <span>

#include "analyze/job/job_page.h"
#include "cli/table.h"

namespace reprise::cli {

/// One screen of one log.
void print_analysis(std::ostream& out, const AnalyzedJob& analyzed);
/// Key figures of several, side by side.
void print_side_by_side(std::ostream& out, std::span<const AnalyzedJob> jobs);
/// `tables`: of its log.
Json analysis_json(const AnalyzedJob& analyzed, const Tables& tables);

/// Values as a row of blocks of eight heights, the greatest full; each block is the mean of as many values.
std::string spark_line(const std::vector<double>& values, size_t width);

}  // namespace reprise::cli

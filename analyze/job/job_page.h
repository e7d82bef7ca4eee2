// SPDX-License-Identifier: MIT
// The page of an analysis, of one log or of several side by side.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analyze/job/analysis.h"
#include "analyze/job/bounds.h"
#include "analyze/report/page.h"

namespace reprise {

struct AnalyzedJob {
    std::string name;  // short: where several are side by side
    JobAnalysis job;
    std::optional<JobBounds> bounds;  // none: not asked for
};

/// What is worth knowing first, by name: "elapsed" "9.50 s". The same on the terminal.
std::vector<std::pair<std::string, std::string>> key_figures(const AnalyzedJob& analyzed);
/// "shuffled", "in order", "shuffled in a window of about 512 samples"; of files and of records in them.
std::string order_words(const JobAnalysis& job);

std::unique_ptr<Page> job_page(std::span<const AnalyzedJob> jobs);

}  // namespace reprise

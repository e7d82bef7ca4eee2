// SPDX-License-Identifier: MIT
// The charts of an analysis. Empty where there is nothing to draw: those are left out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/job/job_page.h"

namespace reprise {

/// `prefix`: of the ids, so that several jobs fit in one page.
std::optional<PageLanes> timeline_chart(const JobAnalysis& job, const std::string& prefix);
/// Throughput, calls, queue depth, CPUs, memory and what happened around the job.
std::vector<PageChart> time_charts(const JobAnalysis& job, const std::string& prefix);
std::vector<PageChart> size_charts(const JobAnalysis& job, const std::string& prefix);
/// Of asynchronous requests.
std::vector<PageChart> request_charts(const JobAnalysis& job, const std::string& prefix);
std::vector<PageChart> file_charts(const JobAnalysis& job, const std::string& prefix);
std::vector<PageChart> epoch_charts(const JobAnalysis& job, const std::string& prefix);
std::vector<PageChart> context_charts(const JobAnalysis& job, const std::string& prefix);
std::vector<PageChart> bounds_charts(const JobBounds& bounds, const std::string& prefix);
/// Several jobs in each chart.
std::vector<PageChart> side_by_side_charts(std::span<const AnalyzedJob> jobs);

}  // namespace reprise

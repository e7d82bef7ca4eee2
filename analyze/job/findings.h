// SPDX-License-Identifier: MIT
// What matters most about a job, in plain sentences with their figures.
#pragma once

#include <string>
#include <vector>

#include "analyze/job/analysis.h"
#include "analyze/job/bounds.h"

namespace reprise {

struct JobFinding {
    double weight = 0;  // 0..1: roughly the share of the elapsed time that it is about
    std::string sentence;
};

/// Most important first. `bounds`: null where they were not computed.
std::vector<JobFinding> find_all(const JobAnalysis& job, const JobBounds* bounds);
/// The first three.
std::vector<std::string> top_findings(const JobAnalysis& job, const JobBounds* bounds);

}  // namespace reprise

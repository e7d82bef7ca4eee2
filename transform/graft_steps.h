// SPDX-License-Identifier: MIT
// The steps of a training loop in a log, and how those of two logs of one job lie to each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

struct LoopStep {
    int64_t number = 0;
    int64_t begin = 0, end = 0;  // ns
};

/// Of the task with the most of them: spans `step`, else spans `accelerator`, else from each `batch` to the next.
struct LoopSteps {
    std::string mark;  // empty: no steps are marked
    TaskId task = 0;
    std::vector<LoopStep> steps;  // by begin

    static LoopSteps of(const LogReader& log);
    int64_t median_length() const;
    /// "6 steps (12 to 17) in 0.85 s"
    std::string words() const;
};

/// Pairs of steps (index in the profile's, index in the job's): by number where the profile's numbers are all there
/// once, else by order where there are as many. Empty: they do not match.
std::vector<std::pair<size_t, size_t>> match_steps(const LoopSteps& profile, const LoopSteps& job);

}  // namespace reprise

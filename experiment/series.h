// SPDX-License-Identifier: MIT
// A series of runs of one thing: which of them count, when there are enough, what they say.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "experiment/repeated.h"

namespace reprise {

struct RunOutcome {
    double seconds = 0;
    bool valid = true;                   // it did what was asked, and this machine kept up
    std::vector<std::string> disturbed;  // disturbances(); none: nothing that shows
    bool counts() const { return valid && disturbed.empty(); }
};

struct SeriesVerdict {
    /// Runs that the figures are of, ascending: the valid and undisturbed ones, where those are at least half of all
    /// and two; else all valid ones.
    std::vector<size_t> counted;
    bool disturbed_counted = false;
    MedianInterval seconds;
    std::optional<double> drift;  // from one counted run to the next, as a share
    size_t median_run = 0;        // the counted run nearest to the median; the first one of none
    std::vector<size_t> odd;      // counted ones far off the others, of which nothing shows why
};
SeriesVerdict judge_series(const std::vector<RunOutcome>& runs);

/// Runs are stable where their interval is within so much of their median, up or down.
inline constexpr double kStable = 0.025;

struct SeriesGoal {
    size_t runs = 1;
    /// Go on until so many are valid and undisturbed and they are stable, at most for so long.
    std::optional<double> until_stable_s;
};
/// Whether enough runs are valid and undisturbed, and their interval is narrow enough.
bool series_stable(const SeriesGoal& goal, const std::vector<RunOutcome>& runs);
/// Whether there are enough, `elapsed_s` after the first one began.
bool series_done(const SeriesGoal& goal, const std::vector<RunOutcome>& runs, double elapsed_s);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Runs of A against runs of B: for each metric its medians, the change with its interval, and whether it got worse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// One figure of every run of both sides.
struct MetricRuns {
    std::string name;
    bool more_is_better = false;
    bool headline = false;  // has half of the chance of a wrong finding together with the other ones that are
    double threshold = 0;   // share of A's median from which on a change matters
    std::vector<double> a, b;
};

struct Estimate {
    double median = 0, low = 0, high = 0;  // 95 %, by bootstrap
};

enum class Finding : uint8_t {
    same,    // no change as large as the threshold
    better,  // a change of at least the threshold that chance does not explain
    worse,   // likewise
    noisy,   // a change as large as the threshold may be there and not show
    few,     // too few runs for any change to show
};
std::string_view finding_name(Finding finding);

struct MetricFinding {
    std::string name;
    bool more_is_better = false;
    double threshold = 0;
    size_t runs_a = 0, runs_b = 0;
    Estimate a, b;
    /// B's median over A's, less 1, and the 95 % interval of that. None: A's median is 0.
    std::optional<Estimate> change;
    double p = 1;           // of a difference as large by chance
    double p_adjusted = 1;  // of one as large in any of the metrics
    /// The smallest change that would be called better or worse in 9 of 10 such comparisons. None: too few runs.
    std::optional<double> detectable;
    Finding finding = Finding::few;
};

/// Chance of calling any metric better or worse where nothing changed.
inline constexpr double kChance = 0.05;

/// `metrics`: of the same runs, at least one per side. The same input gives the same result.
///
/// A permutation test on the difference of means, of values that are drawn in to one scaled median absolute deviation
/// around the median of all runs, so that odd runs decide little. Runs change sides with all their metrics at once,
/// which corrects for the number of metrics by what they really have in common (Westfall and Young's step-down
/// procedure; like Holm's where they have nothing). Headline metrics and the others have half of kChance each.
std::vector<MetricFinding> judge_metrics(const std::vector<MetricRuns>& metrics);

/// Runs per side from which on a change can show in each of so many metrics that share a chance of `chance`.
size_t least_runs(size_t metrics, double chance);

/// 95 % percentile bootstrap of the median.
Estimate bootstrap_median(const std::vector<double>& values);

/// What a comparison comes to: worse where any metric is, few where none can tell.
Finding worst_of(const std::vector<MetricFinding>& findings);

}  // namespace reprise

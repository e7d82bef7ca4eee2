// SPDX-License-Identifier: MIT
// Runs of A against runs of B: which of them count, and what their metrics say. `compare --against` and `regress`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analyze/run_record.h"
#include "experiment/regression.h"
#include "experiment/thresholds.h"

namespace reprise::cli {

struct MarkedRun {
    std::string run, why;
    bool left_out = false;
};

/// Where the time of all tasks went: the median of the runs of each side, ns.
struct PlaceDifference {
    std::string place;
    double a = 0, b = 0;
};

struct Regression {
    std::string name;            // of the case; empty: the only one
    std::string side_a, side_b;  // what the sides are called
    size_t runs_a = 0, runs_b = 0;
    std::vector<MarkedRun> marked;       // that may not be believed
    std::vector<MetricFinding> metrics;  // empty: nothing could be compared
    std::vector<MetricRuns> runs;        // what these were found from, in the same order
    std::vector<PlaceDifference> places;
    std::vector<std::string> notes;  // sentences: what differs besides
    std::string other_cache;         // a sentence: the page cache served one side and not the other; empty: it did not

    Finding finding() const { return worst_of(metrics); }
    /// The first lines: what it comes to, and whether that may be believed.
    std::vector<std::string> sentences() const;
    /// Whether nothing got worse, and that could have been seen: not where one side is cold and the other warm.
    /// No metric could show a change: too few runs, or too noisy ones.
    bool undecided() const;
    bool passed() const { return finding() != Finding::worse && !undecided() && other_cache.empty(); }
};

struct RegressionSides {
    std::string name_a = "A", name_b = "B";
    std::vector<RunRecord> a, b;
};

/// `exclude`: leave out runs that may not be believed. Throws Error (usage) where that leaves none, and where these are
/// not runs of one job.
Regression regression_of(const RegressionSides& sides, const Thresholds& thresholds, bool exclude);

/// Shares of the data that the device served, at most 1, of the runs that say.
std::vector<double> device_shares(const std::vector<RunRecord>& runs);
/// "43 %"
std::string whole_percent(double share);
/// "-5.0 %"
std::string signed_share(double share);
/// A value of a metric, in its unit.
std::string metric_value(const std::string& metric, double value);

}  // namespace reprise::cli

// SPDX-License-Identifier: MIT
#include "experiment/series.h"

#include <algorithm>
#include <cmath>

namespace reprise {
namespace {

template <class Wanted>
std::vector<size_t> runs_where(const std::vector<RunOutcome>& runs, Wanted wanted) {
    std::vector<size_t> out;
    for (size_t i = 0; i < runs.size(); ++i) {
        if (wanted(runs[i])) {
            out.push_back(i);
        }
    }
    return out;
}

}  // namespace

SeriesVerdict judge_series(const std::vector<RunOutcome>& runs) {
    SeriesVerdict out;
    out.counted = runs_where(runs, [](const RunOutcome& run) { return run.counts(); });
    if (2 * out.counted.size() < runs.size() || (out.counted.size() < 2 && runs.size() > 1)) {
        out.counted = runs_where(runs, [](const RunOutcome& run) { return run.valid; });
        out.disturbed_counted = std::any_of(out.counted.begin(), out.counted.end(),
                                            [&](size_t run) { return !runs[run].disturbed.empty(); });
    }
    std::vector<double> seconds;
    for (const size_t run : out.counted) {
        seconds.push_back(runs[run].seconds);
    }
    out.seconds = median_interval(seconds);
    out.drift = drift(seconds);
    for (const size_t one : outliers(seconds)) {
        if (runs[out.counted[one]].disturbed.empty()) {
            out.odd.push_back(out.counted[one]);
        }
    }
    const auto apart = [&](size_t run) { return std::abs(runs[run].seconds - out.seconds.median); };
    const auto nearest = std::min_element(out.counted.begin(), out.counted.end(),
                                          [&](size_t a, size_t b) { return apart(a) < apart(b); });
    out.median_run = nearest != out.counted.end() ? *nearest : 0;
    return out;
}

bool series_stable(const SeriesGoal& goal, const std::vector<RunOutcome>& runs) {
    const auto good = static_cast<size_t>(
        std::count_if(runs.begin(), runs.end(), [](const RunOutcome& run) { return run.counts(); }));
    const SeriesVerdict verdict = judge_series(runs);
    return good >= goal.runs && !verdict.disturbed_counted && verdict.counted.size() >= 2 &&
           verdict.seconds.half_width() <= kStable;
}

bool series_done(const SeriesGoal& goal, const std::vector<RunOutcome>& runs, double elapsed_s) {
    if (runs.size() < goal.runs) {
        return false;
    }
    return !goal.until_stable_s || elapsed_s >= *goal.until_stable_s || series_stable(goal, runs);
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Which runs of a series count, and when there are enough.
#include "experiment/series.h"

#include <doctest/doctest.h>

using namespace reprise;

namespace {

std::vector<RunOutcome> took(const std::vector<double>& seconds) {
    std::vector<RunOutcome> runs;
    for (const double one : seconds) {
        runs.push_back({one, true, {}});
    }
    return runs;
}

using Runs = std::vector<size_t>;

}  // namespace

TEST_CASE("a series: the undisturbed and valid runs count") {
    std::vector<RunOutcome> runs = took({10, 30, 11, 12, 5});
    runs[1].disturbed = {"steal time"};
    runs[4].valid = false;
    const SeriesVerdict verdict = judge_series(runs);
    CHECK(verdict.counted == Runs{0, 2, 3});
    CHECK_FALSE(verdict.disturbed_counted);
    CHECK(verdict.seconds.median == 11);
    CHECK(verdict.seconds.low == 10);
    CHECK(verdict.seconds.high == 12);
    CHECK(verdict.median_run == 2);
    CHECK(verdict.odd.empty());
    CHECK_FALSE(verdict.drift);
}

TEST_CASE("a series: where most runs were disturbed all valid ones count, and that is said") {
    std::vector<RunOutcome> runs = took({10, 30, 11});
    runs[0].disturbed = runs[1].disturbed = {"steal time"};
    SeriesVerdict verdict = judge_series(runs);
    CHECK(verdict.counted == Runs{0, 1, 2});
    CHECK(verdict.disturbed_counted);
    CHECK(verdict.seconds.median == 11);
    runs[1].valid = false;
    verdict = judge_series(runs);
    CHECK(verdict.counted == Runs{0, 2});
    CHECK(verdict.median_run == 0);  // both are as near
    for (RunOutcome& run : runs) {
        run.valid = false;
    }
    verdict = judge_series(runs);
    CHECK(verdict.counted.empty());
    CHECK_FALSE(verdict.disturbed_counted);
    CHECK(verdict.median_run == 0);
    CHECK(judge_series({}).counted.empty());
    CHECK(judge_series(took({7})).counted == Runs{0});
}

TEST_CASE("a series: drift, and runs that nothing explains") {
    CHECK(*judge_series(took({100, 101, 102, 103, 104})).drift == doctest::Approx(1.0 / 102));
    std::vector<RunOutcome> runs = took({10, 10, 10.1, 20, 9.9, 25});
    CHECK(judge_series(runs).odd == Runs{3, 5});
    runs[3].disturbed = {"steal time"};
    CHECK(judge_series(runs).odd == Runs{5});
}

TEST_CASE("a series ends after its runs, or once it is stable, or when its time is up") {
    SeriesGoal goal{.runs = 3, .until_stable_s = {}};
    CHECK_FALSE(series_done(goal, took({10, 90}), 1e6));
    CHECK(series_done(goal, took({10, 90, 50}), 0));
    goal.until_stable_s = 600;
    CHECK_FALSE(series_done(goal, took({10, 90, 50}), 599));
    CHECK(series_done(goal, took({10, 90, 50}), 600));
    CHECK_FALSE(series_stable(goal, took({10, 90, 50})));
    CHECK(series_stable(goal, took({10, 10.1, 10.2})));
    CHECK(series_done(goal, took({10, 10.1, 10.2}), 30));
    CHECK_FALSE(series_done(goal, took({10, 10.1}), 900));  // fewer than asked for
    std::vector<RunOutcome> runs = took({10, 10.1, 10.2, 10.1});
    runs[0].disturbed = runs[1].disturbed = {"steal time"};
    CHECK_FALSE(series_done(goal, runs, 30));
    runs[1].disturbed.clear();
    CHECK(series_done(goal, runs, 30));
    goal = {.runs = 1, .until_stable_s = 100};
    CHECK_FALSE(series_done(goal, took({10}), 20));  // one run shows no spread
    CHECK(series_done(goal, took({10, 10}), 40));
}

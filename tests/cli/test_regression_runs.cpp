// SPDX-License-Identifier: MIT
// Runs of A against runs of B: which metrics, which runs count, what is said, and the files for CI.
#include "cli/regression_runs.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "cli/report_files.h"
#include "cli/show_regression.h"
#include "formats/support/error.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::cli;

namespace {

RunRecord run_of(double seconds, double read_p99 = 2e6) {
    RunRecord run;
    run.path = "run." + std::to_string(seconds) + ".oplog";
    run.recording = "r1";
    run.host = "h";
    run.kernel = "6.1";
    run.clock = "monotonic";
    run.ended = "complete";
    run.trust = "good";
    run.conditions["pace"] = "causal";
    run.ops = 1000;
    run.elapsed_s = seconds;
    run.bytes = 1e9;
    run.kinds["read"] = {1900, 9e8, 1e5, read_p99};
    run.kinds["fstat"] = {900, 1e6, 1e3, 2e3};  // no time
    run.kinds["fsync"] = {5, 9e8, 1e8, 2e8};    // too few calls
    run.places = {{"compute", 1e9}, {"storage;dataset;read", seconds * 1e8}, {"storage;checkpoint;fsync", 1e7}};
    return run;
}

std::vector<RunRecord> runs_of(double seconds, double scatter = 1) {
    std::vector<RunRecord> out;
    for (const double off : {0.0, 0.1, -0.1, 0.05, -0.05, 0.02, -0.02, 0.03}) {
        out.push_back(run_of(seconds * (1 + scatter * off / 20)));
    }
    return out;
}

/// What an Error says; empty: there was none.
template <class Act>
std::string error_of(Act act) {
    try {
        act();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

const MetricFinding& metric(const Regression& regression, const std::string& name) {
    const auto found = std::find_if(regression.metrics.begin(), regression.metrics.end(),
                                    [&](const MetricFinding& one) { return one.name == name; });
    REQUIRE(found != regression.metrics.end());
    return *found;
}

}  // namespace

TEST_CASE("regression of runs: nothing has passed where all metrics are too noisy; p99 needs a thousand calls") {
    std::vector<RunRecord> old = runs_of(10, 30), now = runs_of(10.8, 30);
    for (std::vector<RunRecord>* const side : {&old, &now}) {
        for (RunRecord& run : *side) {
            run.kinds["read"].ops = 999;
            run.kinds["read"].p50 *= run.elapsed_s;
        }
    }
    const Regression noisy = regression_of({"old", "new", old, now}, {}, false);
    CHECK(noisy.metrics.size() == 3);  // elapsed, throughput, read.p50
    CHECK(noisy.finding() == Finding::noisy);
    CHECK(noisy.undecided());
    CHECK_FALSE(noisy.passed());
    CHECK(noisy.sentences().front().starts_with("NO VERDICT: all metrics are too noisy"));
}

TEST_CASE("regression of runs: what got worse is said first, and fails") {
    const Regression regression = regression_of({"old", "new", runs_of(10), runs_of(11)}, {}, false);
    CHECK_FALSE(regression.passed());
    CHECK(regression.finding() == Finding::worse);
    CHECK(metric(regression, "elapsed").finding == Finding::worse);
    CHECK(metric(regression, "throughput").finding == Finding::worse);
    CHECK(metric(regression, "read.p99").finding == Finding::same);
    CHECK(regression.metrics.size() == 4);  // neither fstat nor fsync
    CHECK(regression.sentences().front().starts_with("WORSE: elapsed +10.0 % (95 %: +"));
    CHECK(regression.notes.empty());
    CHECK(regression_of({"old", "new", runs_of(11), runs_of(10)}, {}, false).finding() == Finding::better);
    const Regression same = regression_of({"old", "new", runs_of(10), runs_of(10)}, {}, false);
    CHECK(same.passed());
    CHECK(same.sentences() == std::vector<std::string>{"SAME: no change that matters."});
    Thresholds wide;
    wide.add("elapsed=20%");
    wide.add("throughput = 20 %");
    CHECK(regression_of({"old", "new", runs_of(10), runs_of(11)}, wide, false).passed());
}

TEST_CASE("regression of runs: one run per side gives no interval, and does not pass") {
    const Regression regression = regression_of({"A", "B", {run_of(10)}, {run_of(10)}}, {}, false);
    CHECK_FALSE(regression.passed());
    CHECK(regression.sentences().front() ==
          "NO VERDICT: one run per side: no interval can be given; from 5 runs per side on it can be told.");
    CHECK(regression_json(regression)["metrics"][0]["a"].count("low") == 0);
}

TEST_CASE("regression of runs: doubtful ones are marked, and left out where that is asked for") {
    RegressionSides sides{"A", "B", runs_of(10), runs_of(10)};
    sides.b[0].trust = "poor";
    sides.b[0].reason = "it was late";
    sides.b[1].losses = "3 lost_events";
    sides.a[2].ended = "interrupted: SIGINT";
    Regression regression = regression_of(sides, {}, false);
    REQUIRE(regression.marked.size() == 3);
    CHECK(regression.marked[0].why == "interrupted: SIGINT");
    CHECK(regression.marked[1].why == "POOR: it was late");
    CHECK(regression.marked[2].why == "LOSSES: 3 lost_events");
    CHECK(regression.runs_b == 8);
    regression = regression_of(sides, {}, true);
    CHECK(regression.runs_a == 7);
    CHECK(regression.runs_b == 6);
    CHECK(regression.marked[0].left_out);
    for (RunRecord& run : sides.b) {
        run.trust = "poor";
    }
    CHECK(error_of([&] { regression_of(sides, {}, true); }).find("no run of B can be believed") != std::string::npos);
}

TEST_CASE("regression of runs: other recordings and other options are refused, other machines are named") {
    RegressionSides sides{"A", "B", runs_of(10), runs_of(10)};
    const auto refused = [&] { return error_of([&] { regression_of(sides, {}, false); }); };
    sides.b[3].recording = "r2";
    CHECK(refused().find("are runs of different recordings") != std::string::npos);
    sides.b[3] = run_of(10);
    sides.b[3].conditions["what_if"] = "--gpu-speed 2";
    CHECK(refused().find("what_if '") != std::string::npos);
    sides.b[3] = run_of(10);
    sides.b[3].ops = 100;
    CHECK(refused().find("differ too much") != std::string::npos);
    sides.b[3] = run_of(10);
    sides.b[3].ended = "";
    CHECK(refused().find("one is a run and the other a recording") != std::string::npos);
    sides.b[3] = run_of(10);
    for (RunRecord& run : sides.b) {
        run.kernel = "6.2";
        run.clock = "realtime";
    }
    CHECK(regression_of(sides, {}, false).notes ==
          std::vector<std::string>{"The kernel differs: A 6.1; B 6.2.", "The clock differs: A monotonic; B realtime."});
}

TEST_CASE("regression of runs: a cold side and a warm one do not pass, whatever is better") {
    RegressionSides sides{"cold", "warm", runs_of(11), runs_of(10)};
    for (RunRecord& run : sides.a) {
        run.device_share = 1.6;  // read ahead
    }
    for (RunRecord& run : sides.b) {
        run.device_share = 1.0;
    }
    CHECK(regression_of(sides, {}, false).passed());
    for (RunRecord& run : sides.b) {
        run.device_share = 0.0;
    }
    const Regression regression = regression_of(sides, {}, false);
    CHECK(regression.finding() == Finding::better);
    CHECK_FALSE(regression.passed());
    CHECK(regression.sentences().front().starts_with(
        "NOT COMPARABLE: the page cache differs between the sides: the device served 100 % of the bytes read in cold "
        "and 0 % in warm"));
    for (RunRecord& run : sides.b) {
        run.device_share.reset();
    }
    CHECK(regression_of(sides, {}, false).passed());
}

TEST_CASE("regression of runs: other cache regimes are named, and do not pass where nobody counted what was read") {
    RegressionSides sides{"A", "B", runs_of(10), runs_of(10)};
    const auto regimes = [&](const char* a, const char* b) {
        for (RunRecord& run : sides.a) {
            run.cache = a;
        }
        for (RunRecord& run : sides.b) {
            run.cache = b;
        }
        return regression_of(sides, {}, false);
    };
    CHECK(regimes("cold", "cold").notes.empty());
    CHECK(regimes("", "cold").notes.empty());  // a record of before
    const Regression other = regimes("cold", "warm");
    CHECK(other.notes == std::vector<std::string>{"The cache regime differs: A cold; B warm."});
    CHECK_FALSE(other.passed());
    CHECK(other.sentences()[0].starts_with(
        "NOT COMPARABLE: the cache regime differs, and what the device served is not known: A cold; B warm, so "));
    for (auto* side : {&sides.a, &sides.b}) {
        for (RunRecord& run : *side) {
            run.device_share = 1.0;  // what was found in memory did not matter
        }
    }
    const Regression alike = regimes("cold", "as-is");
    CHECK(alike.notes.size() == 1);
    CHECK(alike.passed());
    sides.a[0].cache = "warm";
    CHECK(regression_of(sides, {}, false).notes ==
          std::vector<std::string>{"The cache regime differs: A cold, warm; B as-is."});
}

TEST_CASE("thresholds: by name, of all kinds, from a file; unknown names say what is near") {
    Thresholds thresholds;
    thresholds.add("p99=30%");
    thresholds.add("read.p99=1%");
    CHECK(thresholds.of("read.p99") == doctest::Approx(0.01));
    CHECK(thresholds.of("open.p99") == doctest::Approx(0.3));
    CHECK(thresholds.of("open.p50") == doctest::Approx(0.05));
    CHECK(thresholds.of("elapsed") == doctest::Approx(0.02));
    CHECK(error_of([&] { thresholds.add("elapsd=3%"); }).find("did you mean elapsed?") != std::string::npos);
    CHECK(error_of([&] { thresholds.add("elapsed=3"); }).find("is not a share such as 5%") != std::string::npos);
    CHECK(error_of([&] { thresholds.add("elapsed"); }).find("is not METRIC=SHARE") != std::string::npos);
    const test::TempDir folder;
    const std::string file = (folder.path() / "t").string();
    write_text(file, "# limits\n\nelapsed = 7 %  # wide\nraed.p50=1%\n");
    CHECK(error_of([&] { thresholds.read(file); }).find("t:4: 'raed.p50' is not a metric; did you mean read.p50") !=
          std::string::npos);
    write_text(file, "elapsed = 7%\n");
    thresholds.read(file);
    CHECK(thresholds.of("elapsed") == doctest::Approx(0.07));
    CHECK(error_of([&] { thresholds.read(file + "x"); }).find("cannot be read") != std::string::npos);
}

TEST_CASE("regression: files for CI, with names that try to be markup") {
    Regression regression = regression_of({"<b>\"A", "B|`", runs_of(10), runs_of(11)}, {}, false);
    const RegressionCase one{
        "job<script>", {{"tree", {"/a&b \x01 is gone"}, ""}, {"content", {}, "no --verify"}}, {regression}};
    const std::string xml = junit_xml("x", {one});
    CHECK(xml.find("<testsuite name=\"x\" tests=\"6\" failures=\"3\" errors=\"0\" skipped=\"1\">") !=
          std::string::npos);
    CHECK(xml.find("job&lt;script&gt;") != std::string::npos);
    CHECK(xml.find("/a&amp;b \\x01 is gone") != std::string::npos);
    CHECK(xml.find("<script>") == std::string::npos);
    const std::string markdown = markdown_text("x", {one});
    CHECK(markdown.find("<b>") == std::string::npos);
    CHECK(markdown.find("| elapsed | 10.0 s | 11.0 s | +10.0 % |") != std::string::npos);
    CHECK(markdown.find("**WORSE**: elapsed") != std::string::npos);
    CHECK(markdown.find("B\\|\\`") != std::string::npos);
    CHECK(markdown.find("- tree: **FAILED**") != std::string::npos);
}

TEST_CASE("run records survive being stored") {
    RunRecord run = run_of(10);
    run.au = 0.75;
    CHECK(run_record_of(to_json(run)) == run);
    run.au.reset();
    CHECK(run_record_of(to_json(run)) == run);
    run.requests = {51'200, 2e9, 4e6, 5e6};
    run.cache = "cold";
    CHECK(run_record_of(to_json(run)).cache == "cold");
    CHECK(run_record_of(to_json(run)) == run);
    auto json = to_json(run);
    json.erase("requests");  // of a record of before
    json.erase("cache");
    CHECK(run_record_of(json).cache.empty());
    CHECK(run_record_of(json).requests.ops == 0);
}

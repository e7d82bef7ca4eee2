// SPDX-License-Identifier: MIT
#include "cli/run_series.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "calibrate/clock.h"
#include "cli/units.h"
#include "formats/support/error.h"

namespace reprise::cli {
namespace {

double seconds_of(int64_t ns) { return static_cast<double>(ns) / 1e9; }
std::string duration(double seconds) { return format_duration(std::llround(seconds * 1e9)); }

double less(double after, double before) { return after < 0 || before < 0 ? -1 : after - before; }

Surroundings surroundings(const ReplayResult& result, const ThrottleCounters& before, const ThrottleCounters& after) {
    Surroundings out;
    out.cpus = std::max(result.machine.cpus, 1);
    out.stolen_cpus = result.fidelity.stolen_cpus;
    out.other_cpus = result.fidelity.other_cpus;
    out.throttled_s = less(after.quota_s, before.quota_s);
    out.overheated = less(after.overheated, before.overheated);
    if (result.device_counter && result.device_read_bytes) {
        out.device_bytes = static_cast<double>(result.device_counter->read_bytes);
        out.own_bytes = static_cast<double>(*result.device_read_bytes);
    }
    out.elapsed_ns = result.elapsed_ns;
    return out;
}

/// "after 3 us CPU ...; ..."
std::string joined(const std::vector<std::string>& sentences) {
    std::string text;
    for (const std::string& one : sentences) {
        text += (text.empty() ? "" : "; ") + one;
    }
    return text;
}

Cell cpus_cell(double cpus) { return cpus < 0 ? Cell("-", nullptr) : number_cell(cpus, 2); }

}  // namespace

void add_series_options(po::options_description& add) {
    add.add_options()("runs", po::value<unsigned>()->value_name("N"),
                      "replay N times, the root restored in between; median, interval, disturbed runs")(
        "until-stable", po::value<std::string>()->value_name("TIME"),
        "more runs until N are undisturbed and agree within 2.5 %, for at most TIME");
}

SeriesGoal series_goal(const po::variables_map& values) {
    constexpr unsigned kMost = 1'000, kOfStable = 5;
    SeriesGoal goal;
    if (values.count("until-stable") != 0) {
        const int64_t most = parse_duration(values["until-stable"].as<std::string>(), "--until-stable");
        if (most <= 0) {
            throw usage_error("--until-stable requires a time above 0", "e.g. --until-stable 10min");
        }
        goal.until_stable_s = seconds_of(most);
        goal.runs = kOfStable;
    }
    if (values.count("runs") != 0) {
        const auto runs = values["runs"].as<unsigned>();
        if (runs == 0 || runs > kMost) {
            throw usage_error("--runs is " + std::to_string(runs), "expected a number of runs from 1 to 1000");
        }
        goal.runs = runs;
    }
    return goal;
}

void RunSeries::run(const std::function<SeriesRun(size_t)>& run) {
    const int64_t begin = monotonic_ns();
    do {
        const ThrottleCounters before = read_throttle_counters();
        SeriesRun one = run(runs_.size() + 1);
        const ThrottleCounters after = read_throttle_counters();
        RunOutcome outcome;
        outcome.seconds = seconds_of(one.result.elapsed_ns);
        outcome.valid =
            one.result.ended == "complete" && one.result.not_same_job.empty() && one.result.fidelity.failures.empty();
        outcome.disturbed = disturbances(surroundings(one.result, before, after));
        runs_.push_back(std::move(one));
        outcomes_.push_back(std::move(outcome));
    } while (finished() && !series_done(goal_, outcomes_, seconds_of(monotonic_ns() - begin)));
    verdict_ = judge_series(outcomes_);
}

bool RunSeries::believed() const {
    const auto valid =
        std::count_if(outcomes_.begin(), outcomes_.end(), [](const RunOutcome& one) { return one.valid; });
    return 2 * static_cast<size_t>(valid) >= outcomes_.size() && valid != 0;
}

Table RunSeries::table() const {
    Table table({{"run", "run", true},
                 {"elapsed", "elapsed_ns", true},
                 {"device read", "device_read_bytes", true},
                 {"steal", "stolen_cpus", true},
                 {"others", "other_cpus", true},
                 {"", "note"}});
    for (size_t i = 0; i < runs_.size(); ++i) {
        const ReplayResult& result = runs_[i].result;
        std::string note;
        if (result.ended != "complete") {
            note = result.ended;
        } else if (!result.not_same_job.empty()) {
            note = "NOT THE SAME JOB";
        } else if (!result.fidelity.failures.empty()) {
            note = "NOT FAITHFUL";
        } else if (!outcomes_[i].disturbed.empty()) {
            note = "disturbed: " + joined(outcomes_[i].disturbed);
        } else if (std::find(verdict_.odd.begin(), verdict_.odd.end(), i) != verdict_.odd.end()) {
            note = "far from the others, no cause found";
        }
        table.row({count_cell(i + 1), duration_cell(result.elapsed_ns),
                   result.device_read_bytes ? bytes_cell(*result.device_read_bytes) : Cell("-", nullptr),
                   cpus_cell(result.fidelity.stolen_cpus), cpus_cell(result.fidelity.other_cpus), note});
    }
    return table;
}

void RunSeries::print_verdict(std::ostream& out) const {
    const MedianInterval& seconds = verdict_.seconds;
    if (verdict_.counted.empty()) {
        out << "no run of " << runs_.size() << " can be believed\n";
        return;
    }
    const size_t left = runs_.size() - verdict_.counted.size();
    out << "median of " << counted(verdict_.counted.size(), "run") << ": " << duration(seconds.median) << " (recorded "
        << format_duration(median_run().result.recorded_ns) << ")";
    if (verdict_.counted.size() > 1) {
        out << ", between " << duration(seconds.low) << " and " << duration(seconds.high) << " with "
            << std::llround(seconds.level * 100) << " % confidence";
        if (seconds.level < 0.95) {
            out << " (6 runs give 95 %)";
        }
    }
    out << "\n";
    if (left != 0) {
        out << counted(left, "run") << " left out: disturbed or not valid\n";
    }
    if (verdict_.disturbed_counted) {
        out << "warning: most runs were disturbed, so disturbed ones count, too; --until-stable TIME repeats them\n";
    }
    if (verdict_.drift) {
        out << "drift: each run took " << format_share(std::abs(*verdict_.drift))
            << (*verdict_.drift > 0 ? " longer" : " less") << " than the one before\n";
    }
}

void RunSeries::print(std::ostream& out) const {
    print_verdict(out);
    out << "\n";
    table().print(out, 2);
    out << "\nrun " << verdict_.median_run + 1 << ", the one nearest to the median:\n";
}

Json RunSeries::json() const {
    const MedianInterval& seconds = verdict_.seconds;
    Json rows = table().json();
    for (size_t i = 0; i < runs_.size(); ++i) {
        rows[i]["valid"] = outcomes_[i].valid;
        rows[i]["disturbed"] = outcomes_[i].disturbed;
        rows[i]["counted"] = std::find(verdict_.counted.begin(), verdict_.counted.end(), i) != verdict_.counted.end();
    }
    const bool any = !verdict_.counted.empty();
    return {{"runs", std::move(rows)},
            {"counted", verdict_.counted.size()},
            {"disturbed_counted", verdict_.disturbed_counted},
            {"median_s", any ? Json(seconds.median) : Json(nullptr)},
            {"low_s", any ? Json(seconds.low) : Json(nullptr)},
            {"high_s", any ? Json(seconds.high) : Json(nullptr)},
            {"confidence", seconds.level},
            {"drift_per_run", verdict_.drift ? Json(*verdict_.drift) : Json(nullptr)},
            {"median_run", verdict_.median_run + 1}};
}

}  // namespace reprise::cli

// SPDX-License-Identifier: MIT
#include "cli/run_series.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "calibrate/clock.h"
#include "cli/recordings.h"
#include "cli/show_verdict.h"
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

/// Why a run is not valid, in a word and a sentence; empty: it is.
std::string why_not_valid(const ReplayResult& result) {
    if (result.ended != "complete") {
        return result.ended;
    }
    if (!result.not_same_job.empty()) {
        return "NOT THE SAME JOB: " + result.not_same_job.front();
    }
    if (const std::string why = not_measured(result); !why.empty()) {
        return "NOT MEASURED: " + why;
    }
    return result.fidelity.failures.empty() ? "" : "NOT FAITHFUL: " + result.fidelity.failures.front();
}

std::string without_stop(std::string text) {
    if (text.ends_with('.')) {
        text.pop_back();
    }
    return text;
}

void print_wrapped(std::ostream& out, const std::string& text) {
    for (const std::string& line : wrapped("", text)) {
        out << line << "\n";
    }
}

Cell cpus_cell(double cpus) { return cpus < 0 ? Cell("-", nullptr) : number_cell(cpus, 2); }

}  // namespace

void add_series_options(po::options_description& add) {
    add.add_options()("runs", po::value<std::string>()->value_name("N"),
                      "replay N times, the root restored in between; median, interval, disturbed runs")(
        "until-stable", po::value<std::string>()->value_name("TIME"),
        "more runs until N are undisturbed and agree within 2.5 %, for at most TIME");
}

bool is_series(const po::variables_map& values) {
    return values.count("runs") != 0 || values.count("until-stable") != 0;
}

SeriesGoal series_goal(const po::variables_map& values) {
    constexpr size_t kOfStable = 5;
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
        goal.runs = wanted_runs(values);
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
        outcome.valid = why_not_valid(one.result).empty();
        outcome.disturbed = disturbances(surroundings(one.result, before, after));
        runs_.push_back(std::move(one));
        outcomes_.push_back(std::move(outcome));
    } while (finished() && !series_done(goal_, outcomes_, seconds_of(monotonic_ns() - begin)));
    verdict_ = judge_series(outcomes_);
    widen();
}

/// The runs tell how much they vary, which a single one does not.
void RunSeries::widen() {
    ReplayResult& result = runs_[verdict_.median_run].result;
    if (!result.interval) {
        return;
    }
    std::vector<double> seconds;
    for (const size_t run : verdict_.counted) {
        seconds.push_back(outcomes_[run].seconds);
    }
    result.errors_from.runs = scatter_of(seconds);
    result.errors_from.shown_ns = result.elapsed_ns;
    result.errors_from.elapsed_ns = std::llround(verdict_.seconds.median * 1e9);
    result.interval = interval_of(result.errors_from);
}

bool RunSeries::believed() const {
    const auto valid =
        std::count_if(outcomes_.begin(), outcomes_.end(), [](const RunOutcome& one) { return one.valid; });
    return 2 * static_cast<size_t>(valid) >= outcomes_.size() && valid != 0 && did_one_job();
}

/// What a run did depends on its root and not on chance: where one was not the same job, the others may be wrong, too.
bool RunSeries::did_one_job() const {
    return std::all_of(runs_.begin(), runs_.end(), [](const SeriesRun& one) {
        return one.result.not_same_job.empty() || one.result.ended != "complete";
    });
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

/// "not stable after 10 min: ..."; empty where that was not asked for, or is.
std::string RunSeries::not_stable() const {
    if (!goal_.until_stable_s || series_stable(goal_, outcomes_) || !finished()) {
        return {};
    }
    const auto good = static_cast<size_t>(
        std::count_if(outcomes_.begin(), outcomes_.end(), [](const RunOutcome& one) { return one.counts(); }));
    std::string text = "NOT STABLE after " + duration(*goal_.until_stable_s) + ": ";
    if (good < goal_.runs) {
        text += counted(good, "run") + " of " + std::to_string(runs_.size()) + " valid and undisturbed, " +
                std::to_string(goal_.runs) + " wanted; ";
    }
    if (good == 0) {
        text.resize(text.size() - 2);
        return text + ".";
    }
    return text + "the interval is within " + format_share(verdict_.seconds.half_width()) + " of the median, " +
           format_share(kStable) + " wanted.";
}

/// "run 2: steal time: ...", the first run of which `reason` says something, and how many there are.
std::string RunSeries::example(const std::function<std::string(size_t)>& reason) const {
    std::string text;
    size_t all = 0;
    for (size_t i = 0; i < runs_.size(); ++i) {
        const std::string one = without_stop(reason(i));
        all += one.empty() ? 0 : 1;
        if (text.empty() && !one.empty()) {
            text = "run " + std::to_string(i + 1) + ": " + one;
        }
    }
    return all > 1 ? text + "; and " + counted(all - 1, "other run") : text;
}

void RunSeries::print_reasons(std::ostream& out) const {
    const auto not_valid = [&](size_t run) { return why_not_valid(runs_[run].result); };
    const auto disturbed = [&](size_t run) { return joined(outcomes_[run].disturbed); };
    const auto any = [&](size_t run) {
        const std::string why = not_valid(run);
        return !why.empty() ? why : disturbed(run);
    };
    const auto valid = static_cast<size_t>(
        std::count_if(outcomes_.begin(), outcomes_.end(), [](const RunOutcome& one) { return one.valid; }));
    if (!believed()) {
        print_wrapped(out, "DO NOT TRUST: " + std::to_string(valid) + " of " + counted(runs_.size(), "run") +
                               " can be believed (" + example(not_valid) + ").");
    }
    if (const std::string text = not_stable(); !text.empty()) {
        print_wrapped(out, text);
    }
    if (verdict_.disturbed_counted) {
        print_wrapped(out, "warning: most runs were disturbed (" + example(disturbed) +
                               "), so disturbed ones count, too; --until-stable TIME repeats them");
    } else if (const size_t left = runs_.size() - verdict_.counted.size(); left != 0 && believed()) {
        print_wrapped(out, counted(left, "run") + " left out (" + example(any) + ").");
    }
}

void RunSeries::print_verdict(std::ostream& out) const {
    print_reasons(out);
    const MedianInterval& seconds = verdict_.seconds;
    if (verdict_.counted.empty()) {
        return;
    }
    out << "median of " << counted(verdict_.counted.size(), "run") << ": " << duration(seconds.median) << " ("
        << recorded_word(median_run().result) << " " << format_duration(median_run().result.recorded_ns) << ")";
    if (verdict_.counted.size() > 1) {
        out << ", between " << duration(seconds.low) << " and " << duration(seconds.high) << " with "
            << std::llround(seconds.level * 100) << " % confidence";
        if (seconds.level < 0.95) {
            out << " (6 runs give 95 %)";
        }
        out << (goal_.until_stable_s && not_stable().empty() ? ": stable" : "");
    }
    out << "\n";
    if (verdict_.drift) {
        out << "drift: each run took " << format_share(std::abs(*verdict_.drift))
            << (*verdict_.drift > 0 ? " longer" : " less") << " than the one before\n";
    }
}

void RunSeries::print(std::ostream& out) const {
    const std::string& what_if = median_run().result.what_if;
    const std::string sentence = what_if.empty() ? "" : what_if_sentence(what_if) + "\n";
    const bool wrong = !believed();  // says so first
    out << (wrong ? "" : sentence);
    print_verdict(out);
    out << (wrong ? sentence : "");
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
            {"stable", goal_.until_stable_s ? Json(series_stable(goal_, outcomes_)) : Json(nullptr)},
            {"drift_per_run", verdict_.drift ? Json(*verdict_.drift) : Json(nullptr)},
            {"median_run", verdict_.median_run + 1}};
}

}  // namespace reprise::cli

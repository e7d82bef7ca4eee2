// SPDX-License-Identifier: MIT
#include "cli/regression_runs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>
#include <set>

#include "cli/table.h"
#include "cli/units.h"
#include "formats/support/error.h"
#include "formats/support/percentile.h"

namespace reprise::cli {
namespace {

using Runs = std::vector<RunRecord>;
using FigureOf = std::function<double(const RunRecord&)>;

/// Kinds of calls that are worth a metric: at least so many calls in each run, and this share of the time in calls.
constexpr uint64_t kLeastCalls = 100;
constexpr uint64_t kLeastForP99 = 1000;  // ten calls are beyond it
constexpr double kLeastShare = 0.01;

std::vector<double> figures(const Runs& runs, const FigureOf& figure) {
    std::vector<double> out;
    out.reserve(runs.size());
    for (const RunRecord& run : runs) {
        out.push_back(figure(run));
    }
    return out;
}

bool in_all(const Runs& runs, const std::function<bool(const RunRecord&)>& has) {
    return std::all_of(runs.begin(), runs.end(), has);
}

double time_in_calls(const Runs& runs) {
    double time = 0;
    for (const RunRecord& run : runs) {
        for (const auto& [name, kind] : run.kinds) {
            time += kind.time;
        }
    }
    return time;
}

/// Kinds that matter on either side, and are in all runs.
std::vector<std::string> kinds_that_matter(const Runs& a, const Runs& b) {
    std::vector<std::string> out;
    for (const auto& [name, first] : a.front().kinds) {
        const auto often = [&, kind = name](const RunRecord& run) {
            const auto found = run.kinds.find(kind);
            return found != run.kinds.end() && found->second.ops >= kLeastCalls;
        };
        if (!in_all(a, often) || !in_all(b, often)) {
            continue;
        }
        const auto share = [kind = name](const Runs& runs) {
            double time = 0;
            for (const RunRecord& run : runs) {
                time += run.kinds.at(kind).time;
            }
            return time / std::max(time_in_calls(runs), 1.0);
        };
        if (std::max(share(a), share(b)) >= kLeastShare) {
            out.push_back(name);
        }
    }
    return out;
}

std::vector<MetricRuns> metrics_of(const Runs& a, const Runs& b, const Thresholds& thresholds) {
    std::vector<MetricRuns> out;
    const auto add = [&](const std::string& name, bool more_is_better, bool headline, const FigureOf& figure) {
        out.push_back({name, more_is_better, headline, thresholds.of(name), figures(a, figure), figures(b, figure)});
    };
    const auto moves = [](const RunRecord& run) { return run.bytes > 0 && run.elapsed_s > 0; };
    const auto accelerated = [](const RunRecord& run) { return run.au.has_value(); };
    add("elapsed", false, true, [](const RunRecord& run) { return run.elapsed_s * 1e9; });
    if (in_all(a, moves) && in_all(b, moves)) {
        add("throughput", true, true, [](const RunRecord& run) { return run.bytes / run.elapsed_s; });
    }
    if (in_all(a, accelerated) && in_all(b, accelerated)) {
        add("au", true, true, [](const RunRecord& run) { return *run.au; });
    }
    const auto requests = [](const RunRecord& run) { return run.requests.ops >= kLeastCalls; };
    const auto many_requests = [](const RunRecord& run) { return run.requests.ops >= kLeastForP99; };
    if (in_all(a, requests) && in_all(b, requests)) {
        add("request.p50", false, false, [](const RunRecord& run) { return run.requests.p50; });
        if (in_all(a, many_requests) && in_all(b, many_requests)) {
            add("request.p99", false, false, [](const RunRecord& run) { return run.requests.p99; });
        }
    }
    for (const std::string& kind : kinds_that_matter(a, b)) {
        add(kind + ".p50", false, false, [&](const RunRecord& run) { return run.kinds.at(kind).p50; });
        const auto many = [&](const RunRecord& run) { return run.kinds.at(kind).ops >= kLeastForP99; };
        if (in_all(a, many) && in_all(b, many)) {
            add(kind + ".p99", false, false, [&](const RunRecord& run) { return run.kinds.at(kind).p99; });
        }
    }
    return out;
}

/// Runs that count; the others are marked.
Runs counted_runs(const Runs& runs, bool exclude, std::vector<MarkedRun>& marked) {
    Runs out;
    for (const RunRecord& run : runs) {
        const std::string doubt = run.doubt();
        if (!doubt.empty()) {
            marked.push_back({printable(run.path), printable(doubt), exclude});
        }
        if (doubt.empty() || !exclude) {
            out.push_back(run);
        }
    }
    return out;
}

std::vector<PlaceDifference> place_differences(const Runs& a, const Runs& b) {
    std::set<std::string> names;
    for (const Runs* const runs : {&a, &b}) {
        for (const RunRecord& run : *runs) {
            for (const auto& [place, ns] : run.places) {
                names.insert(place);
            }
        }
    }
    std::vector<PlaceDifference> out;
    for (const std::string& place : names) {
        const FigureOf ns = [&](const RunRecord& run) {
            const auto found = run.places.find(place);
            return found != run.places.end() ? found->second : 0.0;
        };
        out.push_back({place, median(figures(a, ns)), median(figures(b, ns))});
    }
    return out;
}

/// The values of one fact on one side, with commas between them.
std::string values_of(const Runs& runs, std::string RunRecord::*fact) {
    std::set<std::string> values;
    for (const RunRecord& run : runs) {
        values.insert(run.*fact);
    }
    std::string text;
    for (const std::string& value : values) {
        text += (text.empty() ? "" : ", ") + (value.empty() ? "unknown" : printable(value));
    }
    return text;
}

/// "A cold; B warm", where runs began with different things in memory (replay --cache); empty: they did not, or it is
/// not known of some.
std::string other_regimes(const RegressionSides& sides) {
    const std::string a = values_of(sides.a, &RunRecord::cache), b = values_of(sides.b, &RunRecord::cache);
    const std::string both = a + ", " + b;
    if (a == b && a.find(", ") == std::string::npos) {
        return {};
    }
    return both.find("unknown") != std::string::npos ? "" : sides.name_a + " " + a + "; " + sides.name_b + " " + b;
}

void note_differences(const RegressionSides& sides, std::vector<std::string>& notes) {
    struct Fact {
        const char* what;
        std::string RunRecord::*value;
    };
    for (const Fact& fact :
         {Fact{"machine", &RunRecord::host}, Fact{"kernel", &RunRecord::kernel}, Fact{"clock", &RunRecord::clock}}) {
        const std::string a = values_of(sides.a, fact.value), b = values_of(sides.b, fact.value);
        if (a != b || a.find(", ") != std::string::npos) {
            notes.push_back("The " + std::string(fact.what) + " differs: " + sides.name_a + " " + a + "; " +
                            sides.name_b + " " + b + ".");
        }
    }
    if (const std::string regimes = other_regimes(sides); !regimes.empty()) {
        notes.push_back("The cache regime differs: " + regimes + ".");
    }
}

/// Where the median runs found other things in memory; empty: they did not, or nobody counted.
std::string other_cache(const RegressionSides& sides) {
    constexpr double kApart = 0.2;
    constexpr const char* kAlike =
        ", so the times differ whatever the storage does (replay --cache cold makes them alike).";
    const std::vector<double> a = device_shares(sides.a), b = device_shares(sides.b);
    const std::string regimes = a.empty() || b.empty() ? other_regimes(sides) : "";
    if (!regimes.empty()) {
        return "NOT COMPARABLE: the cache regime differs, and what the device served is not known: " + regimes + kAlike;
    }
    if (a.empty() || b.empty() || std::abs(median(a) - median(b)) <= kApart) {
        return {};
    }
    return "NOT COMPARABLE: the page cache differs between the sides: the device served " + whole_percent(median(a)) +
           " of the bytes read in " + sides.name_a + " and " + whole_percent(median(b)) + " in " + sides.name_b +
           kAlike;
}

std::string change_text(const MetricFinding& one) {
    if (!one.change) {
        return one.name + " from 0 to " + metric_value(one.name, one.b.median);
    }
    return one.name + " " + signed_share(one.change->median) + " (95 %: " + signed_share(one.change->low) + " to " +
           signed_share(one.change->high) + ")";
}

std::string listed(const std::vector<MetricFinding>& metrics, Finding wanted,
                   const std::function<std::string(const MetricFinding&)>& text_of) {
    std::string text;
    for (const MetricFinding& one : metrics) {
        if (one.finding == wanted) {
            text += (text.empty() ? "" : ", ") + text_of(one);
        }
    }
    return text;
}

}  // namespace

std::vector<double> device_shares(const std::vector<RunRecord>& runs) {
    std::vector<double> out;
    for (const RunRecord& run : runs) {
        if (run.device_share) {
            out.push_back(std::min(*run.device_share, 1.0));
        }
    }
    return out;
}

std::string whole_percent(double share) { return std::to_string(std::llround(share * 100)) + " %"; }

std::string signed_share(double share) {
    char text[48];
    std::snprintf(text, sizeof text, "%+.1f %%", share * 100);
    return text;
}

std::string metric_value(const std::string& metric, double value) {
    if (metric == "throughput") {
        return format_rate(value);
    }
    return metric == "au" ? format_share(value) : format_duration(std::llround(value));
}

bool Regression::undecided() const {
    return std::all_of(metrics.begin(), metrics.end(), [](const MetricFinding& one) {
        return one.finding == Finding::few || one.finding == Finding::noisy;
    });
}

std::vector<std::string> Regression::sentences() const {
    std::vector<std::string> out;
    if (!other_cache.empty()) {
        out.push_back(other_cache);
    }
    const auto add = [&](Finding wanted, const std::string& begin, const auto& text_of) {
        if (const std::string text = listed(metrics, wanted, text_of); !text.empty()) {
            out.push_back(begin + text + ".");
        }
    };
    add(Finding::worse, "WORSE: ", change_text);
    if (finding() == Finding::few) {
        const bool single = runs_a == 1 && runs_b == 1;
        out.push_back("NO VERDICT: " +
                      (single ? "one run per side: no interval can be given"
                              : counted(runs_a, "run") + " against " + std::to_string(runs_b) +
                                    " are too few to tell a change from chance") +
                      "; from " + std::to_string(least_runs(3, kChance / 2)) + " runs per side on it can be told.");
    } else if (undecided()) {
        out.emplace_back(
            "NO VERDICT: all metrics are too noisy; use more runs, a quieter machine, or a larger --threshold.");
    }
    add(Finding::better, "BETTER: ", change_text);
    add(Finding::noisy, "TOO NOISY: ", [](const MetricFinding& one) {
        return one.name + " (a change of less than " + format_share(*one.detectable) + " may not show)";
    });
    if (finding() == Finding::same) {
        out.emplace_back("SAME: no change that matters.");
    }
    return out;
}

Regression regression_of(const RegressionSides& sides, const Thresholds& thresholds, bool exclude) {
    Regression out;
    out.side_a = sides.name_a;
    out.side_b = sides.name_b;
    Runs all = sides.a;
    all.insert(all.end(), sides.b.begin(), sides.b.end());
    check_same_job(all);
    const Runs a = counted_runs(sides.a, exclude, out.marked), b = counted_runs(sides.b, exclude, out.marked);
    if (a.empty() || b.empty()) {
        throw usage_error("no run of " + (a.empty() ? sides.name_a : sides.name_b) + " can be believed (" +
                              out.marked.front().run + ": " + out.marked.front().why + ")",
                          "make the runs again, or leave out --exclude-doubtful");
    }
    out.runs_a = a.size();
    out.runs_b = b.size();
    note_differences(sides, out.notes);
    out.other_cache = other_cache({sides.name_a, sides.name_b, a, b});
    out.runs = metrics_of(a, b, thresholds);
    out.metrics = judge_metrics(out.runs);
    out.places = place_differences(a, b);
    return out;
}

}  // namespace reprise::cli

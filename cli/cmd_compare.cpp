// SPDX-License-Identifier: MIT
// `reprise compare`: two logs side by side, or runs of A against runs of B.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "analyze/compare.h"
#include "analyze/verdict.h"
#include "cli/command.h"
#include "cli/compare_runs.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/progress.h"
#include "cli/show_regression.h"
#include "cli/show_requests.h"
#include "cli/show_summary.h"
#include "cli/show_verdict.h"
#include "cli/table.h"
#include "cli/units.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/part_of_job.h"
#include "formats/oplog/result_text.h"
#include "formats/support/error.h"
#include "replay/prepare/root_marker.h"

namespace reprise::cli::compare_command {
namespace {

void options(po::options_description& options) {
    options.add_options()("tolerance", po::value<std::vector<std::string>>()->composing()->value_name("CHECK=T"),
                          "allowed difference of a check: a number, a time or size such as 5ms, a share of A such as "
                          "5%, or none (any); may "
                          "be repeated");
    options.add_options()("examples", po::value<std::string>()->default_value("10")->value_name("N"),
                          "number of differing ops to show");
    options.add_options()("against",
                          po::value<std::vector<std::string>>()->multitoken()->composing()->value_name("B..."),
                          "runs that the others are compared with: did anything get worse?");
    add_regression_options(options);
    add_json_option(options);
    add_recover_option(options);
}

std::string shown(Check::Unit unit, const std::optional<double>& value) {
    if (!value) {
        return "-";
    }
    const auto whole = static_cast<uint64_t>(std::max(0.0, *value));
    switch (unit) {
        case Check::Unit::count: return format_count(whole);
        case Check::Unit::bytes: return format_bytes(whole);
        case Check::Unit::ns: return format_duration(static_cast<int64_t>(whole));
        case Check::Unit::bytes_per_s: return format_rate(*value);
        case Check::Unit::share: return format_share(*value);
    }
    return "?";
}

// Signed change of B against A, if that is meaningful.
std::string change(const Check& check) {
    char text[64];
    if (!check.a || !check.b) {
        return check.a ? "only in A" : "only in B";
    }
    if (check.unit == Check::Unit::count) {
        return check.difference > 0 ? shown(check.unit, check.difference) + " differ" : "same";
    }
    if (*check.a == *check.b) {
        return "same";
    }
    if (check.unit == Check::Unit::share) {
        std::snprintf(text, sizeof text, "%+.1f points", (*check.b - *check.a) * 100);
        return text;
    }
    if (*check.a == 0) {
        return "new";
    }
    if (const double share = std::abs(*check.b / *check.a - 1); share < 0.00005) {  // would read as 0.00 %
        return (*check.b < *check.a ? "-" : "+") + shown(check.unit, check.difference);
    }
    std::snprintf(text, sizeof text, "%+.2f %%", (*check.b / *check.a - 1) * 100);
    return text;
}

std::string shown(const Check& check, const std::optional<Tolerance>& tolerance) {
    if (!tolerance) {
        return "";
    }
    char text[64];
    if (tolerance->percent) {
        std::snprintf(text, sizeof text, check.unit == Check::Unit::share ? "%g points" : "%g %%", tolerance->value);
        return text;
    }
    return shown(check.unit, tolerance->value);
}

Table checks_table(const Comparison& comparison) {
    Table table(
        {{"check", ""}, {"A", "", true}, {"B", "", true}, {"difference", "", true}, {"allowed", "", true}, {"", ""}});
    for (const Check& check : comparison.checks) {
        if (!check.a && !check.b) {
            continue;
        }
        table.row({check.name, shown(check.unit, check.a), shown(check.unit, check.b), change(check),
                   shown(check, check.tolerance),
                   !check.ok         ? "FAILED"
                   : check.tolerance ? "ok"
                                     : ""});
    }
    return table;
}

/// Whether the two logs agree on ops, failures and times.
bool alike(const KindSummary& a, const KindSummary& b) {
    return a.ops == b.ops && a.errors == b.errors && !far_apart(a.latency.p50, b.latency.p50) &&
           !far_apart(a.latency.p99, b.latency.p99);
}

/// Without `all` only the kinds that differ.
Table latency_table(const Comparison& comparison, bool all) {
    Table table({{"op", ""},
                 {"ops A", "", true},
                 {"ops B", "", true},
                 {"errors A", "", true},
                 {"errors B", "", true},
                 {"p50 A", "", true},
                 {"p50 B", "", true},
                 {"p99 A", "", true},
                 {"p99 B", "", true},
                 {"max A", "", true},
                 {"max B", "", true}});
    const KindSummary none;
    for (const OpInfo& row : all_ops()) {
        const KindSummary *a = comparison.a.kind(row.kind), *b = comparison.b.kind(row.kind);
        if (!a && !b) {
            continue;
        }
        if (!a) {
            a = &none;
        }
        if (!b) {
            b = &none;
        }
        if (!all && alike(*a, *b)) {
            continue;
        }
        table.row({row.name, count_cell(a->ops), count_cell(b->ops), count_cell(a->errors), count_cell(b->errors),
                   duration_cell(a->latency.p50), duration_cell(b->latency.p50), duration_cell(a->latency.p99),
                   duration_cell(b->latency.p99), duration_cell(a->latency.max), duration_cell(b->latency.max)});
    }
    return table;
}

Table differences_table(const Comparison& comparison) {
    Table table({{"what", ""},
                 {"task", "", true},
                 {"op A", "", true},
                 {"op B", "", true},
                 {"op", ""},
                 {"result A", ""},
                 {"result B", ""},
                 {"path", ""}});
    for (const Difference& row : comparison.differences) {
        const bool in_a = row.what != DifferenceKind::extra, in_b = row.what != DifferenceKind::missing;
        table.row({difference_name(row.what), std::to_string(row.task), in_a ? std::to_string(row.op_a) : "-",
                   in_b ? std::to_string(row.op_b) : "-", info(row.kind).name, in_a ? result_text(row.result_a) : "-",
                   in_b ? result_text(row.result_b) : "-", row.path});
    }
    return table;
}

void section(std::string_view title, const Table& table) {
    if (table.empty()) {
        return;
    }
    std::cout << '\n' << title << '\n';
    table.print(std::cout, 2, kSummaryColumns);
}

/// What a prediction, or a run that finished, says against itself.
std::string doubt_of(std::string_view name, const Header& header) {
    if (header.source == "predict") {
        const bool poor = read_fact(header, fact::trust) == "poor";
        return "PREDICTION: " + std::string(name) + " is a prediction, not a run" +
               (poor ? "; " + printable(read_fact(header, fact::trust_reason).value_or("?")) : "") + ".";
    }
    if (read_fact(header, fact::trust) != "poor" || read_fact(header, fact::ended) != "complete") {
        return {};
    }
    return (read_fact(header, fact::failed) ? "NOT FAITHFUL: " : "POOR: ") + std::string(name) + ": " +
           printable(read_fact(header, fact::trust_reason).value_or("?")) + ".";
}

/// What stops a wrong conclusion: a prediction, or a run that is not to be believed; why the exit code is 1, in one
/// sentence with every check that failed.
std::vector<std::string> first_sentences(const LogReader& a, const LogReader& b, const Comparison& comparison) {
    std::vector<std::string> sentences;
    for (const auto& [name, log] : {std::pair("A", &a), std::pair("B", &b)}) {
        if (std::string doubt = doubt_of(name, log->header()); !doubt.empty()) {
            sentences.push_back(std::move(doubt));
        }
    }
    std::string text;
    for (const Check& check : comparison.checks) {
        if (!check.ok) {
            text += (text.empty() ? "OUT OF TOLERANCE: " : ", ") + check.name + " " + change(check) + " (allowed " +
                    shown(check, check.tolerance) + ")";
        }
    }
    if (!text.empty()) {
        sentences.push_back(text + ".");
    }
    return sentences;
}

/// Which checks passed.
std::vector<SummaryLine> passed_checks(const Comparison& comparison) {
    std::string text;
    for (const Check& check : comparison.checks) {
        if (check.ok && check.tolerance) {
            text += (text.empty() ? "within tolerance: " : ", ") + check.name;
        }
    }
    return text.empty() ? std::vector<SummaryLine>{} : std::vector<SummaryLine>{{4, "checks      " + text, false}};
}

std::vector<std::string> notes_of(const LogReader& a, const LogReader& b, const Comparison& comparison) {
    std::vector<std::string> notes;
    if (quiet()) {
        return notes;
    }
    if (comparison.left_out_ops != 0) {
        notes.push_back("note: " + counted(comparison.left_out_ops, "op") + " and " +
                        format_bytes(comparison.left_out_bytes) + " of A excluded by the filter: " + comparison.filter);
    }
    if (read_fact(a.header(), fact::recording_fingerprint) == log_fingerprint(b)) {
        notes.emplace_back("note: A is a replay of B: give the recording first");
    }
    return notes;
}

void print_facts(std::string_view name, const LogReader& log) {
    std::cout << name << "  " << printable(log.path().string()) << " (" << printable(log.header().source) << ")\n";
    for (const auto& [key, value] : log.header().extra) {
        if (key != fact::context.key) {
            std::cout << "   " << printable(key) << ": " << printable(value) << '\n';
        }
    }
}

/// What the summary leaves out.
void print_detail(const LogReader& a, const LogReader& b, const Comparison& comparison) {
    print_facts("A", a);
    print_facts("B", b);
    section("Checks", checks_table(comparison));
    std::cout << "  " << format_count(comparison.matched) << " ops match in order; " << format_count(comparison.missing)
              << " only in A, " << format_count(comparison.extra) << " only in B; " << format_count(comparison.results)
              << " results differ";
    if (comparison.not_performed) {
        std::cout << ", " << format_count(comparison.not_performed) << " not performed by the replay";
    }
    if (comparison.results_known) {
        std::cout << ",\n  " << format_count(comparison.results_known)
                  << " more, expected to vary (descriptor numbers, addresses, directory sizes)";
    }
    std::cout << '\n';
    section("Example differences", differences_table(comparison));
    const bool all = verbosity() > 1;
    section(all ? "By op (service time)" : "Kinds of ops that differ (service time; all: -vv)",
            latency_table(comparison, all));
    section("Asynchronous requests by ring (of B, and of A)",
            rings_table(comparison.b.requests, &comparison.a.requests, "A"));
    section("Time by requests in flight (of B, and of A)",
            depths_table(comparison.b.requests, &comparison.a.requests, "A"));
    if (!comparison.a.devices.empty()) {
        section("Accelerators of A", devices_table(comparison.a, a.tables()));
    }
    if (!comparison.b.devices.empty()) {
        section("Accelerators of B", devices_table(comparison.b, b.tables()));
    }
}

void print(const LogReader& a, const LogReader& b, const Comparison& comparison, const Verdict& verdict) {
    const bool of_a_run = !verdict.ended.empty() && !read_fact(a.header(), fact::ended);
    std::vector<SummaryLine> lines = verdict_lines(verdict, of_a_run ? "recorded" : "A");
    const std::vector<SummaryLine> checks = passed_checks(comparison);
    lines.insert(lines.end(), checks.begin(), checks.end());
    print_summary(std::cout, first_sentences(a, b, comparison), std::move(lines), notes_of(a, b, comparison));
    if (verbosity() > 0) {
        std::cout << '\n';
        print_detail(a, b, comparison);
    }
}

/// "--tolerance results=3"; of several only the option.
std::string tolerated_by(const po::variables_map& values) {
    if (values.count("tolerance") == 0) {
        return {};
    }
    const auto& given = values["tolerance"].as<std::vector<std::string>>();
    return given.size() == 1 ? "--tolerance " + given.front() : "--tolerance";
}

/// The two logs to align.
std::pair<std::string, std::string> two_logs(const po::variables_map& values) {
    const auto& logs = values["log"].as<std::vector<std::string>>();
    if (logs.size() != 2) {
        throw usage_error("compare: " + std::string(logs.size() == 1 ? "missing B" : "more than two logs") +
                              ", expected: reprise compare A B",
                          "runs against runs: reprise compare A... --against B...");
    }
    for (const char* const option : {"threshold", "exclude-doubtful", "junit", "markdown", "html"}) {
        if (values.count(option) != 0) {
            throw usage_error("--" + std::string(option) + " is of runs against runs",
                              "give the runs to compare with: --against B...");
        }
    }
    return {logs[0], logs[1]};
}

int run(const po::variables_map& values) {
    if (values.count("against") != 0) {
        return compare_runs(values);
    }
    const auto [log_a, log_b] = two_logs(values);
    CompareOptions options;
    constexpr int64_t kMostExamples = 1'000'000;
    options.examples = static_cast<size_t>(whole_number(values, "examples", 0, kMostExamples));
    if (values.count("tolerance")) {
        for (const std::string& text : values["tolerance"].as<std::vector<std::string>>()) {
            add_tolerance(options, text);
        }
    }
    const LogReader a = open_log(log_a, values), b = open_log(log_b, values);
    require_ops(a);
    require_ops(b);
    Progress progress("comparing");
    options.progress = [&](uint64_t ops) { progress.update(ops, std::max(a.op_count(), b.op_count())); };
    const Comparison comparison = compare(a, b, options);
    progress.finish();
    Verdict verdict = verdict_of(comparison, b.header());
    verdict.tolerated_by = tolerated_by(values);
    const PartOfJob of_a = part_of_job(a.tables()), of_b = part_of_job(b.tables());
    verdict.lost_events = std::max(of_a.lost_events, of_b.lost_events);
    verdict.part = of_a.why().empty() ? of_b.why() : of_a.why();
    if (json_wanted(values)) {
        Json out = to_json(comparison, a.tables(), b.tables());
        out["verdict"] = to_json(verdict);
        out["header_a"] = header_json(a.header());
        out["header_b"] = header_json(b.header());
        put_json(values, out);
    }
    if (!json_alone(values)) {
        print(a, b, comparison, verdict);
    }
    const bool believed = !read_fact(a.header(), fact::failed) && !read_fact(b.header(), fact::failed);
    return static_cast<int>(comparison.passed() && !verdict.incomplete() && believed ? ExitCode::done
                                                                                     : ExitCode::check_failed);
}

const Registration registration{{
    .name = "compare",
    .group = Group::judge,
    .summary = "compare a recording with a run of it, or runs of A with runs of B",
    .help = "Aligns the ops of both logs task by task and shows where calls, bytes, results, order and times differ. "
            "Ops that the replay's filter excluded are excluded from the recording too and do not count as "
            "differences.\n\nEnds with at most ten lines, as replay does; -v prints the details.\n\nExits with 1 if a "
            "check exceeds its tolerance, or B is a run that stopped early. By default ops, bytes, results, order and "
            "arguments must be equal; elapsed, throughput, latency, au, au_mlperf and stall fail only with "
            "--tolerance. A percentage is of A's value; for au it is percentage points.\n\nWith --against: the runs of "
            "A are "
            "what was, those of B what is now. Each metric is better, worse, the same or too noisy to tell: elapsed, "
            "throughput, au, p50 and p99 of each kind of call that matters. Exits with 1 if one is worse, or if none "
            "can tell (too few runs, or too noisy ones); corrected for the number of metrics, so that sides that are "
            "alike pass 19 times "
            "in 20.",
    .examples = {{"reprise compare job.oplog run.oplog", "recording and replay"},
                 {"reprise compare job.oplog run.oplog --tolerance elapsed=5% --tolerance results=3", "as a test"},
                 {"reprise compare old.oplog new.oplog --tolerance ops=none --json", "for scripts"},
                 {"reprise compare old.*.oplog --against new.*.oplog", "did anything get worse?"},
                 {"reprise compare old.*.oplog --against new.*.oplog --threshold elapsed=3% --junit compare.xml",
                  "in CI"}},
    .options = options,
    .positionals = {{.name = "log", .label = "A", .least = 1, .most = -1}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::compare_command

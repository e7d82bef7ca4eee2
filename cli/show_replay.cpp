// SPDX-License-Identifier: MIT
#include "cli/show_replay.h"
#include "cli/show_limits.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>

#include "cli/show_cache.h"
#include "cli/show_epochs.h"
#include "cli/show_interval.h"
#include "cli/show_open_loop.h"
#include "cli/show_queues.h"
#include "cli/show_requests.h"
#include "cli/show_verdict.h"
#include "cli/show_verify.h"
#include "cli/units.h"
#include "cli/what_if_options.h"
#include "formats/oplog/oplog.h"
#include "formats/oplog/result_text.h"
#include "replay/engine/engines.h"

namespace reprise::cli {
namespace {

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }
double rate(uint64_t count, int64_t ns) { return ns > 0 ? static_cast<double>(count) / seconds(ns) : 0.0; }

Json percentiles_us(const Histogram& counts) {
    const auto us = [](int64_t ns) { return static_cast<double>(ns) / 1e3; };
    return {{"p50", us(counts.percentile(0.5))},
            {"p99", us(counts.percentile(0.99))},
            {"p999", us(counts.percentile(0.999))},
            {"max", us(counts.max())}};
}

/// One row per kind; without `all` only those that differ from the recording, in results or times.
Table replayed_kinds(const ReplayResult& result, const RunFigures& figures, bool all) {
    Table table({{"op", "op"},
                 {"count", "count", true},
                 {"differ", "mismatches", true},
                 {"bytes", "bytes", true},
                 {"p50", "p50_ns", true},
                 {"recorded", "recorded_p50_ns", true},
                 {"p99", "p99_ns", true},
                 {"recorded", "recorded_p99_ns", true},
                 {"p99.9", "p999_ns", true},
                 {"max", "max_ns", true},
                 {"sum", "sum_ns", true}});
    for (const OpInfo& row : all_ops()) {
        const auto index = static_cast<size_t>(row.kind);
        const Histogram &latency = result.latency[index], &recorded = figures.recorded_latency(row.kind);
        if (latency.count() == 0 && result.mismatches_by_kind[index] == 0) {
            continue;
        }
        const int64_t p50 = recorded.percentile(0.5), p99 = recorded.percentile(0.99);
        if (!all && result.mismatches_by_kind[index] == 0 && !far_apart(latency.percentile(0.5), p50) &&
            !far_apart(latency.percentile(0.99), p99)) {
            continue;
        }
        table.row({row.name, count_cell(latency.count()), count_cell(result.mismatches_by_kind[index]),
                   bytes_cell(result.bytes_by_kind[index]), duration_cell(latency.percentile(0.5)), duration_cell(p50),
                   duration_cell(latency.percentile(0.99)), duration_cell(p99),
                   duration_cell(latency.percentile(0.999)), duration_cell(latency.max()),
                   duration_cell(std::llround(latency.sum()))});
    }
    return table;
}

Table examples_table(const ReplayResult& result) {
    Table table({{"op", "op"},
                 {"task", "task", true},
                 {"number", "number", true},
                 {"recorded", "recorded", true},
                 {"here", "here", true},
                 {"path", "path"}});
    for (const Mismatch& one : result.examples) {
        const std::string here = one.reason == LeftOut::not_open ? "not open" : result_text(one.actual);
        table.row({info(one.kind).name, count_cell(one.task), count_cell(one.op),
                   Cell(result_text(one.recorded), one.recorded), Cell(here, one.actual), printable(one.path)});
    }
    return table;
}

Table left_out_table(const ReplayResult& result) {
    Table table({{"not replayed", "ops", true}, {"recorded time", "recorded_ns", true}, {"reason", "reason"}});
    for (size_t i = 1; i < kLeftOutReasons; ++i) {
        if (result.left_out[i] != 0) {
            const auto reason = static_cast<LeftOut>(i);
            table.row({count_cell(result.left_out[i]), duration_cell(result.left_out_ns[i]),
                       Cell(left_out_meaning(reason), std::string(left_out_name(reason)))});
        }
    }
    return table;
}

Json fidelity_json(const ReplayResult& result) {
    const Fidelity& f = result.fidelity;
    Json delays = percentiles_us(f.delay_error);
    delays["count"] = f.delay_error.count();
    delays["total_share"] = f.delay_total_error();
    const auto known = [](double value, double by) { return value < 0 ? Json(nullptr) : Json(value / by); };
    return {{"kept_up", f.failures.empty()},
            {"failures", f.failures},
            {"delay_error_us", delays},
            {"delays_asked_s", f.delays_asked_ns / 1e9},
            {"computing_asked_s", f.computing_asked_ns / 1e9},
            {"computing_took_s", f.computing_took_ns / 1e9},
            {"added_on_critical_path_s", f.added_ns / 1e9},
            {"computing_after_waits_s", f.after_waits_ns / 1e9},
            {"recorded_run_queue_s", known(static_cast<double>(f.recorded_run_queue_ns), 1e9)},
            {"other_cpus", known(f.other_cpus, 1.0)},
            {"caches_dropped", f.caches_dropped},
            {"stolen_cpus", known(f.stolen_cpus, 1.0)},
            {"explained_wait_share",
             result.unexplained_wait_share < 0 ? Json(nullptr) : Json(1.0 - result.unexplained_wait_share)}};
}

/// How well this machine kept the recording's timing.
void print_fidelity(std::ostream& out, const ReplayResult& result) {
    const Fidelity& f = result.fidelity;
    const auto ns = [](double value) { return format_duration(std::llround(value)); };
    if (f.delay_error.count() != 0) {
        out << "sleep overshoot: " << ns(f.delay_error.sum()) << " over " << ns(f.delays_asked_ns) << " ("
            << format_share(f.delay_total_error()) << "); per sleep p50 "
            << format_duration(f.delay_error.percentile(0.5)) << ", p99 "
            << format_duration(f.delay_error.percentile(0.99)) << ", max " << format_duration(f.delay_error.max())
            << "\n";
    }
    if (f.computing_asked_ns > 0) {
        out << "compute " << ns(f.computing_asked_ns);
        print_after_waits(out, std::llround(f.after_waits_ns));
        out << " took " << ns(f.computing_took_ns);
        if (f.recorded_run_queue_ns >= 0) {
            out << " (recorded run-queue delay " << format_duration(f.recorded_run_queue_ns) << ")";
        }
        out << "\n";
    }
    if (f.other_cpus >= 0.05) {
        out << "other processes: " << number_cell(f.other_cpus, 2).text << " of " << result.machine.cpus << " CPUs\n";
    }
    if (f.stolen_cpus >= 0.05) {
        out << "steal time: " << number_cell(f.stolen_cpus, 2).text << " of " << result.machine.cpus << " CPUs\n";
    }
    std::string edges;
    for (size_t i = 1; i < result.edges_by_kind.size(); ++i) {
        if (result.edges_by_kind[i] != 0) {
            edges += (edges.empty() ? "edges: " : ", ") + format_count(result.edges_by_kind[i]) + " " +
                     std::string(edge_name(static_cast<EdgeKind>(i)));
        }
    }
    if (!edges.empty()) {
        out << edges << "\n";
    }
}

/// I/O ops; one whose file did not open differs.
JobOps job_ops(const ReplayResult& result) {
    JobOps ops;
    uint64_t all = 0;
    for (const OpInfo& row : all_ops()) {
        if (row.is(Trait::io)) {
            all += result.latency[static_cast<size_t>(row.kind)].count();
        }
    }
    for (size_t i = 1; i < kLeftOutReasons; ++i) {
        const auto reason = static_cast<LeftOut>(i);
        all += result.left_out_io[i];
        if (reason != LeftOut::not_open && result.left_out_io[i] != 0) {
            ops.left_out += result.left_out_io[i];
            ops.left_out_by.emplace_back(left_out_name(reason), result.left_out_io[i]);
        }
    }
    ops.differ = result.mismatches;
    ops.alike = all - ops.differ - ops.left_out;
    return ops;
}

/// Whether compute took time in this run.
bool pace_has_computing(const ReplayResult& result) {
    return result.timed && result.latency[static_cast<size_t>(OpKind::compute)].count() != 0;
}

/// Why the exit code is not 0.
std::vector<std::string> first_sentences(const ReplayResult& result) {
    std::vector<std::string> sentences;
    for (const std::string& why : result.not_same_job) {
        sentences.push_back("NOT THE SAME JOB: " + why);
    }
    if (const std::string why = not_measured(result); result.ended == "complete" && sentences.empty() && !why.empty()) {
        sentences.push_back("NOT MEASURED: " + why + ".");
    }
    for (const std::string& failure : result.fidelity.failures) {
        if (result.not_same_job.empty() || verbosity() > 0) {
            sentences.push_back("NOT FAITHFUL: " + failure);
        }
    }
    return sentences;
}

/// Losses, warnings, then notes; with -v the counters that are notes, too.
std::vector<std::string> notes_of(const ReplayResult& result) {
    std::vector<std::string> notes;
    const auto counters = [&](Severity severity) {
        for (const Counter& counter : result.counters) {
            if (counter.severity == severity) {
                notes.push_back(std::string(severity_name(severity)) + ": " + counter.name + " " +
                                format_count(counter.value) + " (" + counter.meaning + ")");
            }
        }
    };
    counters(Severity::loss);
    counters(Severity::warning);
    if (!quiet()) {
        for (const std::string& note : result.notes) {
            notes.push_back("note: " + note);
        }
    }
    if (verbosity() > 0) {
        counters(Severity::note);
    }
    return notes;
}

void print_machine(std::ostream& out, const MachineFacts& machine) {
    out << "on " << machine.host << ", " << machine.kernel << ", " << machine.cpus << " x "
        << (machine.cpu.empty() ? "cpu" : machine.cpu) << ", " << format_bytes(machine.memory_bytes) << " memory";
    if (!machine.file_system.empty()) {
        out << ", " << machine.file_system << " on " << printable(machine.device);
    }
    out << "\n";
}

void print_tables(std::ostream& out, const ReplayResult& result, const RunFigures& figures) {
    const auto print = [&](std::string_view title, const Table& table) {
        if (!table.empty()) {
            out << "\n" << title << (title.empty() ? "" : "\n");
            table.print(out, 2);
        }
    };
    if (figures.accelerators()) {
        print("", figures.accelerators()->table);
    }
    print("", epochs_table(result.epochs, figures.asked()));
    print("inferred queues", queues_table(result.queues));
    const InFlight &here = figures.verdict().here.requests, &recorded = figures.verdict().recorded.requests;
    print("asynchronous requests by ring", rings_table(here, &recorded, "recorded"));
    print("time by requests in flight", depths_table(here, &recorded, "recorded"));
    const bool all = verbosity() > 1;
    print(all ? "ops by kind" : "kinds of ops that differ from the recording (all: -vv)",
          replayed_kinds(result, figures, all));
    print("", left_out_table(result));
    print("example differences", examples_table(result));
}

/// What the summary leaves out.
void print_detail(std::ostream& out, const ReplayResult& result, const RunFigures& figures) {
    out << counted(result.ops, "op") << " of " << counted(result.tasks, "task") << " in "
        << counted(result.processes, "process", "processes") << ", "
        << format_count_rate(rate(result.ops, result.elapsed_ns)) << ", "
        << format_rate(rate(result.bytes_read + result.bytes_written, result.elapsed_ns)) << "; "
        << format_count(result.errors) << " failed; " << counted(result.edges, "edge") << ", blocked on "
        << format_count(result.edge_waits) << "; replayer overhead " << number_cell(result.harness_ns_per_op, 1).text
        << " ns/op\n";
    if (result.timed) {
        const Histogram& late = result.lateness;
        out << "lateness p50 " << format_duration(late.percentile(0.5)) << ", p99 "
            << format_duration(late.percentile(0.99)) << ", p99.9 " << format_duration(late.percentile(0.999))
            << ", max " << format_duration(late.max()) << "\n";
    }
    if (pace_has_computing(result)) {
        out << "compute: " << policy_name(result.delay) << "; CPU speed " << to_string(result.cpu_speed) << "\n";
    }
    if (result.unexplained_wait_share >= 0) {
        out << format_share(result.unexplained_wait_share) << " of the recorded wait is unexplained\n";
    }
    if (const auto& summary = figures.accelerators()) {
        out << "AU by MLPerf's rule, without the first step: "
            << (summary->au_mlperf() ? format_share(*summary->au_mlperf()) : "-") << "\n";
    }
    print_interval(out, result.path, result.interval);
    print_fidelity(out, result);
    print_machine(out, result.machine);
    print_tables(out, result, figures);
}

}  // namespace

void print_after_waits(std::ostream& out, int64_t ns) {
    constexpr int64_t kLeast = 1'000'000;
    if (std::abs(ns) >= kLeast) {
        out << " (" << format_duration(std::abs(ns)) << (ns < 0 ? " less" : " more") << " than recorded, after "
            << (ns < 0 ? "shorter waits)" : "longer waits)");
    }
}

void RunFigures::add(const ObservedOp& op) {
    recorded_.add(op.task, op.recorded, op.performed);
    const uint64_t before = here_.asked_so_far();
    here_.add(op.task, op.here, op.performed);
    sums_.asked.resize(std::max(sums_.asked.size(), op.epoch + 1));
    sums_.asked[op.epoch] += here_.asked_so_far() - before;
    if (op.accelerators) {  // it keeps markers, of which a log may have many
        recorded_use_.add(op.task, op.recorded);
        here_use_.add(op.task, op.here);
    }
}

const RunSums& RunFigures::sums() {
    if (!std::exchange(counted_, true)) {
        sums_.recorded = sums_of(recorded_, recorded_use_);
        sums_.here = sums_of(here_, here_use_);
    }
    return sums_;
}

void RunFigures::finish(const ReplayResult& result, const std::string& pace, EngineKind engine,
                        const std::string& tolerated_by) {
    verdict_.pace = pace;
    verdict_.no_storage = !uses_root(engine);
    verdict_.same_job = result.not_same_job.empty();
    verdict_.tolerated_by = tolerated_by;
    verdict_.ended = result.ended;
    verdict_.what_if = result.what_if;
    verdict_.part = result.doubts.part.why();
    verdict_.lost_events = result.doubts.part.lost_events;
    verdict_.access = result.access;
    verdict_.ops = job_ops(result);
    verdict_.recorded = sums().recorded.figures;
    verdict_.recorded.elapsed = result.recorded_ns;
    verdict_.here = sums().here.figures;
    verdict_.here.elapsed = result.elapsed_ns;
    if (device_reads_known(result)) {
        verdict_.device_read = result.device_read_bytes;
    }
    verdict_.device_written = result.device_write_bytes;
    verdict_.device_data = device_data(result);
    verdict_.no_data = reads_no_data(result);
    verdict_.trust = trust_name(result.trust.level);
    verdict_.no_interval = result.no_interval;
    put_interval(result.interval);
    verdict_.trust_reason = result.trust.reason;
    if (result.accelerators == 0 || !result.timed) {
        return;
    }
    const auto put = [](JobFigures& side, const AcceleratorUse& use) {
        side.au = use.au();
        side.busy = use.busy();
        side.stall = use.stall();
    };
    if (recorded_use_known_) {
        put(verdict_.recorded, sums_.recorded.use);
    }
    accelerators_.emplace(sums_.here.use, tables_);
    put(verdict_.here, *accelerators_);
}

void RunFigures::put_interval(const std::optional<TimeInterval>& interval) {
    verdict_.interval.reset();
    if (interval) {
        verdict_.interval.emplace(interval->low_ns, interval->high_ns);
    }
}

Json result_json(const ReplayResult& result, const RunFigures& figures, const po::variables_map& values,
                 const OpFilter& filter) {
    const std::optional<Accelerators>& summary = figures.accelerators();
    Json json;
    json["verdict"] = to_json(figures.verdict());
    json["ended"] = result.ended;
    json["ops"] = result.ops;
    json["bytes"] = result.bytes_read + result.bytes_written;
    json["bytes_read"] = result.bytes_read;
    json["bytes_written"] = result.bytes_written;
    json["elapsed_s"] = seconds(result.elapsed_ns);
    json["recorded_s"] = seconds(result.recorded_ns);
    json["recorded_is_computed"] = result.computed;
    json["elapsed_interval_s"] = json["verdict"]["elapsed_interval_s"];
    json["au_interval"] = json["verdict"]["au_interval"];
    json["no_interval"] = result.no_interval.empty() ? Json(nullptr) : Json(result.no_interval);
    json["interval_parts"] = result.interval ? interval_json(*result.interval) : Json(nullptr);
    json["critical_path"] = path_json(result.path);
    json["ops_per_s"] = rate(result.ops, result.elapsed_ns);
    json["bytes_per_s"] = rate(result.bytes_read + result.bytes_written, result.elapsed_ns);
    json["errors"] = result.errors;
    json["mismatches"] = result.mismatches;
    json["left_out_data_bytes"] = result.doubts.left_out_bytes;
    json["truncated"] = result.doubts.part.truncated;
    json["lost_events"] = result.doubts.part.lost_events;
    json["same_job"] = result.not_same_job.empty() && result.doubts.part.why().empty();
    json["not_same_job"] = result.not_same_job;
    const std::string unmeasured = not_measured(result);
    json["not_measured"] = unmeasured.empty() ? Json(nullptr) : Json(unmeasured);
    const auto number = [](std::optional<double> value) { return value ? Json(*value) : Json(nullptr); };
    json["au"] = summary ? number(summary->au()) : Json(nullptr);
    json["au_mlperf"] = summary ? number(summary->au_mlperf()) : Json(nullptr);
    json["stall_s"] = summary ? Json(seconds(summary->stall())) : Json(nullptr);
    json["accelerator_busy_s"] = summary ? Json(seconds(summary->busy())) : Json(nullptr);
    json["accelerators"] = summary ? summary->json : Json::array();
    json["lateness_us"] = result.timed ? percentiles_us(result.lateness) : Json(nullptr);
    json["unexplained_wait_share"] =
        result.unexplained_wait_share < 0 ? Json(nullptr) : Json(result.unexplained_wait_share);
    json["fidelity"] = fidelity_json(result);
    json["harness_ns_per_op"] = result.harness_ns_per_op;
    json["device_bytes"] = result.device_read_bytes
                               ? Json(*result.device_read_bytes + result.device_write_bytes.value_or(0))
                               : Json(nullptr);
    json["device_read_bytes"] = result.device_read_bytes ? Json(*result.device_read_bytes) : Json(nullptr);
    json["device_write_bytes"] = result.device_write_bytes ? Json(*result.device_write_bytes) : Json(nullptr);
    json["device_counter_read_bytes"] = result.device_counter ? Json(result.device_counter->read_bytes) : Json(nullptr);
    json["device_counter_write_bytes"] =
        result.device_counter ? Json(result.device_counter->write_bytes) : Json(nullptr);
    json["by_epoch"] = epochs_table(result.epochs, figures.asked()).json();
    json["open_loops"] = open_loops_json(result.open_loops);
    json["cache"] = result.cache ? cache_json(*result.cache) : Json(nullptr);
    json["pace"] = values["pace"].as<std::string>();
    json["engine"] = values["engine"].as<std::string>();
    WhatIf what_if = what_if_of(values);
    what_if.speeds.cpu = result.cpu_speed.ratio;
    put_what_if(json, what_if, true);
    json["access"] = Json(nullptr);
    if (!result.access.empty()) {
        json["access"] = {{"says", result.access}};
        for (size_t i = 0; i < kAccessCounts; ++i) {
            json["access"][std::string(kAccessNames[i])] = result.access_counts.values[i];
        }
    }
    json["cpu_speed_source"] = source_name(result.cpu_speed.source);
    json["cpu_speed_verified"] = result.cpu_speed.verified();
    json["cpu_speed_uncertainty"] = result.cpu_speed.verified() ? Json(result.cpu_speed.uncertainty) : Json(nullptr);
    json["delay"] = policy_name(result.delay);
    json["async_depth"] = result.async_depth;
    json["compute_peak_cpus"] = result.compute_peak;
    json["filter"] = filter.to_string();
    json["read_only"] = values.count("read-only") != 0;
    json["processes"] = result.processes;
    json["tasks"] = result.tasks;
    json["edges"] = result.edges;
    Json edges = Json::object();
    for (size_t i = 1; i < result.edges_by_kind.size(); ++i) {
        if (result.edges_by_kind[i] != 0) {
            edges[std::string(edge_name(static_cast<EdgeKind>(i)))] = result.edges_by_kind[i];
        }
    }
    json["edges_by_kind"] = edges;
    json["edge_waits"] = result.edge_waits;
    json["queues"] = queues_table(result.queues).json();
    json["kinds"] = replayed_kinds(result, figures, true).json();
    json["left_out"] = left_out_table(result).json();
    json["examples"] = examples_table(result).json();
    json["notes"] = result.notes;
    Json counters = Json::array();
    for (const Counter& counter : result.counters) {
        counters.push_back({{"name", counter.name},
                            {"severity", severity_name(counter.severity)},
                            {"count", counter.value},
                            {"meaning", counter.meaning}});
    }
    json["counters"] = counters;
    const MachineFacts& machine = result.machine;
    json["machine"] = {{"host", machine.host},
                       {"kernel", machine.kernel},
                       {"cpu", machine.cpu},
                       {"cpus", machine.cpus},
                       {"memory_bytes", machine.memory_bytes},
                       {"file_system", machine.file_system},
                       {"device", printable(machine.device)},
                       {"mount_options", machine.mount_options},
                       {"free_bytes", machine.free_bytes}};
    if (machine.io_limits.any()) {
        json["machine"]["io_limits"] = io_limits_json(machine.io_limits);
    }
    if (result.memory) {
        json["memory"] = memory_json(*result.memory);
    }
    if (result.io_limits.any()) {
        json["io_limits"] = io_limits_json(result.io_limits);
    }
    json["verify"] = result.verified ? verify_json(*result.verified) : Json(nullptr);
    json["plan_s"] = seconds(result.plan_ns);
    json["collect_s"] = seconds(result.collect_ns);
    if (!result.output.empty()) {
        json["output"] = printable(result.output.native());
    }
    if (!result.output_lost.empty()) {
        json["output_lost"] = printable(result.output_lost);
    }
    return json;
}

std::string_view recorded_word(const ReplayResult& result) { return result.computed ? "computed" : "recorded"; }

void print_result(const ReplayResult& result, const RunFigures& figures) {
    std::vector<SummaryLine> lines = verdict_lines(figures.verdict(), recorded_word(result));
    if (!result.output_lost.empty()) {
        constexpr int kKeep = 14;  // before all else
        lines.insert(lines.begin(), {kKeep, log_lost_sentence(result.output_lost), true});
    }
    if (result.cache) {
        constexpr int kKeep = 7;
        const auto job = std::find_if(lines.begin(), lines.end(), [](const auto& line) { return !line.first; });
        lines.insert(job + 2,
                     {kKeep, "cache       " + cache_line(*result.cache), false});  // after the job and the time
        if (result.memory) {
            const auto again = std::find_if(lines.begin(), lines.end(), [](const auto& line) { return !line.first; });
            lines.insert(again + 3, {kKeep, "memory      " + memory_line(*result.memory), false});
        }
    }
    if (const std::string line = epochs_line(result.epochs, figures.asked(), result.memory.has_value());
        !line.empty()) {
        constexpr int kKeep = 7;  // after the line of the bytes
        const auto bytes =
            std::find_if(lines.begin(), lines.end(), [](const auto& each) { return each.text.starts_with("bytes "); });
        lines.insert(bytes == lines.end() ? bytes : bytes + 1, {kKeep, cut_line("epochs      " + line), false});
    }
    for (const std::string& line : open_loop_lines(result.open_loops)) {
        constexpr int kKeep = 7;  // after the line of the bytes
        const auto bytes =
            std::find_if(lines.begin(), lines.end(), [](const auto& each) { return each.text.starts_with("bytes "); });
        lines.insert(bytes == lines.end() ? bytes : bytes + 1, {kKeep, cut_line("arrivals    " + line), false});
    }
    print_summary(std::cout, first_sentences(result), std::move(lines), notes_of(result));
    if (verbosity() > 0) {
        std::cout << "\n";
        print_detail(std::cout, result, figures);
    }
}

}  // namespace reprise::cli

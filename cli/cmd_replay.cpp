// `reprise replay`: performs a log below a root and says how it went.
// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/summary.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/show_queues.h"
#include "cli/show_summary.h"
#include "cli/table.h"
#include "cli/units.h"
#include "formats/error.h"
#include "formats/filter.h"
#include "formats/oplog.h"
#include "replay/marker.h"
#include "replay/runner.h"
#include "replay/variant.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

void options(po::options_description& add) {
    add.add_options()("root", po::value<std::string>()->value_name("DIR"), "directory below which everything happens")(
        "pace", po::value<std::string>()->default_value("causal")->value_name("PACE"),
        "causal: every call when what it depends on is done and its think time is over; timed: at its recorded time; "
        "afap: as fast as possible, order kept")(
        "engine", po::value<std::string>()->default_value("posix")->value_name("ENGINE"),
        "posix: the recorded system calls; null: none, which measures the replayer itself")(
        "time-scale", po::value<double>()->default_value(1.0, "1")->value_name("X"),
        "stretch recorded times (causal: think times) by X")(
        "cpu-speed", po::value<std::string>()->default_value("auto")->value_name("X"),
        "with pace causal: computing takes X times less; auto: this machine beside the one of the recording, where it "
        "says what that was like")(
        "delay", po::value<std::string>()->default_value("auto")->value_name("HOW"),
        "computing: spin takes the processor as the recorded thread did, work uses memory as well, sleep leaves the "
        "processors alone; "
        "auto: spin where this machine has enough processors")(
        "gpu-speed", po::value<double>()->default_value(1.0, "1")->value_name("X"),
        "with pace causal: accelerators work X times as fast")(
        "gpu-model", po::value<std::string>()->value_name("SPEC"),
        "with pace causal: busy times of the accelerators' steps in place of the recorded ones: 250ms, "
        "normal(250ms,20ms), lognormal(250ms,20ms), empirical, empirical(FILE); ,seed=N behind it")(
        "gpus", po::value<std::string>()->default_value("1")->value_name("N"),
        "N data-parallel copies of the job on shares of the dataset, in step with each other (N:free: not)")(
        "only", po::value<Words>()->composing()->value_name("ROLE|GLOB"), "replay only such files")(
        "not", po::value<Words>()->composing()->value_name("ROLE|GLOB"), "leave such files out")(
        "map", po::value<Words>()->composing()->value_name("OLD=NEW"),
        "recorded directory OLD is NEW below the root (default: as prepared)")(
        "read-only", "leave out every op that would alter files")("allow-loss",
                                                                  "replay a recording that says it is not whole")(
        "output,o", po::value<std::string>()->value_name("FILE"), "op log of the run to write")(
        "json", po::value<std::string>()->value_name("FILE"), "write the result as JSON, too");
}

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }
double rate(uint64_t count, int64_t ns) { return ns > 0 ? static_cast<double>(count) / seconds(ns) : 0.0; }

std::string error_text(int64_t result) {
    if (result >= 0 || result < -4095) {
        return std::to_string(result);
    }
    const char* const name = strerrorname_np(static_cast<int>(-result));
    return name != nullptr ? std::string("-") + name : std::to_string(result);
}

Json percentiles_us(const Magnitudes& counts) {
    return {{"p50", counts.percentile(0.5) / 1e3},
            {"p99", counts.percentile(0.99) / 1e3},
            {"p999", counts.percentile(0.999) / 1e3},
            {"max", static_cast<double>(counts.greatest()) / 1e3}};
}

Table replayed_kinds(const ReplayResult& result) {
    Table table({{"op", "op"},
                 {"count", "count", true},
                 {"bytes", "bytes", true},
                 {"p50", "p50_ns", true},
                 {"p99", "p99_ns", true},
                 {"p99.9", "p999_ns", true},
                 {"max", "max_ns", true},
                 {"sum", "sum_ns", true},
                 {"differ", "mismatches", true}});
    for (const OpInfo& row : all_ops()) {
        const auto index = static_cast<size_t>(row.kind);
        const Magnitudes& latency = result.latency[index];
        if (latency.count() == 0 && result.mismatches_by_kind[index] == 0) {
            continue;
        }
        const auto ns = [&](double value) { return duration_cell(std::llround(value)); };
        table.row({row.name, count_cell(latency.count()), bytes_cell(result.bytes_by_kind[index]),
                   ns(latency.percentile(0.5)), ns(latency.percentile(0.99)), ns(latency.percentile(0.999)),
                   ns(static_cast<double>(latency.greatest())), ns(latency.sum()),
                   count_cell(result.mismatches_by_kind[index])});
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
        const std::string here = one.reason == LeftOut::not_open ? "not open" : error_text(one.actual);
        table.row({info(one.kind).name, count_cell(one.task), count_cell(one.op),
                   Cell(error_text(one.recorded), one.recorded), Cell(here, one.actual), printable(one.path)});
    }
    return table;
}

Table left_out_table(const ReplayResult& result) {
    Table table({{"left out", "ops", true}, {"recorded time", "recorded_ns", true}, {"why", "reason"}});
    for (size_t i = 1; i < kLeftOutReasons; ++i) {
        if (result.left_out[i] != 0) {
            const auto reason = static_cast<LeftOut>(i);
            table.row({count_cell(result.left_out[i]), duration_cell(result.left_out_ns[i]),
                       Cell(left_out_meaning(reason), std::string(left_out_name(reason)))});
        }
    }
    return table;
}

/// What the run's log says of its accelerators.
struct Accelerators : Summary {
    explicit Accelerators(const LogReader& run)
        : Summary(summarize(run)), table(devices_table(*this, run.tables())), json(devices_json(*this, run.tables())) {}
    Table table;
    Json json;
};

/// None where the run has none, or where time means nothing to them.
std::optional<Accelerators> accelerators(const ReplayResult& result) {
    if (result.accelerators == 0 || !result.timed || result.output.empty()) {
        return std::nullopt;
    }
    return std::make_optional<Accelerators>(LogReader(result.output));
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
            {"recorded_run_queue_s", known(static_cast<double>(f.recorded_run_queue_ns), 1e9)},
            {"other_cpus", known(f.other_cpus, 1.0)},
            {"explained_wait_share",
             result.unexplained_wait_share < 0 ? Json(nullptr) : Json(1.0 - result.unexplained_wait_share)}};
}

/// How far this machine kept the recording's time.
void print_fidelity(std::ostream& out, const ReplayResult& result) {
    const Fidelity& f = result.fidelity;
    const auto ns = [](double value) { return format_duration(std::llround(value)); };
    if (f.delay_error.count() != 0) {
        out << "delays of " << ns(f.delays_asked_ns) << " together took " << ns(f.delay_error.sum()) << " ("
            << format_share(f.delay_total_error()) << ") too long; of one: p50 " << ns(f.delay_error.percentile(0.5))
            << ", p99 " << ns(f.delay_error.percentile(0.99)) << ", max "
            << ns(static_cast<double>(f.delay_error.greatest())) << "\n";
    }
    if (f.computing_asked_ns > 0) {
        out << "computing of " << ns(f.computing_asked_ns) << " took " << ns(f.computing_took_ns);
        if (f.recorded_run_queue_ns >= 0) {
            out << " (the recorded tasks waited " << format_duration(f.recorded_run_queue_ns) << " for processors)";
        }
        out << "\n";
    }
    if (f.other_cpus >= 0.05) {
        out << "other programs used " << number_cell(f.other_cpus, 2).text << " of " << result.machine.cpus
            << " processors meanwhile\n";
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

Json result_json(const ReplayResult& result, const std::optional<Accelerators>& summary,
                 const po::variables_map& values, const OpFilter& filter) {
    Json json;
    json["ended"] = result.ended;
    json["ops"] = result.ops;
    json["bytes"] = result.bytes_read + result.bytes_written;
    json["bytes_read"] = result.bytes_read;
    json["bytes_written"] = result.bytes_written;
    json["elapsed_s"] = seconds(result.elapsed_ns);
    json["recorded_s"] = seconds(result.recorded_ns);
    json["ops_per_s"] = rate(result.ops, result.elapsed_ns);
    json["bytes_per_s"] = rate(result.bytes_read + result.bytes_written, result.elapsed_ns);
    json["errors"] = result.errors;
    json["mismatches"] = result.mismatches;
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
    json["pace"] = values["pace"].as<std::string>();
    json["engine"] = values["engine"].as<std::string>();
    json["time_scale"] = values["time-scale"].as<double>();
    json["cpu_speed"] = result.cpu_speed.ratio;
    json["cpu_speed_source"] = source_name(result.cpu_speed.source);
    json["cpu_speed_uncertainty"] =
        result.cpu_speed.source == CpuSpeed::Source::profiles ? Json(result.cpu_speed.uncertainty) : Json(nullptr);
    json["delay"] = policy_name(result.delay);
    json["compute_peak_cpus"] = result.compute_peak;
    json["gpu_speed"] = values["gpu-speed"].as<double>();
    json["gpu_model"] = values.count("gpu-model") != 0 ? Json(values["gpu-model"].as<std::string>()) : Json(nullptr);
    json["gpus"] = values["gpus"].as<std::string>();
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
    json["kinds"] = replayed_kinds(result).json();
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
    json["plan_s"] = seconds(result.plan_ns);
    json["collect_s"] = seconds(result.collect_ns);
    if (!result.output.empty()) {
        json["output"] = printable(result.output.native());
    }
    return json;
}

/// Whether computing took time in this run.
bool pace_has_computing(const ReplayResult& result) {
    return result.timed && result.latency[static_cast<size_t>(OpKind::compute)].count() != 0;
}

void print_result(const ReplayResult& result, const std::optional<Accelerators>& summary) {
    std::ostream& out = std::cout;
    out << (result.ended == "complete" ? "replayed " : result.ended + "\nreplayed ") << format_count(result.ops)
        << " ops of " << format_count(result.tasks) << " tasks in " << format_count(result.processes) << " processes, "
        << format_bytes(result.bytes_read) << " read, " << format_bytes(result.bytes_written) << " written\n";
    out << "elapsed " << format_duration(result.elapsed_ns) << " (recorded " << format_duration(result.recorded_ns)
        << "), " << format_count_rate(rate(result.ops, result.elapsed_ns)) << ", "
        << format_rate(rate(result.bytes_read + result.bytes_written, result.elapsed_ns)) << "\n";
    if (result.timed) {
        const auto ns = [](double value) { return format_duration(std::llround(value)); };
        out << "lateness p50 " << ns(result.lateness.percentile(0.5)) << ", p99 "
            << ns(result.lateness.percentile(0.99)) << ", p99.9 " << ns(result.lateness.percentile(0.999)) << ", max "
            << ns(static_cast<double>(result.lateness.greatest())) << "\n";
    }
    out << format_count(result.errors) << " ops failed, " << format_count(result.mismatches)
        << " differ from the recording; " << format_count(result.edges) << " edges, " << format_count(result.edge_waits)
        << " of them waited for; the replayer itself took " << number_cell(result.harness_ns_per_op, 1).text
        << " ns/op\n";
    if (pace_has_computing(result)) {
        out << "computing " << policy_name(result.delay) << "s; speed of a processor here "
            << to_string(result.cpu_speed) << "\n";
    }
    if (result.device_read_bytes) {
        out << "the device moved " << format_bytes(*result.device_read_bytes) << " to read and "
            << format_bytes(result.device_write_bytes.value_or(0)) << " to write\n";
    }
    if (result.unexplained_wait_share >= 0) {
        out << format_share(result.unexplained_wait_share) << " of the recorded wait has no known cause\n";
    }
    if (summary) {
        out << "accelerators busy " << format_duration(summary->busy()) << ", AU "
            << format_share(summary->au().value_or(0.0)) << " (MLPerf's rule, without the first step: "
            << (summary->au_mlperf() ? format_share(*summary->au_mlperf()) : "-") << "), stalled "
            << format_duration(summary->stall()) << "\n";
    }
    print_fidelity(out, result);
    for (const std::string& failure : result.fidelity.failures) {
        out << "NOT FAITHFUL: " << failure << "\n";
    }
    for (const std::string& note : result.notes) {
        out << "note: " << note << "\n";
    }
    out << "\n";
    if (summary) {
        summary->table.print(out, 2);
        out << "\n";
    }
    if (const Table queues = queues_table(result.queues); !queues.empty()) {
        out << "  queues that left no trace, inferred:\n";
        queues.print(out, 2);
        out << "\n";
    }
    replayed_kinds(result).print(out, 2);
    if (const Table table = left_out_table(result); !table.empty()) {
        out << "\n";
        table.print(out, 2);
    }
    if (const Table table = examples_table(result); !table.empty()) {
        out << "\ndiffering results, for example\n";
        table.print(out, 2);
    }
    for (const Counter& counter : result.counters) {
        out << severity_name(counter.severity) << ": " << counter.name << " " << format_count(counter.value) << " ("
            << counter.meaning << ")\n";
    }
    const MachineFacts& machine = result.machine;
    out << "\non " << machine.host << ", " << machine.kernel << ", " << machine.cpus << " x "
        << (machine.cpu.empty() ? "cpu" : machine.cpu) << ", " << format_bytes(machine.memory_bytes) << " memory";
    if (!machine.file_system.empty()) {
        out << ", " << machine.file_system << " on " << printable(machine.device);
    }
    out << "\n";
}

/// One progress line for each phase, made as they come.
class PhaseProgress {
public:
    void operator()(const ReplayProgress& now) {
        if (!line_ || now.phase != phase_) {
            finish();
            phase_ = now.phase;
            const char* const label = phase_ == ReplayProgress::Phase::planning  ? "planning"
                                      : phase_ == ReplayProgress::Phase::running ? "replaying"
                                                                                 : "writing the result";
            line_ = std::make_unique<Progress>(label);
        }
        std::string text;
        if (line_->active() && now.lag_ns > 1'000'000) {
            text = "lag " + format_duration(now.lag_ns);
        }
        if (!now.waiting.empty()) {
            text = now.waiting;
        }
        line_->update(now.done, now.total, text);
    }
    void finish() {
        if (line_) {
            line_->finish();
            line_.reset();
        }
    }

private:
    ReplayProgress::Phase phase_ = ReplayProgress::Phase::planning;
    std::unique_ptr<Progress> line_;
};

/// A name in the temporary directory that no file has; removed at the end, with what a writer leaves beside it.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::string& name)
        : path_(fs::temp_directory_path() / ("reprise-" + name + "-" + std::to_string(getpid()) + ".oplog")) {}
    ~TemporaryFile() {
        std::error_code ignored;
        fs::remove(path_, ignored);
        fs::remove(path_.string() + ".partial", ignored);
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

Words words(const po::variables_map& values, const char* name) {
    return values.count(name) != 0 ? values[name].as<Words>() : Words{};
}

CpuSpeed wanted_cpu_speed(const std::string& word, Pace pace, const Header& recorded) {
    if (word == "auto") {
        return pace == Pace::causal ? cpu_speed_here(recorded) : CpuSpeed{};
    }
    size_t used = 0;
    double ratio = 0;
    try {
        ratio = std::stod(word, &used);
    } catch (const std::exception&) {
    }
    if (used != word.size() || !(ratio > 0)) {
        throw usage_error("--cpu-speed must be auto or a number above 0", "2 halves the time that computing takes");
    }
    return {CpuSpeed::Source::given, ratio, 0.0};
}

VariantOptions variant_options(const po::variables_map& values, Pace pace) {
    VariantOptions options;
    options.copies = GpuCopies::parse(values["gpus"].as<std::string>());
    if (values.count("gpu-model") != 0) {
        if (pace != Pace::causal) {
            throw usage_error("--gpu-model: only pace causal lets step times change anything", "add --pace causal");
        }
        options.model = GpuModel::parse(values["gpu-model"].as<std::string>());
    }
    return options;
}

int run(const po::variables_map& values) {
    const LogReader recording(values["log"].as<std::string>());
    ReplayOptions how;
    const auto& pace = values["pace"].as<std::string>();
    how.pace = pace == "afap" ? Pace::afap : pace == "causal" ? Pace::causal : Pace::timed;
    how.engine = values["engine"].as<std::string>() == "null" ? EngineKind::null : EngineKind::posix;
    how.cpu_speed = wanted_cpu_speed(values["cpu-speed"].as<std::string>(), how.pace, recording.header());
    how.speeds = {values["time-scale"].as<double>(), how.cpu_speed.ratio, values["gpu-speed"].as<double>()};
    how.delay = policy_of(values["delay"].as<std::string>());
    how.filter = OpFilter::from_words(words(values, "only"), words(values, "not"));
    if (values.count("root") != 0) {
        how.root = values["root"].as<std::string>();
    }
    if (values.count("map") != 0) {
        how.maps = PathMap::parse(words(values, "map"));
    }
    how.read_only = values.count("read-only") != 0;
    how.allow_loss = values.count("allow-loss") != 0;
    how.fingerprint = log_fingerprint(recording);
    if (values.count("output") != 0) {
        how.output = values["output"].as<std::string>();
        std::error_code ignored;
        if (fs::equivalent(how.output, recording.path(), ignored)) {
            throw usage_error("the output is the recording itself", "name another file with -o");
        }
    }
    PhaseProgress progress;
    how.progress = [&](const ReplayProgress& now) { progress(now); };
    const TemporaryFile scratch("run"), variant_file("variant");
    std::optional<LogReader> variant;
    if (const VariantOptions asked = variant_options(values, how.pace); asked.changes_anything()) {
        write_variant(recording, variant_file.path(), asked);
        variant.emplace(variant_file.path());
    }
    const LogReader& log = variant ? *variant : recording;
    how.accelerator_output = scratch.path();
    ReplayResult result = replay(log, how);
    if (variant) {
        // What the copies share, and what the model drew.
        const std::vector<Counter>& known = recording.tables().counters;
        std::copy_if(
            variant->tables().counters.begin(), variant->tables().counters.end(), std::back_inserter(result.counters),
            [&](const Counter& counter) { return std::find(known.begin(), known.end(), counter) == known.end(); });
    }
    progress.finish();
    for (std::string& doubt : queue_doubts(result.queues)) {
        result.notes.push_back(std::move(doubt));
    }
    const std::optional<Accelerators> summary = accelerators(result);
    if (result.output == scratch.path()) {
        result.output.clear();
    }
    if (!quiet()) {
        print_result(result, summary);
    }
    if (values.count("json") != 0) {
        write_json(values["json"].as<std::string>(), result_json(result, summary, values, how.filter));
    }
    // An interrupted run has a valid result, but what was asked for did not happen.
    if (result.ended != "complete") {
        return static_cast<int>(ExitCode::machine);
    }
    if (quiet()) {
        for (const std::string& failure : result.fidelity.failures) {
            std::cerr << "reprise: " << failure << "\n";
        }
    }
    return static_cast<int>(result.fidelity.failures.empty() ? ExitCode::done : ExitCode::check_failed);
}

const Registration registration{{
    .name = "replay",
    .group = Group::replay,
    .summary = "perform a log's I/O below a directory and say how it went",
    .help =
        "Recorded processes are real processes, recorded threads real threads; they make the recorded calls with the "
        "same offsets, sizes and flags. What the recording did in order across threads is kept in order. Program and "
        "system files are left out and counted; --only and --not choose by role (dataset, checkpoint, log, cache, ipc, "
        "program, system) or by path.\n\n"
        "Nothing outside --root is touched; the kernel sees to it. A log that alters files runs only in a directory "
        "that `reprise prepare` filled, or with --read-only.\n\n"
        "Ctrl-C ends the run with a valid result that says so; a second one kills it. Exit code 4 tells that the run "
        "did not come to its end, 1 that this machine could not keep the recording's time: the result is whole, but "
        "its "
        "times are this machine's.",
    .examples = {{"reprise replay job.oplog --root /mnt/new", "how long the job itself would take there"},
                 {"reprise replay job.oplog --root /mnt/new --pace timed", "the recorded load, at the recorded times"},
                 {"reprise replay job.oplog --root /mnt/new --gpus 8 --gpu-model 'normal(162ms,5ms)'",
                  "eight such ranks, with another accelerator"},
                 {"reprise replay job.oplog --root /mnt/new --pace afap -o run.oplog",
                  "as fast as possible, and keep the result"},
                 {"reprise replay job.oplog --engine null --pace afap", "how fast the replayer itself is"}},
    .options = options,
    .positionals = {{"log", "LOG"}},
    .choices = {{"pace", {"causal", "timed", "afap"}},
                {"engine", {"posix", "null"}},
                {"delay", {"auto", "sleep", "spin", "work"}}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli

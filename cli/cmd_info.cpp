// SPDX-License-Identifier: MIT
// `reprise info`: what is in a log, and what is missing.
#include <ctime>
#include <iostream>
#include <limits>
#include <optional>

#include "analyze/network.h"
#include "analyze/summary.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/progress.h"
#include "cli/scale_options.h"
#include "cli/show_network.h"
#include "cli/show_queues.h"
#include "cli/show_recorder.h"
#include "cli/show_requests.h"
#include "cli/show_summary.h"
#include "cli/show_verdict.h"
#include "cli/table.h"
#include "cli/units.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/job_end.h"
#include "formats/oplog/ranks.h"
#include "formats/support/error.h"
#include "replay/plan/stored_queues.h"

namespace reprise::cli::info_command {
namespace {

void options(po::options_description& options) {
    add_json_option(options);
    options.add_options()("tasks", "list all tasks");
    options.add_options()("files", "list all files");
    options.add_options()("scaling", "show how --scale of prepare and replay would make the job larger");
    options.add_options()("scale-as", po::value<std::vector<std::string>>()->value_name("PATTERN=CLASS")->composing(),
                          "with --scaling: how files grow (sample, records, index, fixed)");
    add_filter_options(options);
    add_recover_option(options);
}

// Rows of the task time table without --tasks.
constexpr size_t kTimeRows = 16;

std::string utc(int64_t unix_ns) {
    const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
    std::tm parts{};
    char text[64];
    if (::gmtime_r(&seconds, &parts) == nullptr ||
        std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0) {
        return std::to_string(unix_ns) + " ns";
    }
    return text;
}

void line(std::string_view label, std::string_view text) {
    if (text.empty()) {
        return;
    }
    const std::string whole =
        "  " + std::string(label) + std::string(label.size() < 13 ? 13 - label.size() : 1, ' ') + printable(text);
    std::cout << (verbosity() > 0 ? whole : cut_line(whole)) << '\n';
}

Table tasks_table(const LogReader& log) {
    Table table({{"task", "task", true},
                 {"pid", "pid", true},
                 {"tid", "tid", true},
                 {"ops", "ops", true},
                 {"begin", "begin_ns", true},
                 {"end", "end_ns", true},
                 {"name", "name"},
                 {"command", "command"}});
    const Tables& tables = log.tables();
    std::vector<std::pair<int64_t, int64_t>> spans(
        tables.tasks.size(), {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()});
    for (const BlockInfo& block : log.blocks()) {
        if (block.task >= spans.size()) {
            continue;
        }
        auto& [begin, end] = spans[block.task];
        begin = std::min(begin, block.begin);
        end = std::max(end, block.end);
    }
    for (TaskId id = 1; id < tables.tasks.size(); ++id) {
        const TaskRow& row = tables.tasks[id];
        const ProcessRow process = row.process < tables.processes.size() ? tables.processes[row.process] : ProcessRow{};
        const bool any = spans[id].first <= spans[id].second;
        table.row({{std::to_string(id), id},
                   {std::to_string(process.pid), process.pid},
                   {std::to_string(row.tid), row.tid},
                   count_cell(log.op_count(id)),
                   any ? duration_cell(spans[id].first) : Cell("-", nullptr),
                   any ? duration_cell(spans[id].second) : Cell("-", nullptr),
                   text_cell(tables.strings[row.name]),
                   text_cell(tables.strings[process.command])});
    }
    return table;
}

Table files_table(const Tables& tables, const OpFilter& filter) {
    Table table({{"file", "file", true},
                 {"size", "bytes", true},
                 {"type", "type"},
                 {"role", "role"},
                 {"origin", "origin"},
                 {"path", "path"}});
    for (FileId id = 1; id < tables.files.size(); ++id) {
        if (!filter.keeps_file(tables, id)) {
            continue;
        }
        const FileRow& row = tables.files[id];
        table.row({{std::to_string(id), id},
                   bytes_cell(row.size),
                   file_type_name(row.type),
                   role_name(row.role),
                   origin_name(row.origin),
                   text_cell(tables.strings[row.path])});
    }
    return table;
}

/// "1,234, inferred 2: wake 1,000, reaped 234"
std::string edges_text(const Summary& summary) {
    std::string by;
    for (size_t kind = 1; kind < summary.edges_by_kind.size(); ++kind) {
        if (summary.edges_by_kind[kind] != 0) {
            by += (by.empty() ? ": " : ", ") + std::string(edge_name(static_cast<EdgeKind>(kind))) + " " +
                  format_count(summary.edges_by_kind[kind]);
        }
    }
    return format_count(summary.edges) + ", inferred " + format_count(summary.inferred_edges) + by;
}

/// "4 (torchrun)", "rank 2 of 4 (Open MPI)"; empty: the log names none.
std::string ranks_text(const LogReader& log) {
    const Header& header = log.header();
    const std::string source = read_fact(header, fact::ranks_source).value_or("");
    const std::string by = source.empty() ? std::string() : " (" + source + ")";
    const int64_t world = read_fact(header, fact::ranks_world).value_or(0);
    if (const std::optional<int64_t> rank = read_fact(header, fact::rank)) {
        return "rank " + std::to_string(*rank) + (world != 0 ? " of " + std::to_string(world) : std::string()) + by;
    }
    const uint32_t count = recorded_ranks(header, log.tables()).count;
    return count < 2 ? std::string() : std::to_string(count) + by;
}

void print_head(const LogReader& log, const Summary& summary) {
    const Header& header = log.header();
    std::cout << printable(log.path().string()) << ": op log, format version " << log.format_version() << '\n';
    line("source", header.source + (header.tool.empty() ? "" : " (" + header.tool + ")"));
    line("command", header.command);
    std::string host = header.host + (header.kernel.empty() ? "" : ", " + header.kernel);
    if (const std::optional<int64_t> cpus = read_fact(header, fact::capture_cpus)) {
        host += (host.empty() ? "" : ", ") + counted(static_cast<uint64_t>(*cpus), "CPU");
    }
    line("host", host);
    if (header.origin_unix_ns) {
        line("started", utc(header.origin_unix_ns));
    }
    line("clock", (header.clock.empty() ? "unknown" : header.clock) + ", times in units of " +
                      format_duration(header.time_unit_ns));
    for (const auto& [key, value] : header.extra) {
        // The series is for scripts; how and where the log was captured is in the line "host" and, all of it, with -v.
        const bool told = key == fact::context.key || key == fact::ranks.key || key.starts_with("ranks.");
        if (!told && (verbosity() > 0 || !key.starts_with("capture."))) {
            line(key, value);
        }
    }
    for (const std::string& sentence : {taken_off_sentence(header), dear_memory_sentence(header)}) {
        line(sentence.find("memory") == std::string::npos ? "recorder" : "memory", sentence);
    }
    line("ranks", ranks_text(log));
    line("time span", format_duration(summary.elapsed()));
    line("ended", failed_end(log));
    line("tasks", format_count(summary.tasks_with_ops) + " with ops of " + format_count(summary.tasks) + ", in " +
                      counted(summary.processes, "process", "processes"));
    line("ops", format_count(summary.ops) + ", " + format_count_rate(summary.ops_per_second()) + ", " +
                    format_count(summary.errors) + " failed");
    if (summary.left_out_ops) {
        line("excluded", counted(summary.left_out_ops, "op") + " by the filter");
    }
    line("read", format_bytes(summary.bytes_read) + ", written " + format_bytes(summary.bytes_written) + ", " +
                     format_rate(summary.bytes_per_second()));
    if (summary.bytes_touched) {
        line("touched", format_bytes(summary.bytes_touched) + " of mapped files");
    }
    line("requests", requests_line(summary.requests));
    if (summary.edges) {
        line("edges", edges_text(summary));
    }
    char per_op[32];
    std::snprintf(per_op, sizeof per_op, "%.2f", summary.log_bytes_per_op());
    line("log size", format_bytes(summary.file_bytes) + ", " + per_op + " bytes per op");
    if (!summary.devices.empty()) {
        line("accelerator", format_duration(summary.busy()) + " busy, AU " +
                                format_share(summary.au().value_or(std::numeric_limits<double>::quiet_NaN())));
    }
}

void section(std::string_view title, const Table& table) {
    if (table.empty()) {
        return;
    }
    std::cout << '\n' << title << '\n';
    table.print(std::cout, 2, kSummaryColumns);
}

struct Shown {
    Summary summary;
    QueueInference queues;
    NetworkUse network;
};

void print(const LogReader& log, const Shown& shown, const OpFilter& filter, const po::variables_map& values) {
    const Summary& summary = shown.summary;
    const QueueInference& queues = shown.queues;
    print_head(log, summary);
    section("Ops by kind (service time)", kinds_table(summary));
    section("Files by role", roles_table(summary));
    const size_t rows = values.count("tasks") ? summary.task_times.size() : kTimeRows;
    section(summary.task_times.size() > rows ? "Time of the longest tasks (all: --tasks)" : "Task time",
            times_table(summary, rows));
    section("Inferred queues", queues_table(queues));
    section("Asynchronous requests by ring", rings_table(summary.requests, nullptr, ""));
    section("Time by requests in flight", depths_table(summary.requests, nullptr, ""));
    section("Accelerators", devices_table(summary, log.tables()));
    section("Network: " + network_waits(shown.network), network_table(shown.network));
    if (values.count("tasks")) {
        section("Tasks", tasks_table(log));
    }
    if (values.count("files")) {
        section("Files", files_table(log.tables(), filter));
    }
    std::cout << '\n';
    if (!quiet()) {
        for (const std::string& doubt : queue_doubts(queues)) {
            for (const std::string& part : wrapped("", doubt)) {
                std::cout << part << '\n';
            }
        }
    }
    if (log.recovered()) {
        std::cout << "Recovered: " << *log.recovered() << '\n';
    }
    if (log.tables().counters.empty()) {
        std::cout << "No known losses, guesses or repairs.\n";
    } else {
        std::cout << "Losses, guesses and repairs (" << format_count(log.tables().losses()) << " lost)\n";
        if (const Table counters = counters_table(log.tables().counters); !counters.empty()) {
            counters.print(std::cout, 2, kSummaryColumns);
        }
    }
}

Json json(const LogReader& log, const Shown& shown, const OpFilter& filter, const po::variables_map& values) {
    Json out = {{"log", printable(log.path().string())}, {"format_version", log.format_version()}};
    out["header"] = header_json(log.header());
    out["filter"] = filter.to_string();
    out["recovered"] = log.recovered() ? Json(*log.recovered()) : Json(nullptr);
    out["losses"] = log.tables().losses();
    out["counters"] = counters_json(log.tables().counters);
    out["summary"] = to_json(shown.summary, log.tables());
    if (const std::string ended = failed_end(log); !ended.empty()) {
        out["ended"] = ended;
    }
    const std::optional<int64_t> rank = read_fact(log.header(), fact::rank);
    out["rank"] = rank ? Json(*rank) : Json(nullptr);
    out["ranks"] = recorded_ranks(log.header(), log.tables()).count;
    out["queues"] = queues_table(shown.queues).json();
    out["doubts"] = queue_doubts(shown.queues);
    out["network"] = network_table(shown.network).json();
    if (values.count("tasks")) {
        out["tasks"] = tasks_table(log).json();
    }
    if (values.count("files")) {
        out["files"] = files_table(log.tables(), filter).json();
    }
    return out;
}

int run(const po::variables_map& values) {
    const LogReader log = open_log(values["log"].as<std::string>(), values);
    const OpFilter filter = wanted_filter(values, log, Base::everything);
    if (values.count("scaling") != 0) {
        const ScalingSurvey survey = survey_scaling(log, sample_overrides(values));
        if (json_wanted(values)) {
            put_json(values, {{"log", printable(log.path().string())}, {"scaling", scaling_json(survey)}});
        }
        if (!json_alone(values)) {
            print_scaling(survey);
        }
        return 0;
    }
    if (values.count("scale-as") != 0) {
        throw usage_error("info: --scale-as requires --scaling", "");
    }
    Progress progress("reading");
    Shown shown;
    shown.summary = summarize(log, filter, [&](uint64_t ops) { progress.update(ops, log.op_count()); });
    progress.finish();
    Progress looking("inferring queues");
    shown.queues = queues_of(log, [&](uint64_t ops) { looking.update(ops, log.op_count()); });
    looking.finish();
    Progress talking("reading the network's part");
    shown.network = network_use(log, [&](uint64_t ops) { talking.update(ops, log.op_count()); });
    talking.finish();
    if (json_wanted(values)) {
        put_json(values, json(log, shown, filter, values));
    }
    if (!json_alone(values)) {
        print(log, shown, filter, values);
    }
    return 0;
}

const Registration registration{{
    .name = "info",
    .group = Group::look,
    .summary = "show what is in a log, and what is missing",
    .help = "Shows the log's origin, its tasks, files by role, ops by kind with latencies, accelerator busy time and "
            "utilisation (AU; MLPerf's variant excludes the first step), and every counter of losses, guesses and "
            "repairs.\n\nTask time is split into shares: inside calls, compute, blocked, idle, and the rest, which is "
            "run-queue delay and gaps too short for an op. For blocked time it shows the share with a known cause and "
            "the kinds of edges that explain it. Waits for locks are shown separately; sleeps need no cause.\n\nStall "
            "is the time a "
            "device was idle between its first and its last work.",
    .examples = {{"reprise info job.oplog", "the overview"},
                 {"reprise info --tasks --files job.oplog", "with every task and file"},
                 {"reprise info --only dataset job.oplog", "the dataset only"},
                 {"reprise info --scaling job.oplog", "what would grow with its data set"},
                 {"reprise info --json job.oplog", "for scripts"}},
    .options = options,
    .positionals = {{.name = "log", .label = "LOG"}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::info_command

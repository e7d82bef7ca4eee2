// SPDX-License-Identifier: MIT
// `reprise calibrate`: measures this machine, or a storage system.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include "calibrate/falling_rate.h"
#include "calibrate/host_profile.h"
#include "calibrate/storage_model.h"
#include "calibrate/work_profile.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/units.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/oplog.h"
#include "formats/support/error.h"
#include "formats/support/input.h"
#include "formats/support/limits.h"
#include "formats/support/new_file.h"
#include "formats/support/text_output.h"

namespace reprise::cli::calibrate_command {
namespace {

std::atomic<bool> interrupted{false};

void options(po::options_description& add) {
    add.add_options()("output,o", po::value<std::string>()->value_name("FILE"), "write the profile, e.g. host.json")(
        "dir", po::value<std::string>()->value_name("DIR"),
        "directory for a small test file [default: the temporary directory]")(
        "compare", po::value<std::string>()->value_name("FILE"),
        "also compare with another machine: its profile, or an op log recorded there")(
        "storage", po::value<std::string>()->value_name("DIR"),
        "measure the storage of DIR instead, for reprise predict");
    add_json_option(add, "print the profile as JSON");
}

Cell ns_cell(double ns) { return {format_duration(std::llround(ns)), Json(ns)}; }

void print(const HostProfile& p, std::ostream& out) {
    out << p.host << ", " << p.cpu << ", " << counted(static_cast<uint64_t>(p.cpus), "CPU") << ", " << p.kernel
        << "\n\n";
    Table late({{"sleep of 1 ms", ""}, {"late p50", "", true}, {"late p99", "", true}});
    late.row({"default timer slack", duration_cell(p.sleep_p50_ns), duration_cell(p.sleep_p99_ns)});
    late.row({"timer slack 1 ns", duration_cell(p.slack_p50_ns), duration_cell(p.slack_p99_ns)});
    late.print(out, 2);
    out << '\n';
    Table delays({{"replay delay", ""},
                  {"count", "", true},
                  {"total error", "", true},
                  {"late p50", "", true},
                  {"late p99", "", true}});
    for (const DelayError& one : p.delays) {
        delays.row({format_duration(one.target_ns), count_cell(one.count), share_cell(one.total),
                    duration_cell(one.p50_ns), duration_cell(one.p99_ns)});
    }
    delays.print(out, 2);
    out << '\n';
    Table costs({{"cost of", ""}, {"", "", true}});
    costs.row({"clock read", ns_cell(p.clock_ns)});
    costs.row({"spin iteration", ns_cell(p.spin_ns)});
    costs.row({"null system call", ns_cell(p.call_ns)});
    costs.row({"cached 4 KiB pread", ns_cell(p.pread_ns)});
    costs.row({"open and close", ns_cell(p.open_ns)});
    costs.row({"thread wakeup", ns_cell(p.wake_ns)});
    costs.print(out, 2);
    out << '\n';
    if (p.waits.measured()) {
        Table waits({{"compute after a wait of", ""}, {"slower by", "", true}, {"+-", "", true}});
        for (size_t i = 0; i < WaitCost::kWaits.size(); ++i) {
            waits.row(
                {format_duration(WaitCost::kWaits[i]), ns_cell(p.waits.extra_ns[i]), ns_cell(p.waits.spread_ns[i])});
        }
        waits.print(out, 2);
        out << "  63 % of that within " << format_duration(std::llround(p.waits.over_ns)) << " of compute\n"
            << (p.waits.stable() ? "" : "  repeated measurements scatter: replays do not correct compute by this\n")
            << "\n";
    }
    Table work({{"work, units/s per thread", ""}, {"one thread", "", true}, {"all CPUs", "", true}});
    work.row({"integer", number_cell(p.one.integer, 1), number_cell(p.all.integer, 1)});
    work.row({"inflate", number_cell(p.one.inflate, 1), number_cell(p.all.inflate, 1)});
    work.row({"memcpy", number_cell(p.one.memcpy, 1), number_cell(p.all.memcpy, 1)});
    work.print(out, 2);
}

/// Rates by size and by how many are in flight.
void print_in_flight(const StorageModel& m, std::ostream& out) {
    const std::pair<const char*, const std::vector<DepthRow>*> kinds[] = {{"read", &m.read_depth},
                                                                          {"write", &m.write_depth},
                                                                          {"mixed", &m.mixed_depth},
                                                                          {"write and fsync", &m.sync_depth}};
    if (std::all_of(std::begin(kinds), std::end(kinds), [](const auto& kind) { return kind.second->empty(); })) {
        return;
    }
    Table table({{"requests", ""},
                 {"size", "", true},
                 {"in flight", "", true},
                 {"median", "", true},
                 {"per second", "", true},
                 {"rate", "", true}});
    for (const auto& [name, rows] : kinds) {
        for (const DepthRow& row : *rows) {
            table.row({name, bytes_cell(static_cast<uint64_t>(row.bytes)), count_cell(static_cast<uint64_t>(row.depth)),
                       duration_cell(row.ns), count_cell(static_cast<uint64_t>(row.per_s)),
                       Cell(format_rate(row.per_s * static_cast<double>(row.bytes)) + (row.limited ? " (limit)" : ""),
                            Json(row.per_s * static_cast<double>(row.bytes)))});
        }
    }
    table.print(out, 2);
    out << '\n';
}

void print(const StorageModel& m, std::ostream& out) {
    const auto rate = [](double value) { return Cell(format_rate(value), Json(value)); };
    out << printable(m.directory) << " on " << m.host << ": " << (m.file_system.empty() ? "unknown" : m.file_system);
    if (!m.device.empty()) {
        out << " on " << printable(m.device);
    }
    out << "\n\n";
    Table reads({{"read size", ""}, {"median", "", true}, {"rate", "", true}});
    for (const SizedLatency& one : m.read) {
        reads.row({format_bytes(static_cast<uint64_t>(one.bytes)), duration_cell(one.ns),
                   rate(static_cast<double>(one.bytes) * 1e9 / static_cast<double>(std::max<int64_t>(one.ns, 1)))});
    }
    reads.print(out, 2);
    out << '\n';
    Table rates({{"throughput", ""}, {"", "", true}});
    rates.row({"parallel reads", count_cell(static_cast<uint64_t>(m.parallelism))});
    rates.row({"read", rate(m.read_bytes_per_s)});
    if (m.reads_per_s > 0) {
        rates.row({"requests per second", count_cell(static_cast<uint64_t>(m.reads_per_s))});
    }
    if (m.read_burst_ns > 0) {
        rates.row({"exceeded after a pause for", duration_cell(m.read_burst_ns)});
    }
    if (m.read_step_ns > 0) {
        rates.row({"limited in steps of", duration_cell(m.read_step_ns)});
    }
    rates.row({"read-ahead", bytes_cell(static_cast<uint64_t>(m.read_ahead_bytes))});
    if (m.inline_reads) {
        rates.row({"reads are done", "on submission"});
    }
    rates.row({"write and fsync", rate(m.write_bytes_per_s)});
    rates.row({"cached read, one thread", rate(m.cached_bytes_per_s)});
    rates.print(out, 2);
    out << '\n';
    print_in_flight(m, out);
    Table calls({{"cost of", ""}, {"", "", true}});
    calls.row({"open", duration_cell(m.open_ns)});
    calls.row({"stat", duration_cell(m.stat_ns)});
    calls.row({"create", duration_cell(m.make_ns)});
    calls.row({"unlink", duration_cell(m.remove_ns)});
    if (m.change_ns > 0) {
        calls.row({"chmod, utimens", duration_cell(m.change_ns)});
    }
    if (m.list_cold_ns > 0) {
        calls.row({"listing a directory", duration_cell(m.list_cold_ns + m.list_ns + m.list_name_ns)});
    }
    calls.row({"fsync after 4 KiB", duration_cell(m.fsync_ns)});
    calls.row({"fsync after appending 4 KiB", duration_cell(m.fsync_longer_ns)});
    calls.row({"null system call", duration_cell(m.call_ns)});
    calls.print(out, 2);
}

/// With -q the table is not printed beside a file that holds the result.
bool prints_table(const po::variables_map& values) {
    return !json_alone(values) && !(quiet() && values.count("output") != 0);
}

/// Begun before anything is measured: what another one writes at the same time is refused at once. None: not asked for.
std::unique_ptr<TextOutput> begin_output(const po::variables_map& values) {
    return values.count("output") ? std::make_unique<TextOutput>(values["output"].as<std::string>()) : nullptr;
}

int storage(const po::variables_map& values) {
    const std::unique_ptr<TextOutput> output = begin_output(values);
    Progress progress("calibrate");
    StorageOptions how;
    how.stop = &interrupted;
    how.progress = [&](const char* step, int done, int total) {
        progress.update(static_cast<uint64_t>(done), static_cast<uint64_t>(total), step);
    };
    const StorageModel model = measure_storage(values["storage"].as<std::string>(), how);
    progress.finish();
    if (!model.cold && !quiet()) {
        std::cerr << "reprise: warning: memory served the reads, not storage (" << printable(model.directory)
                  << (model.file_system.empty() ? "" : " is " + printable(model.file_system))
                  << "): the model describes memory\n";
    }
    constexpr double kSome = 0.1;  // less may be anything; predictions are fair from here on
    if (model.disturbed > kSome) {
        std::cerr
            << "reprise: warning: others used " << (model.device.empty() ? "the device" : printable(model.device))
            << " during " << format_share(model.disturbed)
            << " of the measurements: predictions from them are not to be trusted; measure again when it is idle\n";
    }
    if (const std::string rates = falling_rate(model); !rates.empty()) {
        std::cerr << "reprise: warning: " << rates
                  << ": the machine was busy; predictions from this are not to be trusted; measure again\n";
    }
    if (output) {
        write_json(*output, Json::parse(to_json(model)));
    }
    if (json_wanted(values)) {
        put_json(values, Json::parse(to_json(model)));
    }
    if (prints_table(values)) {
        print(model, std::cout);
    }
    return 0;
}

/// The machine that --compare names.
struct Other {
    std::string host;
    WorkRates one;
    std::optional<WorkRates> all;  // a recording has those of one thread only
};

Other read_other(const std::string& path) {
    if (!is_op_log(read_head(path))) {
        const HostProfile profile = read_host_profile(path);
        return {profile.host, profile.one, profile.all};
    }
    const LogReader log(path);
    const std::optional<std::string> text = read_fact(log.header(), fact::capture_profile);
    const std::optional<WorkProfile> recorded = text ? work_profile_of(*text) : std::nullopt;
    if (!recorded) {
        throw bad_input(path, "this log carries no profile of the machine it was recorded on",
                        "name a log that `reprise capture` made, or a profile that `reprise calibrate -o` wrote");
    }
    return {log.header().host, recorded->one, std::nullopt};
}

void print_comparison(const HostProfile& here, const Other& other, std::ostream& out) {
    const auto line = [&](const char* what, const SpeedRatio& ratio) {
        char text[120];
        std::snprintf(text, sizeof text, "%s: %.3f x the speed of %s, +/- %.0f %%\n", what, ratio.ratio,
                      printable(other.host).c_str(), ratio.uncertainty * 100);
        out << text;
    };
    if (!other.all) {
        // A recorder takes the best of many pieces, not their median.
        return line("one thread", compare_speed(measure_work_profile().one, other.one));
    }
    line("one thread", compare_speed(here.one, other.one));
    line("all CPUs", compare_speed(here.all, *other.all));
}

int run(const po::variables_map& values) {
    if (values.count("output")) {
        const std::string output = values["output"].as<std::string>();
        if (output == "-") {
            throw usage_error("-o - and the table both use standard output", "print JSON instead: --json");
        }
        check_output(output, values.count("force") != 0);
        check_directory_of(output);
    }
    std::optional<Other> other;
    if (values.count("compare")) {
        other = read_other(values["compare"].as<std::string>());
    }
    struct sigaction stop {};
    stop.sa_handler = [](int) { interrupted = true; };
    sigaction(SIGINT, &stop, nullptr);
    sigaction(SIGTERM, &stop, nullptr);
    if (!is_ignored(SIGHUP)) {
        sigaction(SIGHUP, &stop, nullptr);
    }
    if (values.count("storage")) {
        return storage(values);
    }
    const std::unique_ptr<TextOutput> output = begin_output(values);
    Progress progress("calibrate");
    HostOptions how;
    how.stop = &interrupted;
    how.progress = [&](const char* step, int done, int total) {
        progress.update(static_cast<uint64_t>(done), static_cast<uint64_t>(total), step);
    };
    if (values.count("dir")) {
        how.scratch = values["dir"].as<std::string>();
    }
    const HostProfile profile = measure_host(how);
    progress.finish();
    if (output) {
        write_json(*output, Json::parse(to_json(profile)));
    }
    if (json_wanted(values)) {
        put_json(values, Json::parse(to_json(profile)));
    }
    if (prints_table(values)) {
        print(profile, std::cout);
    }
    if (other) {
        print_comparison(profile, *other, json_alone(values) ? std::cerr : std::cout);
    }
    return 0;
}

const Registration registration{{
    .name = "calibrate",
    .group = Group::setup,
    .summary = "measure this machine, or a storage system",
    .help = "Takes about ten seconds on an idle machine. Measures timer lateness, the accuracy of replay delays, the "
            "cost of system calls and wakeups, CPU speed (integer, inflate, memcpy; one thread and all CPUs; medians), "
            "and how much slower compute is after a wait, with cold CPU caches.\n\n--compare prints the "
            "speed of this machine relative to another one, by its profile or an op log recorded there: the value for "
            "`reprise replay --cpu-speed`. The three kinds of work do not scale alike; their spread is printed as the "
            "uncertainty.\n\n--storage DIR "
            "measures a storage system instead, in about twenty seconds and with 512 MiB of space: read latency by "
            "request size (direct I/O), parallelism, what it does with up to 128 requests in flight, and the cost of "
            "metadata calls, writes and fsync.",
    .examples = {{"reprise calibrate -o host.json", "measure and save the profile"},
                 {"reprise calibrate --storage /mnt/new -o model.json", "a storage model for reprise predict"},
                 {"reprise calibrate --compare job.oplog", "speed relative to the recording's machine"}},
    .options = options,
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::calibrate_command

// SPDX-License-Identifier: MIT
// `reprise capture`: records the I/O of a command, a running job or a container.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "calibrate/work_profile.h"
#include "capture/capture.h"
#include "capture/contents.h"
#include "capture/gpu/collection.h"
#include "capture/holes.h"
#include "capture/rank_variables.h"
#include "cli/capture_metrics.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/json_output.h"
#include "cli/links_on_disk.h"
#include "cli/log_arguments.h"
#include "cli/metrics_option.h"
#include "cli/named_files.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/recordings.h"
#include "cli/show_gpu.h"
#include "cli/show_recorder.h"
#include "cli/table.h"
#include "cli/torch_hook.h"
#include "cli/units.h"
#include "formats/assemble/recording/recording.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/oplog.h"
#include "formats/oplog/part_of_job.h"
#include "formats/raw/log.h"
#include "formats/support/end_signals.h"
#include "formats/support/error.h"
#include "replay/plan/stored_queues.h"

namespace reprise::cli::capture_command {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

void options(po::options_description& add) {
    add.add_options()("output,o", po::value<std::string>()->value_name("FILE"), "op log to write");
    add.add_options()("pid,p", po::value<std::string>()->value_name("PID"),
                      "attach to this process and its descendants");
    add.add_options()("cgroup", po::value<std::string>()->value_name("DIR"),
                      "record the tasks of this cgroup, such as a container");
    add.add_options()("user,u", po::value<std::string>()->value_name("NAME"),
                      "run the command as this user [default: the user who called sudo]");
    add.add_options()("without", po::value<Words>()->value_name("GROUP")->composing(),
                      "event groups to leave out, comma-separated; may be repeated");
    add.add_options()("with", po::value<Words>()->value_name("WHAT")->composing(),
                      "also record mapped-uses (which pages of mapped files are used again, for replays under a "
                      "memory limit), content (how far files compress, for prepare --content recorded)");
    add.add_options()("wait-all", "keep recording until all processes the command started have exited");
    add.add_options()("runs", po::value<std::string>()->value_name("N"),
                      "record the command N times, to FILE.1 and so on, and compare the recordings");
    add.add_options()("torch", "mark the batches of an unmodified PyTorch job (docs/markers.md)");
    add.add_options()("gpu", "record NVIDIA GPU work, with CUPTI inside the job");
    add.add_options()("cufile", po::value<Words>()->value_name("FILE")->composing(),
                      "libcufile of the job, where it is not in a usual place; may be repeated");
    add.add_options()("ring", po::value<std::string>()->value_name("SIZE")->default_value("32M"),
                      "ring buffer between kernel and recorder");
    add_role_option(add);
    add.add_options()("raw", "keep the raw records next to the output");
    add.add_options()("check", "show which hooks this machine allows, and record nothing");
    add.add_options()("force,f", "overwrite the output if it exists");
    add_metrics_option(add);
    add_json_option(add, "print the summary (or --check) as JSON, after the job's own output,");
}

int check(const po::variables_map& values) {
    const CaptureCheck found = check_capture();
    Table table({{"group", "group"}, {"hook", "hook"}, {"available", "granted"}, {"without it", "otherwise"}});
    for (const CaptureHook& hook : found.hooks) {
        table.row({hook.group, hook.name, Cell(hook.granted ? "yes" : "no", hook.granted),
                   hook.granted ? Cell("", nullptr) : Cell(hook.follows)});
    }
    if (json_wanted(values)) {
        Json json;
        json["can_record"] = found.refusal.empty();
        json["refusal"] = found.refusal.empty() ? Json() : Json(found.refusal);
        json["fallback"] = found.refusal.empty() ? Json() : Json(capture_fallback());
        json["programs"] = !found.refusal.empty() ? Json() : found.raw_because.empty() ? "tp_btf" : "raw_tracepoint";
        json["raw_because"] = found.raw_because.empty() ? Json() : Json(found.raw_because);
        json["hooks"] = table.json();
        put_json(values, json);
    }
    if (!json_alone(values)) {
        if (found.refusal.empty()) {
            std::cout << "this machine can record"
                      << (found.raw_because.empty()
                              ? ", with tp_btf programs\n"
                              : ", with raw tracepoints, which cost more (tp_btf: " + found.raw_because + ")\n");
        } else {
            std::cout << "this machine cannot record: " << found.refusal << "\n  " << capture_fallback() << "\n";
        }
        table.print(std::cout, 2);
    }
    return static_cast<int>(found.refusal.empty() ? ExitCode::done : ExitCode::machine);
}

/// The words of a comma-separated option that may be repeated, each one of `known`.
Words words_of(const po::variables_map& values, const char* option, const Words& known) {
    Words result;
    for (const std::string& given : values.count(option) != 0 ? values[option].as<Words>() : Words()) {
        for (size_t at = 0; at <= given.size();) {
            const size_t end = std::min(given.find(',', at), given.size());
            result.push_back(given.substr(at, end - at));
            at = end + 1;
            if (std::find(known.begin(), known.end(), result.back()) == known.end()) {
                std::string expected;
                for (const std::string& name : known) {
                    expected += (expected.empty() ? "" : ", ") + name;
                }
                throw usage_error("--" + std::string(option) + ": unknown '" + escape_line(result.back()) + "'",
                                  "expected: " + expected);
            }
        }
    }
    return result;
}

Words groups_left_out(const po::variables_map& values) {
    Words known;
    for (const CaptureGroup& group : capture_groups()) {
        known.emplace_back(group.name);
    }
    return words_of(values, "without", known);
}

bool is_wanted(const po::variables_map& values, const char* what) {
    const Words wanted = words_of(values, "with", {"mapped-uses", "content"});
    return std::find(wanted.begin(), wanted.end(), what) != wanted.end();
}

fs::path raw_path(const fs::path& output) {
    fs::path raw = output;
    if (raw.extension() == ".oplog") {
        raw.replace_extension(".raw");
    } else {
        raw += ".raw";
    }
    return raw;
}

// Under sudo the output belongs to the calling user.
void give_to_user(const fs::path& path) {
    const char* uid = std::getenv("SUDO_UID");
    const char* gid = std::getenv("SUDO_GID");
    if (uid && gid && ::geteuid() == 0 &&
        ::lchown(path.c_str(), static_cast<uid_t>(std::strtoul(uid, nullptr, 10)),
                 static_cast<gid_t>(std::strtoul(gid, nullptr, 10))) != 0) {
        std::cerr << "reprise: " << printable(path.native()) << ": still owned by root\n";
    }
}

/// The recorder's process, of all processors, while the job ran.
double recorder_share(const CaptureResult& result) {
    const auto cpus = static_cast<double>(std::max(std::thread::hardware_concurrency(), 1U));
    return result.elapsed_ns > 0
               ? static_cast<double>(result.own_cpu_ns) / static_cast<double>(result.elapsed_ns) / cpus
               : 0;
}

/// Writes the log, with the GPU events if they were collected; `of_gpus`: sentences for the report.
void write_log(const fs::path& raw, const fs::path& output, const RawAssembleOptions& how, GpuCollection* gpu,
               Words& of_gpus) {
    WriterOptions writer;
    writer.derive = derive_queues;
    const auto assemble_to = [&](const fs::path& to, const WriterOptions& options) {
        assemble_raw_file(raw, to, how, options);
    };
    if (gpu == nullptr) {
        return assemble_to(output, writer);
    }
    try {
        const GpuCollection::Collected& collected = gpu->collect();
        of_gpus = gpu_check_sentences(collected);
        if (collected.work) {
            const GpuCollection::Written written =
                gpu->write(output, assemble_to, {.amend = gpu_check_facts(collected), .writer = writer});
            of_gpus.push_back(gpu_sentence(collected, written));
            const std::vector<std::string> used = gpu_use_sentences(LogReader(output));
            of_gpus.insert(of_gpus.end(), used.begin(), used.end());
            return gpu->remove();
        }
        of_gpus.push_back(no_gpu_sentence(collected));
    } catch (const Error& error) {
        of_gpus.push_back("GPU events are not in the log but in " + escape_line(gpu->folder()) + ": " + error.what());
        return assemble_to(output, writer);
    }
    assemble_to(output, writer);
    gpu->remove();
}

/// What is left, and what to do, where the op log was not made.
std::string retry_words(const fs::path& raw, const fs::path& output) {
    std::error_code ignored;
    const char* const over = fs::exists(output, ignored) ? " -f" : "";
    return "  the raw records are in " + printable(raw.native()) + "; retry with: reprise import " +
           printable(raw.native()) + " -o " + printable(output.native()) + over + "\n";
}

/// While it lives, a signal that ends this process says so first: the job has ended, and its records are kept.
UndoneAtEnd told_where_interrupted(const fs::path& raw, const fs::path& output, const GpuCollection* gpu) {
    std::string text = ::isatty(STDERR_FILENO) == 1 ? "\n" : "";  // after the line of the progress
    text += "reprise: interrupted while the op log was made\n" + retry_words(raw, output);
    if (gpu != nullptr) {
        text += "  GPU events are kept in " + escape_line(gpu->folder()) + "\n";
    }
    const auto tell = [](const char* said, const char*) {
        [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, said, std::strlen(said));
    };
    return UndoneAtEnd(tell, text);
}

// Returns the number of ops in the log, 0 on failure. Keeps the raw records if they are still needed.
uint64_t assemble(const CaptureResult& result, const fs::path& raw, const fs::path& output, const RoleOverrides& roles,
                  const po::variables_map& values, GpuCollection* gpu, Words& of_gpus) {
    const UndoneAtEnd told = told_where_interrupted(raw, output, gpu);
    try {
        Progress progress("assembling", ProgressUnit::bytes);
        RawAssembleOptions how;
        ask_for_links(how);
        how.amend = [&](LogWriter& writer) {
            note_holes(writer);
            if (is_wanted(values, "content")) {
                note_contents(writer);
            }
        };
        how.roles = roles;
        how.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
        write_log(raw, output, how, gpu, of_gpus);
        progress.finish();
    } catch (const Error& error) {
        if (gpu != nullptr) {
            of_gpus = {"GPU events are kept in " + escape_line(gpu->folder())};
        }
        std::cerr << "reprise: cannot write the op log: " << error.what() << "\n";
        std::error_code gone;
        if (fs::exists(raw, gone)) {
            std::cerr << retry_words(raw, output);
        } else {
            std::cerr << "  the raw records are lost: " << printable(raw.native())
                      << " was removed while it was written; record again, with -o outside what the job removes\n";
        }
        return 0;
    }
    give_to_user(output);
    std::error_code ignored;
    if (values.count("raw") == 0 && result.failure.empty()) {
        fs::remove(raw, ignored);
    }
    return LogReader(output).op_count();
}

/// What the recording took of the machine and around the job, and what it says of itself.
void print_recorder(const CaptureResult& result, const fs::path& output, uint64_t ops, int64_t after_ns) {
    std::cerr << "recorder: " << format_duration(result.own_cpu_ns) << " of CPU, "
              << format_share(recorder_share(result)) << " of the machine; " << format_duration(result.before_ns)
              << " before the job and " << format_duration(after_ns) << " after it\n";
    if (ops != 0) {
        const LogReader log(output);
        if (const std::string dear = dear_memory_sentence(log.header()); !dear.empty()) {
            std::cerr << "memory: " << dear << "\n";
        }
        if (const int64_t huge = read_fact(log.header(), fact::mapped_uses_huge).value_or(0); huge != 0) {
            std::cerr << "warning: mapped files were in huge pages: of those it is not known what was used again\n";
        }
    }
}

/// What the options led to, as the log says it.
void print_counters(const std::vector<Counter>& counters) {
    for (const Counter& counter : counters) {
        for (const Count which :
             {Count::roles_unmatched, Count::cache_files_unknown, Count::own_files_left_out, Count::marker_names_cut}) {
            const CounterInfo& row = info(which);
            if (counter.name == row.name && (row.severity != Severity::note || !quiet())) {
                std::cerr << severity_name(row.severity) << ": " << format_count(counter.value) << " "
                          << counter.meaning << "\n";
            }
        }
    }
}

/// While it lives, what goes to standard error is kept, and then written at once: the recorders of several ranks have
/// one terminal.
class AtOnce {
public:
    AtOnce() : before_(std::cerr.rdbuf(kept_.rdbuf())) {}
    ~AtOnce() {
        std::cerr.rdbuf(before_);
        std::cerr << kept_.str() << std::flush;
    }
    AtOnce(const AtOnce&) = delete;
    AtOnce& operator=(const AtOnce&) = delete;

private:
    std::ostringstream kept_;
    std::streambuf* before_;
};

/// Said whatever else is: such a log is refused by replays.
void print_part(const CaptureResult& result, const PartOfJob& part) {
    if (part.why().empty() || !result.failure.empty()) {
        return;
    }
    std::cerr << "INCOMPLETE: " << part.sentence() << ". replay takes such a log with --allow-loss only; "
              << (result.lost != 0 ? "record again with a larger --ring" : "record again") << ".\n";
}

void print_report(const CaptureResult& result, const fs::path& output, uint64_t ops, const PartOfJob& part,
                  const Words& of_gpus, bool wait_all, int64_t after_ns) {
    const AtOnce lines;
    print_part(result, part);
    if (!quiet()) {
        std::error_code ignored;
        const bool whole = result.failure.empty();
        if (fs::exists(output, ignored)) {
            std::cerr << printable(output.native()) << (whole ? ": " : ": INCOMPLETE, ") << counted(ops, "op");
        } else {
            std::cerr << "NO OP LOG was written";
        }
        if (ops != 0) {
            std::cerr << ", " << format_bytes(fs::file_size(output, ignored));
        }
        std::cerr << ", from " << counted(result.calls, "call") << " (" << counted(result.records, "record") << ", "
                  << format_bytes(result.bytes) << ") of " << counted(result.tasks, "task") << " in "
                  << format_duration(result.elapsed_ns) << "; "
                  << (whole ? format_count(result.lost) + " lost" : "all that came later is lost") << ", max lag "
                  << format_duration(result.most_lag_ns) << "\n";
        print_recorder(result, output, ops, after_ns);
    }
    if (result.recursion_misses != 0) {
        std::cerr << "warning: " << counted(result.recursion_misses, "event") << " dropped (BPF recursion)\n";
    }
    if (result.untracked != 0) {
        std::cerr << "loss: " << counted(result.untracked, "task") << " not followed (out of memory, or 32-bit)\n";
    }
    // A recording that ended early does not know whether they still run.
    if (result.still_running != 0 && result.failure.empty() && !quiet()) {
        // Where it was attached, or ended by a signal, that is as asked.
        const bool left = result.command_ended && !wait_all;
        std::cerr << "note: " << counted(result.still_running, "task") << " still running"
                  << (left ? "; --wait-all records until they exit" : "") << "\n";
    }
    if (ops != 0) {
        print_counters(LogReader(output).tables().counters);
    }
    for (const std::string& hook : result.absent) {
        std::cerr << "warning: hook " << hook << " is not available; see reprise capture --check\n";
    }
    if (quiet()) {
        return;
    }
    for (const std::string& sentence : of_gpus) {
        std::cerr << "gpu: " << sentence << "\n";
    }
}

void report(const CaptureResult& result, const fs::path& output, uint64_t ops, const PartOfJob& part,
            const Words& of_gpus, bool wait_all, int64_t after_ns, const po::variables_map& values) {
    if (json_wanted(values)) {
        std::error_code ignored;
        Json json;
        json["output"] = fs::exists(output, ignored) ? Json(printable(output.native())) : Json();
        json["ops"] = ops;
        json["bytes"] = ops != 0 ? fs::file_size(output, ignored) : 0;
        json["records"] = result.records;
        json["calls"] = result.calls;
        json["tasks"] = result.tasks;
        json["raw_bytes"] = result.bytes;
        json["elapsed_ns"] = result.elapsed_ns;
        json["lost"] = result.lost;
        json["part"] = part.why().empty() ? Json() : Json(part.sentence());
        json["recursion_misses"] = result.recursion_misses;
        json["untracked"] = result.untracked;
        json["most_lag_ns"] = result.most_lag_ns;
        json["recorder_cpu_ns"] = result.own_cpu_ns;
        json["recorder_share"] = recorder_share(result);
        json["before_ns"] = result.before_ns;
        json["after_ns"] = after_ns;
        put_recorder_facts(json, ops != 0 ? LogReader(output).header() : Header());
        json["still_running"] = result.still_running;
        json["absent"] = result.absent;
        if (!of_gpus.empty()) {
            json["gpu"] = of_gpus;
        }
        json["failure"] = result.failure.empty() ? Json() : Json(result.failure);
        json["exit_status"] = !result.command_ended      ? Json()
                              : WIFEXITED(result.status) ? Json(WEXITSTATUS(result.status))
                                                         : Json(128 + WTERMSIG(result.status));
        put_json(values, json);
    }
    if (!json_alone(values)) {
        print_report(result, output, ops, part, of_gpus, wait_all, after_ns);
    }
}

// As if the command had been run by itself.
int pass_on(int status) {
    if (WIFSIGNALED(status)) {
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        std::signal(WTERMSIG(status), SIG_DFL);
        std::cerr.flush();
        std::cout.flush();
        ::raise(WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}

/// A number without a unit is bytes, and mostly meant as something else where it is small.
uint64_t ring_bytes(const std::string& given) {
    constexpr uint64_t kPage = 4096, kPlain = uint64_t{1} << 20, kMost = uint64_t{1} << 30;
    const uint64_t bytes = parse_bytes(given, "--ring");
    const bool plain = given.find_first_not_of("0123456789") == std::string::npos;
    if (bytes < (plain ? kPlain : kPage)) {
        throw usage_error("--ring '" + escape_line(given) + "' is " + counted(bytes, "byte"),
                          plain ? "give a unit: --ring " + given + "M for MiB, --ring " + given + "K for KiB"
                                : "the least is 4K; the default is 32M");
    }
    if (bytes > kMost) {
        throw usage_error("--ring is '" + escape_line(given) + "', expected a size from 4K to 1G",
                          "the default is 32M");
    }
    return bytes;
}

/// A capture that cannot begin leaves no raw file behind, which would be in the way of the next attempt. One that ended
/// early keeps its records and says so in the result.
CaptureResult capture_or_clean_up(const CaptureOptions& how) {
    std::error_code ignored;
    const bool was_there = fs::exists(how.raw, ignored);
    try {
        return capture(how);
    } catch (...) {
        if (!was_there && !raw_in_use(how.raw)) {
            fs::remove(how.raw, ignored);
        }
        throw;
    }
}

/// `%q{NAME}`, as other profilers have it: the value of a variable of the environment.
std::string with_variables(const std::string& given) {
    std::string out;
    for (size_t at = 0; at < given.size();) {
        const size_t begin = given.find("%q{", at);
        const size_t end = begin == std::string::npos ? begin : given.find('}', begin);
        if (end == std::string::npos) {
            return out + given.substr(at);
        }
        const std::string name = given.substr(begin + 3, end - begin - 3);
        const char* const value = std::getenv(name.c_str());
        if (value == nullptr || *value == '\0' || std::strchr(value, '/') != nullptr) {
            throw usage_error("-o '" + escape_line(given) + "': the variable " + escape_line(name) +
                                  (value == nullptr ? " is not set" : " cannot be a part of a file name"),
                              "name one that the launcher sets for each rank, such as OMPI_COMM_WORLD_RANK");
        }
        out += given.substr(at, begin - at) + value;
        at = end + 1;
    }
    return out;
}

/// job.oplog, or, of a rank of several, job.rank2.oplog.
fs::path output_of_rank(const std::string& given) {
    fs::path output = with_variables(given);
    const std::optional<RankVariables> rank = own_rank();
    if (!rank || rank->world < 2 || output != given) {
        return output;
    }
    const fs::path ending = output.extension();
    output.replace_extension(".rank" + std::to_string(rank->rank) + ending.string());
    if (!quiet()) {
        std::cerr << "reprise: rank " << rank->rank << " of " << rank->world << " (" << rank->source
                  << "), recorded to " << printable(output.native()) << "\n";
    }
    return output;
}

fs::path wanted_output(const po::variables_map& values) {
    if (values.count("output") == 0) {
        throw usage_error("-o is required", values.count("command") == 0
                                                ? "name the op log to write"
                                                : "name the op log to write, before the command: -o FILE CMD");
    }
    check_log_name(values["output"].as<std::string>());
    return output_of_rank(values["output"].as<std::string>());
}

/// `metrics`: none where nobody looks.
int record(const po::variables_map& values, const fs::path& output, bool one_of_several, CaptureMetrics* metrics) {
    CaptureOptions how;
    RoleOverrides roles = wanted_roles(values, true);  // refused before the job runs
    if (values.count("command") != 0) {
        how.command = values["command"].as<Words>();
    }
    if (values.count("pid") != 0) {
        constexpr int64_t kMostPids = 1 << 22;
        how.pid = static_cast<int>(whole_number(values, "pid", 1, kMostPids));
    }
    if (values.count("cgroup") != 0) {
        how.cgroup = values["cgroup"].as<std::string>();
    }
    const int ways = (how.command.empty() ? 0 : 1) + (values.count("pid") != 0 ? 1 : 0) + (how.cgroup.empty() ? 0 : 1);
    if (ways != 1) {
        throw usage_error(ways == 0 ? "nothing to record: give a command, --pid or --cgroup"
                                    : "give only one of a command, --pid and --cgroup",
                          "see: reprise capture --help");
    }
    how.raw = raw_path(output);
    how.output = output;
    if (raw_in_use(how.raw)) {
        throw usage_error("another recording is writing " + printable(how.raw.native()), "choose another file with -o");
    }
    check_written_too("capture", values, how.raw, "-o " + escape_line(values["output"].as<std::string>()));
    for (const fs::path& path : {output, how.raw}) {
        check_log_output(path, values.count("force") != 0);
    }
    how.without = groups_left_out(values);
    if (values.count("user") != 0) {
        how.user = values["user"].as<std::string>();
    }
    for (const std::string& file : values.count("cufile") != 0 ? values["cufile"].as<Words>() : Words()) {
        how.cufile.emplace_back(file);
    }
    if (!how.cufile.empty() && std::find(how.without.begin(), how.without.end(), "cufile") != how.without.end()) {
        throw usage_error("--cufile and --without cufile exclude each other", "give one of them");
    }
    how.mapped_uses = is_wanted(values, "mapped-uses");
    how.wait_all = values.count("wait-all") != 0;
    if (values.count("torch") != 0) {
        if (how.command.empty()) {
            throw usage_error("--torch requires a command", "give it after --");
        }
        const char* before = std::getenv("PYTHONPATH");
        ::setenv("PYTHONPATH", torch_hook_python_path(before ? before : "").c_str(), 1);
    }
    std::optional<GpuCollection> gpu;
    if (values.count("gpu") != 0) {
        if (how.command.empty()) {
            throw usage_error("--gpu requires a command", "give it after --");
        }
        gpu.emplace(output);
        // The collector writes from within the job; that is not the job's own I/O.
        roles.also(gpu->folder(), Role::system);
    }
    how.ring_bytes = ring_bytes(values["ring"].as<std::string>());
    how.version = tool_version();
    how.profile = to_json(this_work_profile());  // before the job begins; a second, the first time

    Progress progress("recording");
    if (progress.active() || metrics != nullptr) {
        how.progress = [&](const CaptureProgress& now) {
            progress.update(now.records, 0,
                            format_bytes(now.bytes) + (now.lost ? ", lost " + format_count(now.lost) : std::string()));
            if (metrics != nullptr) {
                metrics->progress(now);
            }
        };
    }
    if (metrics != nullptr) {
        metrics->begin_run();
    }
    const CaptureResult result = capture_or_clean_up(how);
    progress.finish();
    if (metrics != nullptr) {
        metrics->end_run();
    }
    give_to_user(how.raw);
    Words of_gpus;
    const uint64_t ops = assemble(result, how.raw, output, roles, values, gpu ? &*gpu : nullptr, of_gpus);
    const int64_t after_ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - result.ended).count();
    const PartOfJob part = ops == 0 ? PartOfJob() : part_of_job(LogReader(output).tables());
    if (!result.failure.empty()) {
        std::cerr << "reprise: the recording ended before the job: " << result.failure << "\n";
    }
    if (one_of_several && !quiet()) {
        print_report(result, output, ops, part, of_gpus, how.wait_all, after_ns);
    } else if (!one_of_several) {
        report(result, output, ops, part, of_gpus, how.wait_all, after_ns, values);
    }
    if (result.command_ended && result.status != 0) {
        return pass_on(result.status);
    }
    return static_cast<int>(!result.failure.empty() || ops == 0 ? ExitCode::machine
                            : part.why().empty()                ? ExitCode::done
                                                                : ExitCode::check_failed);
}

int run(const po::variables_map& values) {
    if (values.count("check") != 0) {
        return check(values);
    }
    std::unique_ptr<CaptureMetrics> metrics;
    std::unique_ptr<MetricsServer> server;
    const auto serve = [&](const fs::path& output) {
        if (values.count("metrics") != 0) {
            metrics = std::make_unique<CaptureMetrics>(output.filename().string());
            server = serve_metrics(values, [&] { return metrics->text(); });
        }
    };
    if (values.count("runs") == 0) {
        const fs::path output = wanted_output(values);
        serve(output);
        return record(values, output, false, metrics.get());
    }
    const unsigned runs = wanted_runs(values);
    if (values.count("command") == 0) {
        throw usage_error("--runs requires a command", "a running process cannot be started again");
    }
    const fs::path output = wanted_output(values);
    for (unsigned run = 1; run <= runs; ++run) {
        const fs::path log = numbered(output, run);
        for (const fs::path& path : {log, raw_path(log)}) {
            check_written_too("capture", values, path, "-o " + escape_line(output.native()));
            check_log_output(path, values.count("force") != 0);
        }
    }
    serve(output);
    return record_runs(runs, output, values,
                       [&](const fs::path& log) { return record(values, log, true, metrics.get()); });
}

const Registration registration{{
    .name = "capture",
    .group = Group::record,
    .summary = "record a job's I/O with eBPF",
    .help = "Records the command from its first instruction, with all its threads and children, or attaches to running "
            "processes. The command keeps its environment, terminal, signals and exit code, and runs as the user who "
            "called sudo. Options end at the first word that is not one: the rest is the command. Requires root, or "
            "CAP_BPF and CAP_PERFMON; --check shows what this machine allows.\n\nGroups "
            "for --without: faults, uring, causes, pagecache, block, memory, network, cufile, pressure. Where "
            "events were lost, that is said first, and the exit code is 1 if the command's is 0. If the recorder is "
            "killed, the job goes on and the records, all but the last second, stay in the .raw file next to "
            "the output; `reprise import` turns them into a log.\n\n--gpu requires a build with CUPTI, and a job "
            "without a profiler of its own.",
    .examples = {{"reprise capture -o job.oplog -- python train.py", "a command, from its first instruction"},
                 {"reprise capture --runs 5 -o job.oplog -- python train.py",
                  "five recordings: job.1.oplog to job.5.oplog"},
                 {"reprise capture -o job.oplog --pid 4711", "a running job, until it exits or Ctrl-C"},
                 {"reprise capture -o job.oplog --metrics :9400 -- python train.py", "watched by Prometheus"},
                 {"reprise capture --check", "what this machine allows"}},
    .options = options,
    .positionals = {{"command", "CMD", 0, -1}},
    .runs_program = true,
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::capture_command

// SPDX-License-Identifier: MIT
#include "replay/run/runner.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>

#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/quantity.h"
#include "formats/support/unique_fd.h"
#include "replay/engine/syscalls.h"
#include "replay/plan/what_if.h"
#include "replay/prepare/prepare.h"
#include "replay/prepare/root_marker.h"
#include "replay/run/collect.h"
#include "replay/run/memory_files.h"
#include "replay/run/same_job.h"
#include "replay/run/supervisor.h"

namespace reprise {
namespace {

std::string format_tenths(double value) {
    const long long tenths = std::llround(value * 10);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

class RootDescriptor {
public:
    explicit RootDescriptor(const std::filesystem::path& root)
        : fd_(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
        if (get() < 0) {
            throw machine_error("cannot open the root " + escape_line(root.string()) + ": " + reason(errno),
                                remedy(errno, "name an existing directory (reprise prepare makes one)"));
        }
        const int64_t probe = open_inside(get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        if (probe < 0) {
            throw machine_error(std::string("this kernel cannot confine paths to the root (openat2): ") +
                                    std::strerror(static_cast<int>(-probe)),
                                "use Linux 5.6 or newer, and a sandbox that allows openat2");
        }
        close(static_cast<int>(probe));
    }
    int get() const { return fd_.get(); }

private:
    UniqueFd fd_;
};

/// Decides whether the log may run in this root, and by which rules its paths lie there.
PathMap check_root(const ReplayOptions& options, int root, std::optional<Marker>& marker) {
    marker = read_marker(root, options.root.string());
    if (marker && marker->state != MarkerState::complete && marker->state != MarkerState::changed) {
        throw machine_error("the root " + escape_line(options.root.string()) + " is only partly prepared",
                            "run reprise prepare again");
    }
    const auto prepare = [&](const char* more) {
        return "reprise prepare " + escape_line(options.log_name) + " --root " + escape_line(options.root.string()) +
               more;
    };
    if (marker && !options.fingerprint.empty() && marker->fingerprint != options.fingerprint) {
        throw machine_error("the root " + escape_line(options.root.string()) + " was prepared for another log, " +
                                escape_line(marker->log),
                            "prepare it for this one: " + prepare(""));
    }
    if (marker && options.maps && *options.maps != marker->maps) {
        throw machine_error("the root " + escape_line(options.root.string()) + " was prepared with " +
                                escape_line(marker->maps.to_options()) + ", not with " +
                                escape_line(options.maps->to_options()),
                            "leave out --map, or prepare another root with it");
    }
    if (options.maps) {
        return *options.maps;
    }
    return marker ? marker->maps : PathMap{};
}

/// Keeps other runs out, and reads the marker again: another run may have changed it meanwhile.
RootLock lock_root(const ReplayOptions& options, int root, bool modifies, std::optional<Marker>& marker) {
    RootLock lock =
        RootLock::take(root, options.root.string(), modifies ? RootLock::Kind::exclusive : RootLock::Kind::shared);
    check_root(options, root, marker);
    return lock;
}

void check_changes(const Plan& plan, const ReplayOptions& options, bool marked) {
    if (plan.changing_ops == 0 || options.read_only || marked) {
        return;
    }
    throw machine_error("the log alters files (" + std::to_string(plan.changing_ops) +
                            " ops, first: " + escape_line(plan.first_change) + "), and " +
                            escape_line(options.root.string()) + " was not prepared for changes",
                        "run reprise prepare LOG --root DIR first, or skip such ops with --read-only");
}

void sum_up(const Plan& plan, SharedRun& run, ReplayResult& result) {
    int64_t read = 0, written = 0;
    bool known = false;
    for (ProcessId process = 1; process < plan.processes.size(); ++process) {
        const ProcessSlot& slot = run.process(process);
        if (slot.pid.load() == 0) {
            continue;
        }
        ++result.processes;
        // A process counts its child processes, too.
        if (slot.device_read_bytes.load() >= 0 && plan.processes[process].spawner == 0) {
            known = true;
            read += slot.device_read_bytes.load();
            written += std::max<int64_t>(slot.device_write_bytes.load(), 0);
        }
    }
    if (known) {
        result.device_read_bytes = static_cast<uint64_t>(read);
        result.device_write_bytes = static_cast<uint64_t>(written);
    }
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        result.tasks += plan.tasks[task].ops != 0 ? 1 : 0;
        result.edges += plan.tasks[task].waits.size();
    }
    result.edges_by_kind = plan.edges_by_kind;
    int64_t device = 0;
    for (const auto& [stream, slot] : plan.streams) {
        result.accelerators += result.accelerators == 0 || stream.first != device ? 1 : 0;
        device = stream.first;
    }
    result.unexplained_wait_share = plan.wait_ns == 0 ? -1.0
                                                      : static_cast<double>(plan.wait_ns - plan.explained_wait_ns) /
                                                            static_cast<double>(plan.wait_ns);
    result.counters = plan.counters;
    result.queues = plan.queues;
    result.queues.edges.clear();
}

void note_broken(const std::vector<BrokenEdge>& broken, ReplayResult& result) {
    if (broken.empty()) {
        return;
    }
    count(result.counters, Count::edges_given_up, broken.size());
    constexpr size_t kShown = 3;
    for (size_t i = 0; i < std::min(broken.size(), kShown); ++i) {
        result.notes.push_back("Dependency cycle, so one edge was dropped: " + to_string(broken[i]) + ".");
    }
}

void add_notes(ReplayResult& result) {
    const auto late = static_cast<double>(result.lateness.percentile(0.99));
    if (result.timed && result.fidelity.failures.empty() && late > 5e6 &&
        late > 0.01 * static_cast<double>(result.elapsed_ns)) {
        result.notes.push_back("This machine barely kept up with the recorded times: p99 lateness of ops is " +
                               std::to_string(std::llround(late / 1e6)) + " ms.");
    }
    const auto not_open = static_cast<size_t>(LeftOut::not_open);
    if (result.left_out[not_open] != 0) {
        result.notes.push_back(counted(result.left_out[not_open], "op was", "ops were") +
                               " not performed because the open failed; see the opens that differ.");
    }
    const auto device = static_cast<size_t>(LeftOut::device_node);
    if (result.left_out[device] != 0) {
        result.notes.push_back(counted(result.left_out[device], "op") +
                               " named a device node below the root: not performed.");
    }
}

/// Puts the page cache into the state that was asked for.
std::unique_ptr<CacheKeeper> keep_cache(const Plan& plan, const ReplayOptions& options, int root) {
    const int64_t begun = monotonic_ns();
    const auto tick = [&options, begun](uint64_t done, uint64_t total) {
        if (options.progress) {
            options.progress({ReplayProgress::Phase::caching, done, total, monotonic_ns() - begun, 0});
        }
    };
    auto keeper = std::make_unique<CacheKeeper>(
        root, plan_cache(plan, options.recording != nullptr ? *options.recording : *plan.log),
        default_prepare_threads(), tick);
    keeper->apply(*options.cache);
    return keeper;
}

/// Recorded compute takes the processor, unless this machine has too few: then the run would measure the processors and
/// not the storage system.
Computing choose_computing(const Plan& plan, DelayPolicy asked, ReplayResult& result) {
    constexpr double kAbout = 1.1;  // short overlaps in a recording come from preemption
    result.compute_peak = plan.compute_load.peak();
    Computing how{asked, asked != DelayPolicy::automatic};
    if (asked == DelayPolicy::automatic) {
        const bool enough = result.compute_peak <= kAbout * result.machine.cpus;
        how.policy = enough ? DelayPolicy::spin : DelayPolicy::sleep;
        if (!enough) {
            result.notes.push_back("The recording used up to " + format_tenths(result.compute_peak) +
                                   " CPUs for compute at once, and this machine has " +
                                   std::to_string(result.machine.cpus) +
                                   ": compute is slept instead (--delay spin makes threads compete for CPUs).");
        }
    }
    result.delay = how.policy;
    return how;
}

}  // namespace

bool device_reads_known(const ReplayResult& result) {
    constexpr std::string_view kAccounted[] = {"tmpfs", "ramfs", "overlay", "btrfs"};  // without a device of their own
    return result.device_read_bytes.value_or(0) != 0 || result.device_counter ||
           std::find(std::begin(kAccounted), std::end(kAccounted), result.machine.file_system) != std::end(kAccounted);
}

void check_losses(const LogReader& log, bool allow) {
    if (allow || log.tables().losses() == 0) {
        return;
    }
    std::string what = "the recording is incomplete:";
    for (const Counter& counter : log.tables().counters) {
        if (counter.severity == Severity::loss && counter.value != 0) {
            what += " " + std::to_string(counter.value) + " " + counter.name + " (" + counter.meaning + ");";
        }
    }
    what.pop_back();
    throw bad_input(log.path().string(), what, "record it again, or use it as it is with --allow-loss");
}

ReplayResult replay(const LogReader& log, const ReplayOptions& asked) {
    ReplayOptions options = asked;
    const TickPoint first_point = take_tick_point();
    check_losses(log, options.allow_loss);
    check_factors(options.speeds, options.pace == Pace::causal);
    const bool uses_root = reprise::uses_root(options.engine);
    std::unique_ptr<RootDescriptor> root;
    std::optional<Marker> marker;
    PathMap maps = options.maps.value_or(PathMap{});
    if (uses_root) {
        if (options.root.empty()) {
            throw usage_error("replay needs --root", "name the directory that reprise prepare laid out");
        }
        root = std::make_unique<RootDescriptor>(options.root);
        maps = check_root(options, root->get(), marker);
    }
    if (options.progress) {
        options.progress({ReplayProgress::Phase::planning, 0, log.op_count(), 0, 0});
    }
    const Plan plan = make_plan(log, options.filter, maps, options.pace == Pace::causal);
    std::optional<MemoryFiles> memory_files;
    ReplayResult result;
    RootLock lock;
    const bool modifies = uses_root && plan.changing_ops != 0 && !options.read_only;
    if (uses_root) {
        lock = lock_root(options, root->get(), modifies, marker);
        check_changes(plan, options, marker.has_value());
        if (marker && marker->state == MarkerState::changed) {
            result.notes.push_back(
                "Earlier replays changed files in this root. Restore them first with reprise prepare " +
                escape_line(options.log_name) + " --root " + escape_line(options.root.string()) + " --reset.");
        }
        if (marker && marker->content == Content::sparse) {
            result.notes.push_back(
                "The root's files are sparse (prepare --content sparse): reading holes is neither "
                "storage nor memory.");
        }
        memory_files.emplace(plan, options.root);
        if (memory_files->mounted()) {
            root = std::make_unique<RootDescriptor>(options.root);
        }
        if (!memory_files->note().empty()) {
            result.notes.push_back(memory_files->note());
        }
    }
    result.machine = machine_facts(uses_root ? options.root : std::filesystem::path{});
    result.timed = options.pace != Pace::afap;
    result.cpu_speed = options.cpu_speed;
    result.cpu_speed.ratio = options.speeds.cpu;
    const uint64_t rows = plan.tasks.size() < 2 ? 0 : plan.tasks.back().spool_first + plan.tasks.back().ops;
    const size_t limit = options.spool_memory != 0 ? options.spool_memory : result.machine.memory_bytes / 4;
    SharedRun run(plan.tasks.size(), plan.processes.size(), plan.streams.size(), plan.passed.size(), rows, limit,
                  options.output.parent_path());
    const WritePattern pattern(uses_root ? plan.write_bytes : 0);
    if (options.pace != Pace::afap) {
        options.speeds.computing = choose_computing(plan, options.delay, result);
    }
    const WorkerSetup setup{&plan,
                            &run,
                            &pattern,
                            options.pace,
                            options.engine,
                            options.speeds,
                            uses_root ? root->get() : -1,
                            options.read_only};
    result.plan_ns = monotonic_ns() - first_point.ns;
    std::unique_ptr<CacheKeeper> cache;
    if (uses_root && options.cache) {
        cache = keep_cache(plan, options, root->get());
    }
    if (modifies) {
        mark_changed(root->get(), options.root.string(), lock);
    }
    const ProcessorUse before = read_processor_use();
    const auto device_before = read_device_counter(uses_root ? options.root : std::filesystem::path{});
    const SupervisedRun supervised = supervise(setup, options, first_point);
    result.ended = supervised.ended;
    const ProcessorUse after = read_processor_use();
    result.fidelity.other_cpus = others_between(before, after);
    result.fidelity.stolen_cpus = stolen_between(before, after);
    sum_up(plan, run, result);
    const auto device_after = read_device_counter(uses_root ? options.root : std::filesystem::path{});
    if (device_before && device_after) {
        result.device_counter = {device_after->read_bytes - device_before->read_bytes,
                                 device_after->write_bytes - device_before->write_bytes};
        result.device_write_bytes = result.device_counter->write_bytes;
    }
    if (cache) {
        cache->look_again();
        result.cache = cache->report();
    }
    note_broken(supervised.broken, result);
    collect(plan, run, options, supervised.clock, supervised.start_unix_ns, result, [&] {
        if (const std::optional<int64_t> waited = read_fact(log.header(), fact::run_queue)) {
            result.fidelity.recorded_run_queue_ns = *waited;
        }
        judge_results(options.tolerated, result);
        judge(result.fidelity, result.lateness, result.elapsed_ns, result.machine.cpus);
        result.trust = trust_in(result);
    });
    add_notes(result);
    const int64_t most_ns = result.ended == "complete" ? 500'000'000 : 50'000'000;  // somebody waits for the end
    result.harness_ns_per_op = measure_harness_ns(plan, 2'000'000, most_ns);
    return result;
}

}  // namespace reprise

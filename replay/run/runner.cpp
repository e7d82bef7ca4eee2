// SPDX-License-Identifier: MIT
#include "replay/run/runner.h"
#include "replay/run/verify_run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <set>
#include <string_view>

#include "formats/oplog/header_facts.h"
#include "formats/support/end_signals.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/quantity.h"
#include "formats/support/unique_fd.h"
#include "replay/engine/syscalls.h"
#include "replay/plan/elsewhere.h"
#include "replay/plan/guards.h"
#include "replay/plan/one_lock.h"
#include "replay/plan/shared_places.h"
#include "replay/plan/what_if.h"
#include "replay/prepare/prepare.h"
#include "replay/prepare/root_marker.h"
#include "replay/run/collect.h"
#include "replay/run/free_memory.h"
#include "replay/run/limit_run.h"
#include "replay/run/memory_files.h"
#include "replay/run/name_walk.h"
#include "replay/run/notes.h"
#include "replay/run/root_advice.h"
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
        if (probe == -EACCES) {
            throw machine_error("cannot use the root " + escape_line(root.string()) + ": " + reason(EACCES),
                                "replay as the user who prepared it, or prepare it as this one");
        }
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
                            "run it again: " + prepare_command(options, marker));
    }
    if (marker && !options.fingerprint.empty() && marker->fingerprint != options.fingerprint) {
        throw machine_error(
            "the root " + escape_line(options.root.string()) + " " + other_log_sentence(options, *marker),
            "prepare it for this one: " + prepare_command(options, marker));
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

/// The other ranks follow the run for as long as this lives.
class AttachedPeers {
public:
    AttachedPeers(Peers* peers, const Plan& plan, SharedRun& run) : peers_(peers) {
        if (peers_ != nullptr) {
            peers_->attach(plan, run);
        }
    }
    ~AttachedPeers() {
        if (peers_ != nullptr) {
            peers_->forget();
        }
    }
    AttachedPeers(const AttachedPeers&) = delete;
    AttachedPeers& operator=(const AttachedPeers&) = delete;

private:
    Peers* const peers_;
};

/// Of the ranks that share a root, one locks and marks it.
bool leads_root(const ReplayOptions& options) { return options.peers == nullptr || options.peers->leads_root(); }

/// Keeps other runs out, and reads the marker again: another run may have changed it meanwhile.
RootLock lock_root(const ReplayOptions& options, int root, bool modifies, std::optional<Marker>& marker) {
    RootLock lock;
    if (leads_root(options)) {
        lock =
            RootLock::take(root, options.root.string(), modifies ? RootLock::Kind::exclusive : RootLock::Kind::shared);
    }
    check_root(options, root, marker);
    return lock;
}

void check_changes(const Plan& plan, const ReplayOptions& options, bool marked) {
    if (plan.changing_ops == 0 || options.read_only || marked) {
        return;
    }
    throw machine_error(
        "the log alters files (" + std::to_string(plan.changing_ops) +
            " ops, first: " + escape_line(plan.first_change) + "), and " + escape_line(options.root.string()) +
            " was not prepared for changes",
        "lay it out first: " + prepare_command(options, std::nullopt) + ", or skip such ops with --read-only");
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
        const TaskId spawner = plan.processes[process].spawner;
        const bool child = spawner != 0 && plan.performs(plan.tasks[spawner].process);
        if (slot.device_read_bytes.load() >= 0 && !child) {
            known = true;
            read += slot.device_read_bytes.load();
            written += std::max<int64_t>(slot.device_write_bytes.load(), 0);
        }
    }
    if (known) {
        result.device_read_bytes = static_cast<uint64_t>(read);
        result.device_write_bytes = result.dirtied_bytes = static_cast<uint64_t>(written);
    }
    result.edges_by_kind = plan.edges_by_kind;
    int64_t device = 0;
    for (const auto& [stream, slot] : plan.streams) {
        result.accelerators += result.accelerators == 0 || stream.first != device ? 1 : 0;
        device = stream.first;
    }
    result.repeated_sleep_ns = plan.repeated_sleep_ns;
    result.unexplained_wait_share = plan.wait_ns == 0 ? -1.0
                                                      : static_cast<double>(plan.wait_ns - plan.explained_wait_ns) /
                                                            static_cast<double>(plan.wait_ns);
    result.counters = plan.counters;
    result.queues = plan.queues;
    result.queues.edges.clear();
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
    if (!options.limits.any()) {
        keeper->apply(*options.cache);
    }
    return keeper;
}

/// Recorded compute takes the processor, unless this machine has too few: then the run would measure the processors and
/// not the storage system.
Computing choose_computing(const Plan& plan, DelayPolicy asked, const Peers* peers, ReplayResult& result) {
    constexpr double kAbout = 1.1;  // short overlaps in a recording come from preemption
    // Overlaps beyond the CPUs that there were are preemption.
    const auto recorded_cpus = static_cast<double>(read_fact(plan.log->header(), fact::capture_cpus).value_or(0));
    result.compute_peak = plan.compute_load.peak();
    result.compute_peak = recorded_cpus > 0 ? std::min(result.compute_peak, recorded_cpus) : result.compute_peak;
    if (peers != nullptr) {
        result.compute_peak *= static_cast<double>(peers->ranks_here()) / static_cast<double>(peers->size());
    }
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

/// Of computing, where the recording has no profile of its processors.
constexpr double kUnknownSpeed = 0.25;

/// Whether some of the recorded file systems share one here.
bool on_one_place(const Plan& plan, int root, const std::vector<FileSystemUse>& recorded) {
    std::set<dev_t> here;
    for (const FileSystemUse& use : recorded) {
        const RootPath& path = plan.paths[use.file];
        if (path.relative == nullptr) {
            return false;
        }
        // The file may be gone again.
        const std::string& directory = plan.directories[path.directory].relative;
        struct stat found {};
        if (::fstatat(root, directory.c_str(), &found, 0) != 0 || !here.insert(found.st_dev).second) {
            return recorded.size() > 1;
        }
    }
    return false;
}

/// What is known of pages around page faults, where faults are replayed on storage.
MappedAround mapped_around(const ReplayOptions& options, const ReplayResult& result) {
    MappedAround out;
    if (!result.cache || result.cache->choice.regime == CacheRegime::warm ||
        result.cache->choice.regime == CacheRegime::as_is || options.access.mmap_as_read != 0) {
        return out;
    }
    const RecordedCache& recorded = result.cache->recorded;
    out.bytes = recorded.around_bytes;
    out.all_bytes = recorded.read_bytes + recorded.around_bytes;
    out.recorded_reach = recorded.fault_reach;
    out.read_ahead = result.machine.read_ahead;
    return out;
}

void find_interval(const ReplayOptions& options, ReplayResult& result) {
    if (options.pace != Pace::causal || !uses_root(options.engine)) {
        return;
    }
    result.no_interval = why_no_interval(result);
    if (!result.no_interval.empty()) {
        return;
    }
    const int cpus = std::max(result.machine.cpus, 1);
    const bool known = result.cpu_speed.source != CpuSpeed::Source::no_profile;
    ErrorSources& from = result.errors_from;
    from.elapsed_ns = result.elapsed_ns;
    from.path = result.path;
    from.speed_uncertainty = known ? result.cpu_speed.uncertainty : kUnknownSpeed;
    from.added_ns = result.fidelity.added_ns;
    from.after_waits_ns =
        after_waits_on_path(result.path, result.fidelity.after_waits_ns, result.fidelity.computing_asked_ns);
    const Fidelity& f = result.fidelity;
    const double waited =
        f.computing_took_ns - f.computing_asked_ns - static_cast<double>(std::max<int64_t>(f.recorded_run_queue_ns, 0));
    from.taken_share = std::max(f.stolen_cpus, 0.0) / cpus;
    from.taken_share += f.computing_took_ns > 0 ? std::max(waited, 0.0) / f.computing_took_ns : 0.0;
    from.alone_ns =
        alone_ns(result.helpers, result.path.of(PathPart::asleep)) +
        kept_by_limit(result.helpers, result.path.of(PathPart::asleep), result.elapsed_ns, result.recorded_ns);
    from.recordings = options.recordings;
    from.order_open = !result.queues.event_loops.empty() || !result.queues.shared.empty() ||
                      !lock_polls(result.doubts).empty() || !batched_syncs(result.doubts).empty();
    result.interval = interval_of(from);
    doubt_wide_interval(result);
}

std::unique_ptr<LiveRun> follow_live(const WorkerSetup& setup, const ReplayOptions& options, const LimitedRun* limited,
                                     const CacheKeeper* cache, SharedTimeline& clock) {
    if (!options.live) {
        return nullptr;
    }
    LiveSources from{*setup.plan, *setup.run, clock, setup.pace, setup.speeds};
    from.root = setup.root >= 0 ? options.root : std::filesystem::path{};
    from.group = limited != nullptr ? &limited->group() : nullptr;
    if (cache != nullptr) {
        from.cache = cache->report().choice.regime;
    }
    return std::make_unique<LiveRun>(std::move(from), options.live);
}

}  // namespace

void check_losses(const LogReader& log, bool allow, bool recover) {
    std::string what = "the recording is incomplete:";
    const size_t nothing = what.size();
    for (const Counter& counter : log.tables().counters) {
        const bool asked = recover && counter.name == info(Count::recovered_log).name;
        if (counter.severity == Severity::loss && counter.value != 0 && !asked) {
            what += " " + std::to_string(counter.value) + " " + counter.name + " (" + counter.meaning + ");";
        }
    }
    if (allow || what.size() == nothing) {
        return;
    }
    what.pop_back();
    throw bad_input(log.path().string(), what, "record it again, or use it as it is with --allow-loss");
}

ReplayResult replay(const LogReader& log, const ReplayOptions& asked) {
    ReplayOptions options = asked;
    const TickPoint first_point = take_tick_point();
    check_losses(log, options.allow_loss, options.recover);
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
    refuse_shared_places(log.tables(), options.filter, maps);
    Plan plan = make_plan(log, options.filter, maps, options.pace == Pace::causal);
    if (options.pace == Pace::causal) {
        find_locks(plan);
        find_guards(plan);
    }
    if (options.peers != nullptr) {
        perform_only(plan, options.peers->rank_of(), options.peers->rank());
    }
    if (options.access.any()) {
        plan.access = std::make_shared<const AccessPlan>(plan_access(plan, options.access));
    }
    const std::unique_ptr<Verification> verification = verify_run(plan, options, marker);
    std::optional<MemoryFiles> memory_files;
    ReplayResult result;
    RootLock lock;
    const bool modifies = uses_root && plan.changing_ops != 0 && !options.read_only;
    if (uses_root) {
        lock = lock_root(options, root->get(), modifies, marker);
        check_changes(plan, options, marker.has_value());
        if (marker && marker->state == MarkerState::changed) {
            result.notes.push_back("Earlier replays changed files in this root. Restore them first with " +
                                   reset_command(options) + ".");
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
    result.causal = options.pace == Pace::causal;
    result.async_depth = plan.async_depth;
    result.requests_at_once = options.access.any() || options.verify == Verify::content;
    result.unseen_writes = plan.counted(Count::mapped_writes_unseen);
    note_recording(log, result);
    result.reads_direct = options.access.direct;
    result.what_if = options.what_if;
    if (options.read_only && plan.changing_ops != 0) {
        result.what_if += result.what_if.empty() ? "--read-only" : " --read-only";
    }
    result.cpu_speed = options.cpu_speed;
    result.cpu_speed.ratio = options.speeds.cpu;
    const uint64_t rows = plan.tasks.size() < 2 ? 0 : plan.tasks.back().spool_first + plan.tasks.back().ops;
    const size_t limit = options.spool_memory != 0 ? options.spool_memory : result.machine.memory_bytes / 4;
    SharedRun run(plan.tasks.size(), plan.processes.size(), plan.streams.size(), plan.passed.size(), rows, limit,
                  options.output.parent_path());
    const WritePattern pattern(uses_root ? plan.write_bytes : 0);
    if (options.pace != Pace::afap) {
        options.speeds.computing = choose_computing(plan, options.delay, options.peers, result);
    }
    WorkerSetup setup{&plan,
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
    const LogReader& recording = options.recording != nullptr ? *options.recording : log;
    std::unique_ptr<LimitedRun> limited;
    if (cache && options.limits.any()) {
        limited = limit_run(plan, options, *cache);
        run.populate();
        limited->start(log);
        setup.limited = limited.get();
        result.io_limits = options.limits.io;
        note_group_limits(limited->group().kept_io(), limited->group().lost_io(), result);
    } else {
        note_group_limits(result);
    }
    if (options.peers != nullptr) {
        options.peers->gate();  // all have read the marker
    }
    if (modifies && leads_root(options)) {
        mark_changed(root->get(), options.root.string(), lock, options.copies);
    }
    result.recorded_memory =
        static_cast<uint64_t>(read_fact(recording.header(), fact::peak_memory).value_or(0)) * options.copies;
    result.free_memory = free_memory();
    const bool other_filter =
        marker && !marker->filter.empty() && !options.filter_asked && marker->filter != options.filter.to_string();
    if (other_filter) {
        result.notes.push_back("The root was prepared with another --only or --not: give replay the same.");
    }
    result.content_compresses = marker && (marker->content == Content::recorded || marker->content == Content::zero);
    if (!marker || marker->content != Content::sparse) {
        result.recorded_holes = static_cast<uint64_t>(read_fact(recording.header(), fact::hole_bytes).value_or(0));
    }
    const ProcessorUse before = read_processor_use();
    const auto device_before = read_device_counter(uses_root ? options.root : std::filesystem::path{});
    EpochWatch epochs(plan, options.epochs, uses_root ? options.root : std::filesystem::path{},
                      limited ? &limited->group() : nullptr, cache.get());
    setup.epochs = &epochs;
    SharedTimeline clock;
    clock.add(first_point);
    const std::unique_ptr<LiveRun> live = follow_live(setup, options, limited.get(), cache.get(), clock);
    setup.live = live.get();
    const AttachedPeers attached(options.peers, plan, run);
    const SupervisedRun supervised = supervise(setup, options, first_point, clock);
    watch_end_signals();  // the supervisor had them
    const int64_t end_ns = monotonic_ns();
    epochs.tick(run, end_ns);
    if (live) {
        live->finish();
    }
    result.ended = supervised.ended;
    if (options.peers != nullptr) {
        result.peer = options.peers->detach(run);
    }
    if (limited) {
        result.memory = limited->finish();
        if (result.memory && result.memory->group.killed != 0 && result.ended != "complete") {
            result.ended += ", as memory ran out within the limit of " + format_bytes(result.memory->limit);
        }
    }
    const ProcessorUse after = read_processor_use();
    result.fidelity.other_cpus = others_between(before, after);  // merge_results() takes off what other ranks used
    result.fidelity.stolen_cpus = stolen_between(before, after);
    result.fidelity.own_cpus = own_between(before, after);
    result.fidelity.caches_dropped = after.caches_dropped - before.caches_dropped;
    sum_up(plan, run, result);
    note_no_queue(run.no_queue(false), run.no_queue(true), result);
    result.access_counts = run.access_counts();
    result.access = access_sentence(plan.access.get(), result.access_counts);
    const auto device_after = read_device_counter(uses_root ? options.root : std::filesystem::path{});
    if (device_before && device_after) {
        result.device_counter = {device_after->read_bytes - device_before->read_bytes,
                                 device_after->write_bytes - device_before->write_bytes};
        result.device_write_bytes = result.device_counter->write_bytes;
    }
    if (cache) {
        cache->look_again();
        result.cache = cache->report();
        if (hides_touches(result)) {
            result.notes.insert(
                result.notes.begin(),
                "Mapped files were in memory when recorded: pages that were touched without a fault are "
                "not known, and are not read here (record cold to know them).");
        }
    }
    result.epochs = epochs.finish(run, supervised.clock, end_ns);
    if (result.cache) {
        EpochWatch::put_ends(result.epochs, *result.cache);
    }
    note_broken(supervised.broken, result);
    result.start_unix_ns = supervised.start_unix_ns;
    collect(plan, run, options, supervised.clock, supervised.start_unix_ns, result, [&] {
        if (const std::optional<int64_t> waited = read_fact(log.header(), fact::run_queue)) {
            result.fidelity.recorded_run_queue_ns = *waited;
        }
        result.doubts = recorded_doubts(plan);
        judge_results(options.tolerated, result, options.peers == nullptr);
        if (marker && marker->state == MarkerState::changed && !result.not_same_job.empty()) {
            result.not_same_job.front() += " Earlier replays changed this root: " + reset_command(options) + ".";
        } else if (marker && options.copies > marker->copies && !result.not_same_job.empty()) {
            result.not_same_job.front() += " The root was prepared for fewer copies of the job: prepare --gpus " +
                                           std::to_string(options.copies) + ".";
        } else if (!marker && 2 * result.mismatches > comparable_ops(result) && !result.not_same_job.empty()) {
            result.not_same_job.front() +=
                " This root was not prepared for the log: " + prepare_command(options, std::nullopt) + ".";
        } else if (other_filter && !result.not_same_job.empty()) {
            result.not_same_job.front() += " The root was prepared with another --only or --not.";
        }
        judge(result.fidelity, result.lateness, result.elapsed_ns, result.machine.cpus);
        judge_whole(result);
        result.name_walk_ns = uses_root ? name_walk_ns(plan, result.doubts.deep_file, root->get()).value_or(0) : 0;
        result.one_place = uses_root && on_one_place(plan, root->get(), result.doubts.file_systems);
        if (options.filter_asked) {
            result.doubts.accept_filter();
        }
        result.around = mapped_around(options, result);
        result.trust = trust_in(result);
        find_interval(options, result);
    });
    if (verification && result.ended == "complete") {
        memory_files.reset();
        add_verified(verification->finish(RootDescriptor(options.root).get()), result);
    }
    add_notes(result);
    const int64_t most_ns = result.ended == "complete" ? 500'000'000 : 50'000'000;  // somebody waits for the end
    result.harness_ns_per_op = measure_harness_ns(plan, 2'000'000, most_ns);
    return result;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/run/trust.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "formats/support/quantity.h"
#include "replay/plan/async_depth.h"
#include "replay/plan/helper_time.h"
#include "replay/run/name_walk.h"
#include "replay/run/runner.h"
#include "replay/run/same_job.h"

namespace reprise {
namespace {

constexpr double kLittle = 10e6;            // ns; below it nothing is said
constexpr uint64_t kLittleAgain = 1 << 20;  // bytes
constexpr uint64_t kLittleData = 1 << 20;   // bytes; less is no loss

std::string cpus_of(double used, int cpus) {
    char text[64];
    std::snprintf(text, sizeof text, "%.2f of ", used);
    return text + counted(static_cast<uint64_t>(cpus), "CPU");
}

/// "14 %"
std::string percent(double share) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f %%", share < 0.0995 ? 1 : 0, share * 100);
    return text;
}

/// What is known of the speed of this machine's processors beside that of the recording's.
struct SpeedKnown {
    bool verified = false;
    std::string words;
};
SpeedKnown speed_known(const CpuSpeed& speed) {
    switch (speed.source) {
        case CpuSpeed::Source::given: return {true, "CPU speed as asked"};
        case CpuSpeed::Source::same_machine: return {true, "CPU speed verified"};
        case CpuSpeed::Source::no_profile: return {false, "CPU speed not verified: the recording has no profile"};
        case CpuSpeed::Source::same_name:
        case CpuSpeed::Source::same_boot:
        case CpuSpeed::Source::profiles: break;
    }
    constexpr double kSure = 0.1;
    char text[96];
    std::snprintf(text, sizeof text, "CPU speed measured, %.2f of the recording's +-%.0f %%", speed.ratio,
                  speed.uncertainty * 100);
    return {speed.uncertainty <= kSure, text};
}

/// This machine cannot be so much faster or slower than it was a moment ago.
std::string contradicting_speeds(const ReplayResult& result) {
    const bool computes = result.timed && result.fidelity.computing_asked_ns > 0;
    if (!computes || result.cpu_speed.source != CpuSpeed::Source::same_boot) {
        return {};
    }
    char text[160];
    std::snprintf(text, sizeof text,
                  "CPU speed %.2f of the recording's, though this machine has not been rebooted since (--cpu-speed 1 "
                  "ignores that)",
                  result.cpu_speed.ratio);
    return text;
}

/// What this machine cost the run, if more than a little.
std::vector<std::string> doubts_of(const ReplayResult& result) {
    constexpr double kLate = 5e6, kLateShare = 0.01, kSleepShare = 0.01, kComputeShare = 0.02, kStolen = 0.02,
                     kOthers = 0.1;
    const Fidelity& f = result.fidelity;
    const int cpus = std::max(result.machine.cpus, 1);
    const auto elapsed = static_cast<double>(result.elapsed_ns);
    std::vector<std::string> doubts;
    if (const int64_t late = result.lateness.percentile(0.99);
        result.timed && static_cast<double>(late) > std::max(kLate, kLateShare * elapsed)) {
        doubts.push_back("lateness p99 " + format_duration(late));
    }
    if (const double over = f.delay_error.sum();
        over > std::max(kLittle, kSleepShare * std::max(elapsed, f.delays_asked_ns))) {
        doubts.push_back("sleeps took " + format_duration(std::llround(over)) + " too long");
    }
    const double waited =
        f.computing_took_ns - f.computing_asked_ns - static_cast<double>(std::max<int64_t>(f.recorded_run_queue_ns, 0));
    if (f.computing_asked_ns > 0 &&
        waited > std::max(kLittle, kComputeShare * std::max(elapsed, f.computing_asked_ns))) {
        doubts.push_back("compute ran " + percent(waited / f.computing_asked_ns) + " over: the CPU was shared");
    }
    // What the recording waited for, and this run did not, is in no comparison of the two.
    constexpr double kRunQueueShare = 0.2;
    const double spared =
        static_cast<double>(f.recorded_run_queue_ns) - std::max(f.computing_took_ns - f.computing_asked_ns, 0.0);
    if (f.recorded_run_queue_ns > 0 &&
        spared > std::max(kLittle, kRunQueueShare * static_cast<double>(result.recorded_ns))) {
        doubts.push_back("the recording waited " + format_duration(f.recorded_run_queue_ns) +
                         " for CPUs (a quota, or few CPUs)");
    }
    constexpr double kSleepsShare = 0.1;
    const auto repeated = static_cast<double>(std::min(result.repeated_sleep_ns, result.path.of(PathPart::asleep)));
    if (repeated > std::max(kLittle, kSleepsShare * elapsed)) {
        doubts.push_back(format_duration(std::llround(repeated)) +
                         " are sleeps one after the other: if the job polls, it would end at another time here");
    }
    if (f.stolen_cpus > kStolen * cpus) {
        doubts.push_back("steal time " + cpus_of(f.stolen_cpus, cpus));
    }
    if (f.other_cpus > kOthers * cpus) {
        doubts.push_back("other programs used " + cpus_of(f.other_cpus, cpus));
    }
    return doubts;
}

/// "3 tasks ran pinned to 1 CPU, here on any of 4: replay under taskset -c 0"
std::string pinned(const ReplayResult& result) {
    const bool computes = result.timed && result.fidelity.computing_asked_ns > 0;
    if (result.pinned_tasks == 0 || result.machine.cpus <= result.pinned_cpus || !computes) {
        return {};
    }
    const int last = result.pinned_cpus - 1;
    return counted(result.pinned_tasks, "task") + " ran pinned to " +
           counted(static_cast<uint64_t>(result.pinned_cpus), "CPU") + ", here on any of " +
           std::to_string(result.machine.cpus) + ": replay under taskset -c " +
           (last > 0 ? "0-" + std::to_string(last) : "0");
}

/// "others moved 1.20 GiB on the device meanwhile", where that is more than a little.
std::string others_on_device(const ReplayResult& result) {
    constexpr double kShare = 0.1;
    constexpr uint64_t kLeast = 16 << 20;
    const uint64_t others = moved_by_others(result);
    if (others <= kLeast) {
        return {};
    }
    const uint64_t all = result.device_counter->read_bytes + result.device_counter->write_bytes;
    return static_cast<double>(others) <= kShare * static_cast<double>(all)
               ? std::string()
               : "other programs moved " + format_bytes(others) + " on the device meanwhile";
}

/// "the file system compresses (compress=zstd:3), and the replay's data does not compress"
std::string incompressible(const ReplayResult& result) {
    const uint64_t bytes = result.bytes_written + (result.content_compresses ? 0 : result.bytes_read);
    return result.machine.compresses.empty() || bytes <= kLittleData
               ? std::string()
               : "the file system compresses (" + result.machine.compresses + "), and " +
                     (result.content_compresses ? "what the replay writes" : "the replay's data") +
                     " does not compress";
}

/// "40 of 40 ops differ (tolerated)", where that is more than is tolerated by default; empty: it is not.
std::string tolerated(const ReplayResult& result) {
    if (result.mismatches == 0) {
        return {};
    }
    const uint64_t all = std::max(comparable_ops(result), result.mismatches);
    if (static_cast<double>(result.mismatches) <= ToleratedDifferences{}.share * static_cast<double>(all)) {
        return {};
    }
    return format_count(result.mismatches) + " of " + counted(all, "op") +
           (result.mismatches == 1 ? " differs" : " differ") + " (tolerated)";
}

/// A job that meets such a storage fails, or asks for whole blocks itself.
std::string parts_of_blocks(const ReplayResult& result) {
    using enum AccessCount;
    const AccessCounts& counts = result.access_counts;
    const auto parts = static_cast<double>(counts[part_asked] + counts[part_written]);
    return parts > kSomeShare * static_cast<double>(result.bytes_read + result.bytes_written)
               ? part_blocks_sentence(counts)
               : "";
}

/// Of more than one in a hundred ops.
std::string waited_after_all(const ReplayResult& result) {
    const uint64_t waited = result.access_counts[AccessCount::waited];
    return waited != 0 && waited * 100 > comparable_ops(result) ? waited_sentence(result.access_counts) : "";
}

/// "3 of 3 files that are read have no data on the device: neither storage nor memory was measured"
std::string no_data_of(const CacheReport& cache) {
    const std::string files = cache.sparse_files == 0 ? "files that are read have"
                                                      : format_count(cache.sparse_files) + " of " +
                                                            counted(cache.files, "file") + " that are read have";
    return files + " no data on the device: neither storage nor memory was measured";
}

/// "the root is on tmpfs, which is memory: ...", where the data was to come from a device; else empty.
std::string data_in_memory(const ReplayResult& result) {
    const std::string& root = result.machine.file_system;
    if (!result.cache) {
        return {};
    }
    const CacheReport& cache = *result.cache;
    const CacheRegime regime = cache.choice.regime;
    const bool some = regime == CacheRegime::recorded && cache.choice.why != CacheChoice::Why::in_memory;
    const bool device = regime == CacheRegime::cold || some || result.reads_direct;
    if (!device) {
        return {};
    }
    constexpr const char* kSo = ": no regime is cold there, and no storage was measured";
    if (cache.memory_files == cache.files && (root == "tmpfs" || root == "ramfs" || root == "hugetlbfs")) {
        return "the root is on " + root + ", which is memory" + kSo;
    }
    return static_cast<double>(cache.memory_file_bytes) <= kMostShare * static_cast<double>(cache.bytes)
               ? std::string()
               : format_bytes(cache.memory_file_bytes) + " of the " + format_bytes(cache.bytes) +
                     " that are read are on a tmpfs, which is memory" + kSo;
}

/// "7.50 MiB of the 19.5 MiB that were to be in memory did not stay there", where that is more than a share.
std::string not_warm(const ReplayResult& result, double share) {
    if (!result.cache || result.memory || result.cache->missing_bytes <= kLittleAgain ||
        static_cast<double>(result.cache->missing_bytes) <= share * static_cast<double>(result.cache->bytes)) {
        return {};
    }
    return format_bytes(result.cache->missing_bytes) + " of the " + format_bytes(result.cache->bytes) +
           " that are read did not stay in memory when they were to be warm";
}

/// "names were cached here, and not when recorded (2.10 s of the 2.20 s): ...", where that is more than a share.
std::string cached_names_of(const ReplayResult& result, double share) {
    const std::string names =
        cached_names("were cached here", names_served_by_memory(result), result.recorded_ns, share);
    return names.empty() ? names : names + ": unmount and mount the file system before the run, or --drop-caches";
}

/// What the run read again although memory held it, and would not have with the job's own memory, is more than a share
/// of what it read.
std::string missing_memory(const ReplayResult& result, double share) {
    if (!result.cache || !result.free_memory || result.memory) {
        return {};
    }
    const uint64_t data = result.cache->bytes, again = result.bytes_read - std::min(result.bytes_read, data);
    const bool fits =
        result.recorded_memory <= *result.free_memory && data <= *result.free_memory - result.recorded_memory;
    if (fits || result.recorded_memory == 0 || again <= kLittleAgain ||
        static_cast<double>(again) <= share * static_cast<double>(result.bytes_read)) {
        return {};
    }
    return "the job held " + format_bytes(result.recorded_memory) + " of memory, which the replay does not: with " +
           format_bytes(*result.free_memory) + " free here, it may read " + format_bytes(again) +
           " from the device again";
}

/// "196 MiB of the 200 MiB that are read were compressed or sparse on the recording's device, and are not here", where
/// that is more than a share.
std::string filled_holes(const ReplayResult& result, double share) {
    if (!result.cache || result.cache->bytes == 0) {
        return {};
    }
    // What is read here may have no data, either: compressed, or the files of somebody's own. Holes that the recording
    // knows are not among either.
    const uint64_t known = std::min(result.cache->hole_bytes, result.cache->recorded.hole_bytes);
    const uint64_t then = std::max(result.recorded_holes, result.cache->recorded.unserved_bytes);
    const uint64_t here = std::min(result.cache->hole_bytes - known, then),
                   holes = std::min(then - here, result.cache->bytes);
    if (holes <= kLittleAgain || static_cast<double>(holes) <= share * static_cast<double>(result.cache->bytes)) {
        return {};
    }
    return format_bytes(holes) + " of the " + format_bytes(result.cache->bytes) + " that are read " +
           (result.cache->recorded.unserved_bytes > result.recorded_holes
                ? "came from no device in the recording: the files were sparse, compressed or in memory then, and are "
                  "not here"
                : "were compressed or sparse on the recording's device, and are not here");
}

/// What is in memory below the root's file system, which a cold run leaves there; else empty.
std::string warm_below(const ReplayResult& result) {
    if (!result.cache || result.cache->choice.regime != CacheRegime::cold || result.cache->dropped_all ||
        result.cache->bytes <= kLittleAgain) {
        return {};
    }
    if (result.machine.is_fuse()) {
        return "the root is on FUSE: its server may read from memory (--drop-caches drops that, if it runs here)";
    }
    const std::string& loop = result.machine.cached_loop;
    return loop.empty() ? ""
                        : loop +
                              " reads its file through the page cache, which may serve it: use losetup "
                              "--direct-io=on, or --drop-caches";
}

/// "16.1 MiB of the 64.3 MiB that are read have no blocks here, and had when recorded (sparse or compressed files)",
/// where that is more than a share.
std::string new_holes(const ReplayResult& result, double share) {
    if (!result.cache || result.cache->bytes == 0) {
        return {};
    }
    const uint64_t then =
        result.cache->recorded.hole_bytes + std::max(result.recorded_holes, result.cache->recorded.unserved_bytes);
    const uint64_t holes = result.cache->hole_bytes - std::min(result.cache->hole_bytes, then);
    if (holes <= kLittleAgain || static_cast<double>(holes) <= share * static_cast<double>(result.cache->bytes)) {
        return {};
    }
    return format_bytes(holes) + " of the " + format_bytes(result.cache->bytes) +
           " that are read have no blocks here, and had when recorded (sparse or compressed files)";
}

/// "the device read 11.3 MiB of 40.0 MiB that were not in memory, which are compressed here, or shared with other
/// files", where more than a share was not read: the recording's device had all of it to read.
std::string less_fetched(const ReplayResult& result, double share) {
    if (!result.cache || !result.cache->before || !result.device_read_bytes || *result.device_read_bytes == 0) {
        return {};
    }
    const CacheReport& cache = *result.cache;
    const auto less = [](uint64_t a, uint64_t b) { return a - std::min(a, b); };
    if (cache.choice.regime != CacheRegime::cold || !cache.recorded.pages_known || cache.unseen != 0 ||
        cache.uncached_names != 0) {
        return {};
    }
    const uint64_t others = result.device_counter ? result.device_counter->read_bytes : 0;
    const uint64_t read = std::max(*result.device_read_bytes, others);  // by threads of the file system
    const uint64_t fetched = less(cache.recorded.fetched_bytes.value_or(0), cache.recorded.unserved_bytes);
    const uint64_t absent = less(cache.bytes, *cache.before + cache.memory_file_bytes + cache.hole_bytes);
    const uint64_t wanted = std::min(fetched, absent), missing = less(wanted, read);
    if (missing <= kLittleAgain || static_cast<double>(missing) <= share * static_cast<double>(wanted)) {
        return {};
    }
    return "the device read " + format_bytes(read) + " of the " + format_bytes(wanted) +
           " that were not in memory: they are compressed here, or shared with other files, and were not when recorded";
}

std::string hidden_pages(const ReplayResult& result, double share) {
    if (!hides_touches(result)) {
        return {};
    }
    const RecordedCache& recorded = result.cache->recorded;
    return hidden_touches(recorded.touched_in_memory, recorded.read_bytes, share);
}

/// Under a limit, pages of mapped files that were taken back come again when they are used again. Without one they
/// stayed, so the recording does not know of that.
std::string used_again(const ReplayResult& result, double share) {
    if (!result.memory || result.memory->group.reached == 0 || !result.cache) {
        return {};
    }
    const RecordedCache& recorded = result.cache->recorded;
    const auto mapped = static_cast<double>(recorded.touched_bytes + recorded.around_bytes);
    if (mapped <= share * static_cast<double>(recorded.read_bytes + recorded.around_bytes)) {
        return {};
    }
    return "pages of mapped files that a limit takes back are read once more when the job uses them again, which a "
           "recording without it does not show";
}

/// What the recording fetched again, and this run did not, where that is more than a share of what it fetched.
std::string kept_in_memory(const ReplayResult& result, double share) {
    if (!result.cache || result.doubts.refetched_bytes == 0) {
        return {};
    }
    const uint64_t data = result.cache->bytes - std::min(result.cache->bytes, result.cache->before.value_or(0));
    const uint64_t device = std::max(result.device_read_bytes.value_or(0),
                                     result.device_counter ? result.device_counter->read_bytes : uint64_t{0});
    const uint64_t fetched = result.cache->recorded.fetched_bytes.value_or(result.cache->bytes);
    return fetched_again(result.doubts, device - std::min(device, data), fetched, share);
}

/// What keeps a memory limit from being that of the job.
std::string memory_doubt(const ReplayResult& result) {
    constexpr double kFollows = 0.05;
    if (!result.memory) {
        return {};
    }
    const LimitedMemory& memory = *result.memory;
    if (memory.ballast_died) {
        return "the kernel killed the memory that stood in for the job's own";
    }
    if (!memory.job_known) {
        return "the log does not say what memory the job held: here all of the limit is page cache";
    }
    if (!memory.stood_in && memory.job_peak > kFollows * static_cast<double>(memory.limit)) {
        return "the job held up to " + format_bytes(memory.job_peak) + " itself, and nothing stood in for them";
    }
    if (static_cast<double>(memory.cut) > kFollows * static_cast<double>(memory.limit)) {
        return format_bytes(memory.cut) + " of the memory that the job held do not fit in the limit";
    }
    if (memory.may_swap) {
        return "what stands in for the job's own memory may be swapped out: ulimit -l is too low";
    }
    if (memory.held_error > kFollows) {
        return "what stood in for the job's own memory was off by " + percent(memory.held_error) + " in the mean";
    }
    return memory.data > memory.limit && memory.group.reached == 0 ? "the memory limit was never reached"
                                                                   : std::string();
}

std::string join(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) {
        text += (text.empty() ? "" : "; ") + part;
    }
    return text;
}

/// "This machine could not keep up: p99 lateness ..." without what the word says already.
std::string short_failure(std::string text) {
    constexpr std::string_view kWho = "This machine could not keep up: ";
    if (text.starts_with(kWho)) {
        text.erase(0, kWho.size());
    }
    if (text.ends_with('.')) {
        text.pop_back();
    }
    return text;
}

}  // namespace

std::string_view trust_name(Trust::Level level) {
    switch (level) {
        case Trust::Level::good: return "good";
        case Trust::Level::fair: return "fair";
        case Trust::Level::poor: return "poor";
    }
    return "poor";
}

std::string not_measured(const ReplayResult& result) {
    if (reads_no_data(result)) {
        return no_data_of(*result.cache);
    }
    if (std::string memory = data_in_memory(result); !memory.empty()) {
        return memory;
    }
    if (std::string waits = mostly_unknown_waits(result.path, result.elapsed_ns); !waits.empty()) {
        return waits;
    }
    std::string data = left_out_data(result.doubts, kMostShare);
    if (!data.empty()) {
        return data + kSelectPaths;
    }
    if (std::string unplaced = unplaced_data(result.doubts, kMostShare); !unplaced.empty()) {
        return unplaced;
    }
    if (std::string scaled = missed_by_scaling(result.doubts, kSomeShare); !scaled.empty()) {
        return scaled;
    }
    std::string programs = read_among_programs(result.doubts);
    return programs.empty() ? cached_names_of(result, kMostShare) : programs;
}

std::string why_no_interval(const ReplayResult& result) {
    const bool left_out =
        !left_out_data(result.doubts, kSomeShare).empty() || !unplaced_data(result.doubts, kSomeShare).empty();
    return result.trust.level == Trust::Level::poor ? "trust POOR" : left_out ? "data is left out" : "";
}

void doubt_wide_interval(ReplayResult& result) {
    constexpr int64_t kPart = 10;
    if (!result.interval || result.trust.level != Trust::Level::good ||
        result.interval->low_ns > result.elapsed_ns / kPart) {
        return;
    }
    result.trust = {Trust::Level::fair,
                    "the 95 % interval reaches down to " + format_duration(result.interval->low_ns)};
}

Trust trust_in(const ReplayResult& result) {
    if (result.ended != "complete") {
        return {Trust::Level::poor, "the run did not finish"};
    }
    if (!result.not_same_job.empty()) {
        return {Trust::Level::poor, "it did not do what the job did"};
    }
    if (!result.fidelity.failures.empty()) {
        return {Trust::Level::poor, short_failure(result.fidelity.failures.front())};
    }
    if (std::string why = not_measured(result); !why.empty()) {
        return {Trust::Level::poor, std::move(why)};
    }
    if (result.fidelity.caches_dropped > 0) {
        return {Trust::Level::poor, "somebody dropped this machine's caches during the run (" +
                                        counted(static_cast<uint64_t>(result.fidelity.caches_dropped), "time") +
                                        "): run it again"};
    }
    if (std::string why = result.doubts.part.sentence(); !why.empty()) {
        return {Trust::Level::poor, std::move(why)};
    }
    if (std::string why = timeless_run(result.doubts); !why.empty() && result.timed) {
        return {Trust::Level::poor, std::move(why)};
    }
    if (std::string why = untimed_calls(result.doubts); !why.empty() && result.causal) {
        return {Trust::Level::poor, std::move(why)};
    }
    if (std::string why = unseen_children(result.doubts); !why.empty()) {
        return {Trust::Level::poor, std::move(why)};
    }
    if (std::string why = stopped_at_calls(result.doubts, kMostShare); !why.empty() && result.timed) {
        return {Trust::Level::poor, std::move(why)};
    }
    if (result.requests_at_once && result.async_depth > 1) {
        return {Trust::Level::poor, made_one_by_one(result.async_depth)};
    }
    if (result.unseen_writes != 0) {
        return {Trust::Level::poor, "writes to " + counted(result.unseen_writes, "mapping") +
                                        " of files on tmpfs leave no page fault and may be missing: record elsewhere"};
    }
    std::string shared = result.queues.shared_work();
    const bool otherwise = QueueInference::shares_otherwise(result.elapsed_ns, result.recorded_ns);
    if (!shared.empty() && otherwise) {
        return {Trust::Level::poor, std::move(shared)};
    }
    std::string ended = ended_by_signal(result.helpers),
                alone = alone_at_work(result.helpers, result.path.of(PathPart::asleep), result.elapsed_ns, kSomeShare);
    if (!ended.empty() && otherwise &&
        static_cast<double>(result.path.cut_ns) > kSomeShare * static_cast<double>(result.elapsed_ns)) {
        return {Trust::Level::poor, std::move(ended)};
    }
    std::string together = write_together(result.serial_writers, result.elapsed_ns);
    if (!together.empty() && otherwise) {
        return {Trust::Level::poor, std::move(together)};
    }
    if (std::string asleep = slept_too_short(result.slept_through, result.elapsed_ns, kSomeShare); !asleep.empty()) {
        return {Trust::Level::poor, std::move(asleep)};
    }
    std::string batched = batched_syncs(result.doubts);
    if (!batched.empty() && otherwise) {
        return {Trust::Level::poor, std::move(batched)};
    }
    std::string looks = looks_for_results(result.doubts);
    if (!looks.empty() && (otherwise || unclear_looks_decide(result.doubts, result.elapsed_ns))) {
        return {Trust::Level::poor, std::move(looks)};
    }
    std::string memory = result.one_place ? memory_among(result.doubts.file_systems, kSomeShare) : "";
    if (!memory.empty() && otherwise) {
        return {Trust::Level::poor, std::move(memory) + "; mount a tmpfs there below the root, or use --not"};
    }
    std::string awaited = awaited_name(result.doubts);
    if (!awaited.empty() && otherwise) {
        return {Trust::Level::poor, std::move(awaited)};
    }
    std::string mpi = mpi_waits(result.doubts, result.elapsed_ns, result.recorded_ns);
    if (!mpi.empty() && otherwise) {
        return {Trust::Level::poor, std::move(mpi)};
    }
    std::string flags = assumed_flags(result.doubts);
    if (!flags.empty() && result.bytes_written > result.bytes_read) {
        return {Trust::Level::poor, std::move(flags)};
    }
    for (std::string why :
         {contradicting_speeds(result),
          alone_at_work(result.helpers, result.path.of(PathPart::asleep), result.elapsed_ns, kMostShare),
          missing_memory(result, kMostShare), filled_holes(result, kMostShare), new_holes(result, kMostShare),
          not_warm(result, kThirdShare), kept_in_memory(result, kThirdShare), left_out_most(result.doubts),
          unplaced_data(result.doubts, kThirdShare), unreported_requests(result.doubts, kSomeShare),
          result.timed ? hidden_depth(result.doubts, result.elapsed_ns, result.recorded_ns, kMuchLonger) : "",
          programs_among_data(result.doubts, kThirdShare), work_of_file_systems(result.doubts, kThirdShare),
          unseen_touches(result.doubts, kThirdShare), hidden_pages(result, kThirdShare),
          less_fetched(result, kMostShare), used_again(result, kThirdShare), fewer_around(result.around, kThirdShare),
          names_asked_for(result.doubts, result.name_walk_ns, result.elapsed_ns, kThirdShare)}) {
        if (!why.empty()) {
            return {Trust::Level::poor, std::move(why)};
        }
    }
    std::vector<std::string> doubts = doubts_of(result);
    const std::string places = result.one_place ? several_file_systems(result.doubts.file_systems, true) : "";
    for (std::string doubt :
         {std::move(shared),
          std::move(ended),
          std::move(alone),
          std::move(together),
          std::move(batched),
          std::move(looks),
          std::move(awaited),
          slept_too_short(result.slept_through, result.elapsed_ns, 0.0),
          std::move(mpi),
          limits_rate(result.helpers, result.path.of(PathPart::asleep), result.elapsed_ns, result.recorded_ns),
          std::move(flags),
          parts_of_blocks(result),
          waited_after_all(result),
          kept_in_memory(result, kSomeShare),
          places.empty() ? places : places + ": here they are on one",
          unknown_waits(result.path, result.elapsed_ns, kSomeShare),
          guessed_after_waits(
              after_waits_on_path(result.path, result.fidelity.after_waits_ns, result.fidelity.computing_asked_ns),
              result.elapsed_ns, kSomeShare),
          left_out_data(result.doubts, kSomeShare),
          unplaced_data(result.doubts, kSomeShare),
          programs_among_data(result.doubts, kSomeShare),
          pinned(result),
          incompressible(result),
          cached_names_of(result, kSomeShare),
          missing_memory(result, kSomeShare),
          filled_holes(result, kSomeShare),
          new_holes(result, kSomeShare),
          less_fetched(result, kThirdShare),
          not_warm(result, kSomeShare),
          others_on_device(result),
          warm_below(result),
          memory_doubt(result),
          result.lost_io_limits,
          loaded_programs(result.doubts, kSomeShare),
          lock_polls(result.doubts),
          work_of_file_systems(result.doubts, kSomeShare),
          unseen_touches(result.doubts, kSomeShare),
          missed_by_scaling(result.doubts, kScaledShare),
          result.timed ? hidden_depth(result.doubts, result.elapsed_ns, result.recorded_ns, kSomeLonger) : "",
          unclear_locks(result.doubts),
          held_locks(result.doubts),
          filtered_calls(result.doubts),
          result.timed ? is_of_run(result.doubts) : std::string(),
          result.timed ? stopped_at_calls(result.doubts, kSomeShare) : std::string(),
          hidden_pages(result, 0.0),
          used_again(result, kSomeShare),
          fewer_around(result.around, 0.0),
          names_asked_for(result.doubts, result.name_walk_ns, result.elapsed_ns, kSomeShare)}) {
        if (!doubt.empty()) {
            doubts.insert(doubts.begin(), std::move(doubt));
        }
    }
    if (std::string differ = tolerated(result); !differ.empty()) {
        constexpr double kMost = 0.1;
        if (static_cast<double>(result.mismatches) > kMost * static_cast<double>(comparable_ops(result))) {
            return {Trust::Level::poor, std::move(differ)};
        }
        doubts.insert(doubts.begin(), std::move(differ));
    }
    const bool computes = result.timed && result.fidelity.computing_asked_ns > 0;
    const SpeedKnown speed = speed_known(result.cpu_speed);
    if (computes && !speed.verified) {
        doubts.push_back(speed.words);
    }
    if (!doubts.empty()) {
        return {Trust::Level::fair, join(doubts)};
    }
    std::string checked =
        result.timed ? "lateness p99 " + format_duration(result.lateness.percentile(0.99)) : "no times to keep";
    const double stolen = result.fidelity.stolen_cpus;
    checked += stolen < 0       ? ", steal time unknown"
               : stolen < 0.005 ? ", no steal"
                                : ", steal time " + cpus_of(stolen, std::max(result.machine.cpus, 1));
    return {Trust::Level::good, computes ? checked + ", " + speed.words : checked};
}

}  // namespace reprise

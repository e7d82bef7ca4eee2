// SPDX-License-Identifier: MIT
// What a job did, of its log alone: over time, by size, by file, by process, by epoch. `reprise analyze` shows it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analyze/job/access_stream.h"
#include "analyze/job/bursts.h"
#include "analyze/job/passes.h"
#include "analyze/job/reuse.h"
#include "analyze/job/skew.h"
#include "analyze/job/time_grid.h"
#include "analyze/summary.h"
#include "formats/oplog/context_series.h"
#include "formats/oplog/held_memory.h"

namespace reprise {

/// Intervals of what is shown over time, and of tasks over time.
inline constexpr size_t kIntervals = 600, kLaneIntervals = 300;
/// Tasks with a row of their own in the timeline; the rest share one.
inline constexpr size_t kLanes = 40;

/// A value for each of kIntervals intervals.
using OverTime = std::vector<double>;

struct JobOverTime {
    TimeGrid grid{0, 0, kIntervals};
    // Sums of an interval. Bytes are spread over the call that moved them, calls count where they begin.
    OverTime read_bytes, written_bytes, touched_bytes;
    OverTime reads, writes, metadata, syncs;
    OverTime waits;         // blocking waits that began
    OverTime compute_ns;    // of all tasks
    OverTime in_flight_ns;  // of calls and requests on storage, of all tasks: over the width, the mean queue depth
    OverTime busy_ns;       // of all accelerators
};

/// One task, or one accelerator, over kLaneIntervals intervals.
struct JobLane {
    std::string name;
    TaskId task = 0;  // 0: an accelerator, or all other tasks
    uint32_t of = 1;  // tasks in it
    bool accelerator = false;
    /// ns in each interval: compute, storage, waiting for an accelerator, other waits; of an accelerator: busy,
    /// stalled.
    std::vector<std::array<float, 4>> parts;
};

/// Calls that move data, by size: up to 2^i bytes.
struct BySize {
    uint64_t calls = 0, bytes = 0;  // of calls and requests
    uint64_t request_bytes = 0;     // of asynchronous requests
    Histogram latency;              // ns; of calls
    Histogram request_latency;      // ns, from submission to completion

    /// Of calls: requests overlap.
    double bytes_per_second() const {
        return latency.sum() > 0 ? static_cast<double>(bytes - request_bytes) / (latency.sum() / 1e9) : 0;
    }
};
inline constexpr size_t kSizeClasses = 41;

/// Calls of one kind on files of one role.
struct KindOfRole {
    OpKind kind = OpKind::compute;
    Role role = Role::unknown;
    uint64_t calls = 0, errors = 0, bytes = 0;
    Histogram latency, sizes;  // ns; bytes asked for, of calls that move data
};

struct UsedFile {
    uint64_t read = 0, written = 0;  // bytes
    int64_t time = 0;                // ns in calls
    uint32_t ops = 0, opens = 0, reads = 0;
    AccessOrders orders;
};

struct HotFile {
    FileId file = 0;
    std::string path;
    Role role = Role::unknown;
    UsedFile use;
    double reuse = -1;  // bytes: median re-use distance; -1: nothing was read again
};

struct HotDirectory {
    std::string path;
    uint64_t files = 0, ops = 0, read = 0, written = 0;
    int64_t time = 0;
};

struct OrderOfRole {
    Role role = Role::unknown;
    AccessOrders orders;
};

/// Time with calls on storage, with busy accelerators, and with both (ns). Where several tasks share a hundred
/// thousandth of the time, it is estimated how far they overlap.
struct Overlap {
    double storage = 0, busy = 0, both = 0;
};

/// An epoch with what happened in it.
struct EpochFigures {
    JobEpoch epoch;
    double read_bytes = 0, written_bytes = 0, reads = 0;
    double read_ns = 0;                  // in calls that read
    double busy_ns = 0;                  // of all accelerators
    std::optional<double> device_bytes;  // read by the device meanwhile
};

struct JobAnalysis {
    std::string path;  // of the log
    Header header;
    uint64_t losses = 0;
    std::string part;  // why the log is a part of the job; empty: it is whole
    std::optional<std::string> recovered;
    std::string filter;
    Summary summary;

    JobOverTime time;
    std::vector<JobLane> lanes;
    std::array<BySize, kSizeClasses> reads_by_size, writes_by_size;
    std::vector<KindOfRole> kinds;    // most time first
    std::vector<OrderOfRole> orders;  // of roles with accesses
    std::vector<HotFile> hot_files;   // most bytes first
    std::vector<HotDirectory> hot_directories;
    Reuse reuse;
    double sampled = 1;  // share of the places of which re-use and epochs are known
    JobEpochs passes;
    std::vector<EpochFigures> epochs;
    Skew by_process, by_file;            // bytes moved
    Bursts bursts;                       // of writing
    bool bursts_of_checkpoints = false;  // of files of that role only
    Overlap overlap;
    /// Share of the time in which so many calls on storage were in flight: none, up to 1, 2, 4, 8, ... in the mean of
    /// an interval.
    std::array<double, 12> depths{};
    double mean_depth = 0, most_depth = 0;  // of the time with any; of the intervals
    uint64_t metadata_calls = 0, sync_calls = 0, blocking_waits = 0;
    int64_t metadata_ns = 0, data_ns = 0, sync_ns = 0;  // in calls, of all tasks

    Context context;                          // empty: not recorded
    std::optional<uint64_t> fetched, cached;  // bytes, of what the job read; none: not recorded
    uint64_t direct_read = 0;                 // bytes, with O_DIRECT: they pass the page cache by
    std::optional<double> cache_added, cache_evicted, device_read, device_written;  // bytes; none: not recorded
    std::optional<std::vector<HeldTotal>> memory;
    std::optional<int64_t> run_queue;  // ns that tasks waited for processors
    std::optional<int64_t> cpus;

    double elapsed_s() const { return summary.elapsed_s(); }
    /// Bytes that were asked of files on storage: reads and touched pages.
    uint64_t asked() const { return summary.storage_bytes_read + summary.storage_bytes_touched; }
    /// Those of them that the page cache was to serve.
    uint64_t asked_of_cache() const { return asked() - std::min(asked(), direct_read); }
    /// Of a part of the files, which the device's counters do not tell from the others.
    bool filtered() const { return filter != OpFilter::all().to_string(); }
    /// What the device read for each byte that was asked for; none: not recorded, nothing was asked for, or filtered.
    std::optional<double> amplification() const;
    /// What came into memory of the job's files, or passed it by, for each byte that was asked for: unlike the device's
    /// counters that holds nothing that others read. None: not recorded, or nothing was asked for.
    std::optional<double> own_amplification() const;
    /// What the device read for others (or of the file system's own), bytes; none: not known.
    std::optional<double> read_for_others() const;
    /// Share of what was asked of the page cache that did not come into memory during the job; none: not recorded, or
    /// nothing was asked of it.
    std::optional<double> hit_share() const;
};

struct AnalyzeOptions {
    OpFilter filter = OpFilter::all();
    size_t hot = 20;                         // files and directories that are kept
    std::function<void(uint64_t)> progress;  // ops read so far; each is read twice
};

/// Two passes over the log in the order of the file; memory does not grow with the number of ops, but for 64 bytes for
/// each file and 48 for each open instance.
JobAnalysis analyze_job(const LogReader& log, const AnalyzeOptions& options = {});

/// Without the members that name the log. `tables`: of the log.
nlohmann::ordered_json to_json(const JobAnalysis& job, const Tables& tables);

}  // namespace reprise

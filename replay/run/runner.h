// SPDX-License-Identifier: MIT
// A replay as a whole: plan, worker processes, their supervision, the result.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "replay/plan/cpu_speed.h"
#include "replay/plan/left_out.h"
#include "replay/plan/paths.h"
#include "replay/plan/queues.h"
#include "replay/prepare/cache_regime.h"
#include "replay/run/fidelity.h"
#include "replay/run/machine.h"
#include "replay/run/trust.h"
#include "replay/run/worker.h"

namespace reprise {

struct ReplayProgress {
    enum class Phase : uint8_t { planning, caching, running, collecting } phase = Phase::planning;
    uint64_t done = 0, total = 0;  // ops of the log; caching: bytes
    int64_t elapsed_ns = 0;        // of the phase
    int64_t lag_ns = 0;            // timed: of the task that is furthest behind
    std::string waiting = {};      // what holds the run up, where nothing has got done for two seconds
};

/// An op of a run beside the recorded one. Strings of both are those of the recording.
struct ObservedOp {
    TaskId task = 0;
    const Op &recorded, &here;
    bool performed = true;
    bool accelerators = false;  // the log uses them
};

/// How many ops may have another result than in the recording before a run is not the same job: a share of its ops,
/// or a number.
struct ToleratedDifferences {
    double share = 0.001;
    std::optional<uint64_t> ops = {};
};

struct ReplayOptions {
    std::filesystem::path root;  // not needed by the null engine
    Pace pace = Pace::timed;
    EngineKind engine = EngineKind::posix;
    Speeds speeds;  // each above 0; cpu and gpu other than 1 under causal only; its `computing` follows from `delay`
    DelayPolicy delay = DelayPolicy::automatic;
    CpuSpeed cpu_speed;  // where speeds.cpu comes from, for the result
    OpFilter filter;
    std::optional<PathMap> maps;   // none: those of the marker file; must not contradict them
    bool read_only = false;        // leave out what alters files
    bool allow_loss = false;       // replay a log that says it is not whole
    std::filesystem::path output;  // the run's op log; empty: none
    /// Given every op of the run that goes into its log, whether or not one is written. Task after task.
    std::function<void(const ObservedOp&)> observe = {};
    std::string fingerprint;    // of the recording, for the run's header; empty: not stored, and any root will do
    std::string log_name = {};  // for messages
    ToleratedDifferences tolerated = {};
    std::optional<CacheRequest> cache = {};  // none: the page cache is neither changed nor looked at
    const LogReader* recording = nullptr;    // that the log was made from, where it is a variant
    bool catch_signals = true;  // SIGINT and SIGTERM end the run with a valid result; a second one kills it
    size_t spool_memory = 0;    // bytes of results kept in memory; 0: a quarter of the machine's
    std::function<void(const ReplayProgress&)> progress;  // on the calling thread, about ten times a second
};

/// An op whose result differs from the recording.
struct Mismatch {
    TaskId task = 0;
    uint64_t op = 0;  // number within the recorded task
    OpKind kind = OpKind::open;
    std::string path;
    int64_t recorded = 0, actual = 0;
    LeftOut reason = LeftOut::none;  // not_open: its file could not be opened
};

struct ReplayResult {
    std::string ended = "complete";         // or "interrupted: why"
    std::vector<std::string> not_same_job;  // sentences: why this run did not do what the recording did; none: it did
    std::vector<std::string> notes;         // plain sentences that belong in every summary
    uint64_t ops = 0;                       // performed
    uint64_t bytes_read = 0, bytes_written = 0;
    int64_t elapsed_ns = 0;   // from the common start to the end of the last op
    int64_t recorded_ns = 0;  // span of the same ops in the recording
    uint64_t errors = 0;      // ops that failed in this run
    uint64_t mismatches = 0;  // ops whose success, errno or bytes differ from the recording
    uint64_t no_space = 0;    // ops that failed with ENOSPC or EDQUOT
    /// Of the ops that can differ: what they read and wrote in the recording, and what of that they did not here.
    uint64_t recorded_bytes = 0, missing_bytes = 0;
    std::vector<Mismatch> examples;  // a few of each kind
    std::array<uint64_t, kOpKindLimit> mismatches_by_kind{};
    std::array<uint64_t, kLeftOutReasons> left_out{};     // ops by LeftOut
    std::array<int64_t, kLeftOutReasons> left_out_ns{};   // their recorded time
    std::array<uint64_t, kLeftOutReasons> left_out_io{};  // of them, ops with trait io
    std::vector<Histogram> latency;                       // by OpKind, ns; empty ones for kinds that did not occur
    std::array<uint64_t, kOpKindLimit> bytes_by_kind{};
    Histogram lateness;  // ns, actual less due issue time; timed only
    bool timed = false;
    DelayPolicy delay = DelayPolicy::sleep;  // how computing passed
    CpuSpeed cpu_speed;
    Fidelity fidelity;
    Trust trust;
    double compute_peak = 0.0;  // processors that the recording computed on at once
    uint64_t edges = 0, edge_waits = 0;
    std::array<uint64_t, 8> edges_by_kind{};
    double unexplained_wait_share = 0.0;  // of the recorded wait; -1: no wait was recorded
    double harness_ns_per_op = 0.0;
    /// What the run made the device read, by the kernel's accounts of its processes, and what the device wrote during
    /// the run, by its own counter; where it has none, what the processes made dirty.
    std::optional<uint64_t> device_read_bytes, device_write_bytes;
    std::optional<DeviceCounter> device_counter;  // of the whole device during the run, other programs included
    uint64_t tasks = 0, processes = 0;
    uint64_t accelerators = 0;
    std::vector<Counter> counters;  // of the plan and of the recording
    QueueInference queues;          // of pace causal
    MachineFacts machine;
    std::optional<CacheReport> cache;  // none where it was not asked for
    std::filesystem::path output;
    int64_t plan_ns = 0, collect_ns = 0;
};

/// Whether `device_read_bytes` of 0 means that memory served the reads: a file system on the network, or one that reads
/// in threads of its own, may not account them to the run's processes.
bool device_reads_known(const ReplayResult& result);

/// Throws Error (bad_input) where the log says that it is not whole, unless that is allowed.
void check_losses(const LogReader& log, bool allow);

/// Replays `log`. Throws Error where it cannot begin or the result cannot be written; whatever happens to the run
/// itself is in the result. No process or thread outlives the call.
ReplayResult replay(const LogReader& log, const ReplayOptions& options);

}  // namespace reprise

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
#include "replay/interval/interval.h"
#include "replay/limit/limited_run.h"
#include "replay/plan/access.h"
#include "replay/plan/cpu_speed.h"
#include "replay/plan/helper_time.h"
#include "replay/plan/left_out.h"
#include "replay/plan/open_loop.h"
#include "replay/plan/paths.h"
#include "replay/plan/queues.h"
#include "replay/plan/recorded_doubts.h"
#include "replay/plan/serial_writers.h"
#include "replay/plan/slept_through.h"
#include "replay/prepare/cache_regime.h"
#include "replay/run/epoch_proof.h"
#include "replay/run/fidelity.h"
#include "replay/run/live.h"
#include "replay/run/machine.h"
#include "replay/run/peers.h"
#include "replay/run/rank_holds.h"
#include "replay/run/trust.h"
#include "replay/run/verification.h"
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
    const Op &recorded, &here;  // of a result of io_uring `here.end()` may lie before its begin
    bool performed = true;
    bool accelerators = false;  // the log uses them
    size_t epoch = 0;           // 0: before the first; else 1 + index in ReplayResult::epochs
    uint64_t number = 0;        // within the recorded task
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
    CpuSpeed cpu_speed;        // where speeds.cpu comes from, for the result
    std::string what_if = {};  // options that make the run another job than the recorded one, for the result
    AccessChange access;       // how files are got at otherwise than recorded; the engine performs calls then
    OpFilter filter;
    bool filter_asked = false;     // it is not the default
    std::optional<PathMap> maps;   // none: those of the marker file; must not contradict them
    bool read_only = false;        // leave out what alters files
    bool allow_loss = false;       // replay a log that says it is not whole
    bool recover = false;          // and one that was truncated
    std::filesystem::path output;  // the run's op log; empty: none
    /// Given every op of the run that goes into its log, whether or not one is written. Task after task.
    std::function<void(const ObservedOp&)> observe = {};
    std::string fingerprint;    // of the recording, for the run's header; empty: not stored, and any root will do
    std::string log_name = {};  // for messages: a path as shells read it, and the options by which it is scaled
    Scatter recordings = {};    // of the job's times, where the log is one of several recordings
    ToleratedDifferences tolerated = {};
    std::optional<CacheRequest> cache = {};  // none: the page cache is neither changed nor looked at
    const LogReader* recording = nullptr;    // that the log was made from, where it is a variant
    uint32_t copies = 1;                     // of the recorded job, that the log runs
    RunLimits limits = {};                   // of the workers
    std::vector<LogEpoch> epochs = {};       // of the log; empty: they are not told apart
    Verify verify = Verify::none;            // needs a root as `prepare` left it, content random
    bool catch_signals = true;  // SIGINT and SIGTERM end the run with a valid result; a second one kills it
    Peers* peers = nullptr;     // other ranks that perform parts of the log; none: this process performs all
    size_t spool_memory = 0;    // bytes of results kept in memory; 0: a quarter of the machine's
    std::function<void(const ReplayProgress&)> progress;  // on the calling thread, about ten times a second
    std::function<void(const LiveFigures&)> live;         // likewise on a thread of its own, while the run lasts
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
    std::string what_if;                    // as asked
    bool computed = false;                  // the log is of a job that `scale` or `generate` made, and so are its times
    bool content_compresses = false;        // the files that are read compress as the recorded ones did, or as zeros do
    uint64_t ops = 0;                       // performed
    uint64_t bytes_read = 0, bytes_written = 0;
    int64_t elapsed_ns = 0;     // from the common start to the end of the last op
    int64_t start_unix_ns = 0;  // wall clock at the common start
    int64_t recorded_ns = 0;    // span of the same ops in the recording
    uint64_t errors = 0;        // ops that failed in this run
    uint64_t mismatches = 0;    // ops whose success, errno or bytes differ from the recording
    uint64_t no_space = 0;      // ops that failed with ENOSPC or EDQUOT
    uint64_t refused = 0;       // mismatches that this user has no permission for
    /// Of the ops that can differ: what they read and wrote in the recording, and what of that they did not here.
    uint64_t recorded_bytes = 0, missing_bytes = 0;
    RecordedDoubts doubts;
    MappedAround around;          // where the run fetches what it touches of mapped files
    uint64_t recorded_holes = 0;  // bytes: of files that were sparse in the recording, and are full here
    bool one_place = false;       // the files of several recorded file systems are on one here
    /// Memory besides files that a process of the recorded job held at most, and what was free here when the run began,
    /// bytes. 0, none: unknown.
    uint64_t recorded_memory = 0;
    std::optional<uint64_t> free_memory;
    /// Calls that waited for names in the recording (waited_for_names()), those that did so here, and of the task where
    /// they come to most the recorded time of those that did not, ns.
    uint64_t recorded_name_waits = 0, name_waits = 0;
    int64_t names_cached_ns = 0;
    std::vector<Mismatch> examples;  // a few of each kind
    std::array<uint64_t, kOpKindLimit> mismatches_by_kind{};
    std::array<uint64_t, kLeftOutReasons> left_out{};     // ops by LeftOut
    std::array<int64_t, kLeftOutReasons> left_out_ns{};   // their recorded time
    std::array<uint64_t, kLeftOutReasons> left_out_io{};  // of them, ops with trait io
    std::vector<Histogram> latency;                       // by OpKind, ns; empty ones for kinds that did not occur
    std::array<uint64_t, kOpKindLimit> bytes_by_kind{};
    Histogram lateness;                      // ns, actual less due issue time; timed only
    bool timed = false;                      // not of pace afap
    bool causal = false;                     // of pace causal
    std::vector<OpenLoop> open_loops;        // not of pace afap
    DelayPolicy delay = DelayPolicy::sleep;  // how computing passed
    CpuSpeed cpu_speed;
    Fidelity fidelity;
    Trust trust;
    PathTimes path;  // causal: what the time went to on the critical path
    /// How far the real job's time may lie from `elapsed_ns`. None: the run does not predict it (another pace than
    /// causal, no storage), or is not to be trusted.
    std::optional<TimeInterval> interval;
    std::string no_interval;        // why not, under pace causal and on storage
    ErrorSources errors_from;       // what the interval comes from
    uint32_t async_depth = 0;       // most asynchronous requests that the recording had in flight at a time
    bool requests_at_once = false;  // they were performed one by one where they were submitted
    uint64_t unseen_writes = 0;     // mappings whose writes the recording may lack (Count::mapped_writes_unseen)
    uint64_t pinned_tasks = 0;      // recorded tasks that might not use all processors
    int pinned_cpus = 0;            // those that they might use, together
    double compute_peak = 0.0;      // processors that the recording computed on at once
    uint64_t edges = 0, edge_waits = 0;
    /// Under ranks: what the task that waited longest for ops of other ranks waited for them in all, ns.
    int64_t rank_wait_ns = 0;
    /// The same by the rank that it waited for: of several, the last that came. Of the result of all ranks: their sum,
    /// as pass_on() leaves it.
    std::vector<int64_t> rank_waits;
    TaskId rank_waiter = 0;            // that task; of the result of all ranks: 0
    std::vector<RankHold> rank_holds;  // of all tasks; of the result of all ranks: none
    std::array<uint64_t, 8> edges_by_kind{};
    int64_t repeated_sleep_ns = 0;        // recorded, of all tasks: sleeps one after the other, which may be polls
    double unexplained_wait_share = 0.0;  // of the recorded wait; -1: no wait was recorded
    double harness_ns_per_op = 0.0;
    /// What the run made the device read, by the kernel's accounts of its processes, and what the device wrote during
    /// the run, by its own counter; where it has none, what the processes made dirty.
    std::optional<uint64_t> device_read_bytes, device_write_bytes;
    std::optional<uint64_t> dirtied_bytes;        // what the run's processes made dirty or wrote past the cache
    std::optional<DeviceCounter> device_counter;  // of the whole device during the run, other programs included
    uint64_t tasks = 0, processes = 0;
    uint64_t accelerators = 0;
    std::vector<Counter> counters;           // of the plan and of the recording
    std::string access;                      // what came of ReplayOptions::access, in a sentence; empty: as recorded
    AccessCounts access_counts;              // likewise
    bool reads_direct = false;               // the page cache was to be passed by (ReplayOptions::access)
    std::optional<VerifyReport> verified;    // none where it was not asked for, or the run did not come to its end
    QueueInference queues;                   // of pace causal
    HelperFindings helpers;                  // of pace causal
    SerialWriters::Findings serial_writers;  // likewise
    SleptThrough::Findings slept_through;    // likewise
    int64_t name_walk_ns = 0;                // name_walk_ns(); 0: not known
    MachineFacts machine;
    std::optional<CacheReport> cache;     // none where it was not asked for
    std::vector<EpochProof> epochs;       // that the run began
    std::optional<LimitedMemory> memory;  // none: it was not limited
    IoLimits io_limits;
    std::string lost_io_limits;    // why limits of this process's control group do not hold for the run; empty: they do
    std::filesystem::path output;  // empty: no log of the run
    std::string output_lost;       // why there is none, though one was asked for
    int64_t plan_ns = 0, collect_ns = 0;
    std::optional<PeerRow> peer;  // this rank among those of the run; none: it is alone
};

/// Whether `device_read_bytes` of 0 means that memory served the reads: a file system on the network, or one that reads
/// in threads of its own, may not account them to the run's processes.
bool device_reads_known(const ReplayResult& result);

/// Bytes that the device of the root moved during the run for others, as far as its counter and the kernel's accounts
/// of the run's processes tell. 0: none, or not known.
uint64_t moved_by_others(const ReplayResult& result);

/// Data that the device can have served at most: what it read beyond that is names and inodes. None: not known, or it
/// may have served some of it again and again.
std::optional<uint64_t> device_data(const ReplayResult& result);

/// Whether the replay is cold, and what the job read of mapped files is not known as these were in memory.
bool hides_touches(const ReplayResult& result);

/// Time that the recording waited for names which memory served here, ns: 0 where their device was read, or is memory,
/// or where that was asked for.
int64_t names_served_by_memory(const ReplayResult& result);

/// Whether what was read lay neither in memory nor on the device: holes, preallocated space, compressed zeros.
bool reads_no_data(const ReplayResult& result);

/// Throws Error (bad_input) where the log says that it is not whole, unless that is allowed.
void check_losses(const LogReader& log, bool allow, bool recover = false);

/// Replays `log`. Throws Error where it cannot begin; whatever happens to the run itself, and to its log, is in the
/// result. No process or thread outlives the call.
ReplayResult replay(const LogReader& log, const ReplayOptions& options);

}  // namespace reprise

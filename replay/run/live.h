// SPDX-License-Identifier: MIT
// The figures of a run while it goes on. Nothing is counted where ops are issued: the tasks leave a row for each op in
// shared memory anyway, and a thread of the supervisor's process follows them.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "calibrate/clock.h"
#include "calibrate/mounted.h"
#include "formats/oplog/oplog.h"
#include "formats/oplog/result_rule.h"
#include "formats/support/time_buckets.h"
#include "replay/plan/plan.h"
#include "replay/plan/speeds.h"
#include "replay/prepare/cache_regime.h"
#include "replay/run/request_bytes.h"
#include "replay/run/run_reads.h"
#include "replay/run/shared.h"
#include "replay/run/worker.h"

namespace reprise {

struct LiveKind {
    uint64_t ops = 0, errors = 0, mismatches = 0;
    TimeBuckets duration;
};

/// Work for an accelerator, or a marker: what AcceleratorTracker (analyze/accelerator.h) needs.
struct LiveDeviceOp {
    TaskId task = 0;
    Op op;  // in log time, as in the run's own log
};

/// As ReplayResult has them when the run is over, but for what `uncounted` says.
struct LiveFigures {
    int64_t elapsed_ns = 0;                               // since the common start
    std::optional<CacheRegime> cache;                     // that the run began in; none: it uses no storage
    uint64_t planned = 0, passed = 0;                     // ops of the log
    uint64_t uncounted = 0;                               // of `passed`: not yet in what follows
    std::array<LiveKind, kOpKindLimit> kinds;             // by OpKind
    uint64_t left_out = 0;                                // ops
    uint64_t bytes_read = 0, bytes_written = 0;           // by ops
    TimeBuckets lateness;                                 // not with pace afap
    int64_t lag_ns = 0;                                   // of the task that is furthest behind now
    std::array<uint64_t, 4> tasks{};                      // by TaskState
    uint64_t processes = 0;                               // that run now
    std::optional<uint64_t> device_read, device_written;  // by the device of the root, for whomever
    std::optional<uint64_t> own_read;                     // by devices for the run's processes
    int64_t log_begin_ns = 0;                             // log time of the common start
    std::vector<LiveDeviceOp> device_ops;                 // since the last call; nearly in the order of begin
};

/// What a LiveRun looks at.
struct LiveSources {
    const Plan& plan;
    SharedRun& run;
    SharedTimeline& clock;
    Pace pace = Pace::afap;
    Speeds speeds;
    std::filesystem::path root = {};      // empty: the engine uses none
    const ControlGroup* group = nullptr;  // none: the run has none
    std::optional<CacheRegime> cache = {};
};

class LiveRun {
public:
    /// `tell` is called about ten times a second, on a thread that start() makes, and once in finish().
    LiveRun(LiveSources from, std::function<void(const LiveFigures&)> tell);
    ~LiveRun();
    LiveRun(const LiveRun&) = delete;
    LiveRun& operator=(const LiveRun&) = delete;

    /// When the run has its common start.
    void start();
    /// After the run, before its results are collected. Does what can be done of the rest in `most_ns`.
    void finish(int64_t most_ns = 300'000'000);

private:
    struct Cursor;
    void follow_until_told();
    void stop();
    void turn(bool last);
    uint64_t follow(TaskId task, uint64_t until, bool last);
    bool load(Cursor& cursor, TaskId task, uint64_t until, bool last);
    void count(Cursor& cursor, TaskId task, const OpBlock& block, size_t i);
    void performed(const Cursor& cursor, TaskId task, const OpBlock& block, size_t i, int64_t begin, int64_t end);
    void late(Cursor& cursor, TaskId task, const OpBlock& block, size_t i, const SpoolRow& row, int64_t begin,
              int64_t done, bool performed);
    /// INT64_MIN: they did not hold it up before the op was issued; CausalStep::kNotKnown: the op is no wait for them.
    struct Released {
        int64_t before, inside;
    };
    Released released(Cursor& cursor, TaskId task, const OpBlock& block, size_t i);
    void look_at_tasks();
    void look_at_devices();
    void tell();

    const LiveSources from_;
    const std::function<void(const LiveFigures&)> tell_;
    LiveFigures figures_;
    TickTimeline clock_;  // of what this turn counts
    int64_t start_ = 0;
    std::vector<std::unique_ptr<Cursor>> cursors_;  // by task, from its first op on
    std::vector<uint64_t> until_, sampled_;         // by task: ops done at the look before the latest, and at that
    TaskId next_ = 1;                               // task to begin the next turn with
    OpBlock scratch_;
    size_t kept_ = 0;  // bytes of decoded blocks in cursors
    ListingResults listings_;
    PolledReads<OpKind> polled_;  // those kept are not counted before the end
    RequestBytes request_bytes_;
    RunReads reads_;
    std::optional<DeviceCounter> device_before_;
    int64_t device_looked_ = 0;
    bool broken_ = false;  // a block cannot be read: the run says so
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stop_ = false;
    std::thread thread_;
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// What each epoch of a run made the storage serve: the proof that the page cache did not, or did.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <vector>

#include "calibrate/clock.h"
#include "calibrate/mounted.h"
#include "formats/oplog/epochs.h"
#include "replay/limit/control_group.h"
#include "replay/plan/plan.h"
#include "replay/prepare/cache_regime.h"
#include "replay/run/run_reads.h"
#include "replay/run/shared.h"

namespace reprise {

/// From the first access of one epoch to that of the next, or to the end of the run.
struct EpochProof {
    uint64_t accesses = 0;                  // to samples, in the log
    int64_t begin_ns = 0, elapsed_ns = 0;   // from the common start
    std::optional<uint64_t> device_bytes;   // that the device read meanwhile, for whomever
    std::optional<uint64_t> own_bytes;      // and for the run, by its control group or the accounts of its processes
    std::optional<double> resident_before;  // share of what the run reads that was in memory when it began
    std::optional<double> resident_after;   // and when it was over
    int64_t end_ns() const { return begin_ns + elapsed_ns; }
    /// That of the run, which knows no others, where anybody keeps account of it; else the device's.
    std::optional<uint64_t> storage_bytes() const { return own_bytes ? own_bytes : device_bytes; }
};

/// Bytes read so far, at times that ascend.
class ReadCurve {
public:
    /// Share of a stretch of time that is over at `ns`, 0 to 1. None: nothing is known of it.
    using Part = std::function<std::optional<double>(int64_t from, int64_t ns, int64_t to)>;

    void add(int64_t ns, uint64_t bytes) { points_.push_back({ns, bytes}); }
    /// Between two points as `part` says, else in proportion to time. None without points.
    std::optional<double> at(int64_t ns, const Part& part = {}) const;
    bool rises() const { return !points_.empty() && points_.back().bytes != points_.front().bytes; }
    /// None without points.
    std::optional<uint64_t> between(int64_t from, int64_t to, const Part& part = {}) const;

private:
    struct Point {
        int64_t ns = 0;
        uint64_t bytes = 0;
    };
    std::vector<Point> points_;
};

/// Watches a run. `group`: none where it has none. `cache`: none where nobody may look.
class EpochWatch {
public:
    EpochWatch(const Plan& plan, const std::vector<LogEpoch>& epochs, std::filesystem::path root,
               const ControlGroup* group, const CacheKeeper* cache);

    /// About twenty times a second, and once more when the run is over.
    void tick(SharedRun& run, int64_t now_ns);
    /// After the run, before its results are collected. `clock`: of their ticks.
    std::vector<EpochProof> finish(SharedRun& run, const TickTimeline& clock, int64_t end_ns);
    /// What was in memory before the first epoch, and is after the last.
    static void put_ends(std::vector<EpochProof>& proofs, const CacheReport& report);

private:
    std::optional<int64_t> begin_of(const LogEpoch& epoch, SharedRun& run, const TickTimeline& clock) const;
    /// By the time that tasks spent in ops that moved data.
    std::optional<double> reading_before(int64_t from, int64_t ns, int64_t to, SharedRun& run,
                                         const TickTimeline& clock) const;
    void look();

    const Plan& plan_;
    const std::vector<LogEpoch>& epochs_;
    const std::filesystem::path root_;
    RunReads reads_;
    const CacheKeeper* const cache_;
    size_t begun_ = 0;  // epochs
    ReadCurve device_, own_;
    std::vector<std::future<std::optional<double>>> resident_;  // when each epoch began
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// What several predictions of one job share, and the memory that it leaves to the page cache.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "formats/oplog/held_memory.h"
#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "formats/oplog/recorded_progress.h"
#include "replay/plan/access.h"
#include "replay/plan/plan.h"
#include "replay/predict/memory_times.h"

namespace reprise {

/// The job's own memory over time; empty: it held none, or the log does not say.
struct JobMemory {
    std::vector<HeldTotal> held;
    std::optional<RecordedProgress> progress;
};

/// How long each asynchronous request took in the recording.
class RequestTimes {
public:
    /// Reads the ops of the plan once.
    explicit RequestTimes(const Plan& plan);
    /// ns; 0 where nobody took note of its result.
    int64_t of(uint32_t request) const;

private:
    std::unordered_map<uint32_t, int64_t> took_;
};

class PlannedJob {
public:
    /// `log` outlives it.
    PlannedJob(const LogReader& log, const OpFilter& filter, const AccessChange& access);

    const Plan plan;
    /// None: the log does not say.
    const std::optional<std::vector<HeldTotal>>& held() const;
    const JobMemory& memory() const;
    /// Read when first asked for.
    const MemoryTimes& memory_times() const;
    /// Likewise.
    const RequestTimes& request_times() const;

private:
    mutable std::optional<std::optional<std::vector<HeldTotal>>> held_;  // read when first asked for
    mutable std::optional<JobMemory> memory_;
    mutable std::optional<MemoryTimes> memory_times_;
    mutable std::optional<RequestTimes> request_times_;
};

/// What a limit leaves to the page cache while the job goes on.
class RoomOverTime {
public:
    /// `job` outlives it.
    RoomOverTime(const JobMemory& job, uint64_t limit) : job_(job), limit_(limit) {}

    /// Whether bytes() is another than before; the first time it is. `done`: ops, of all tasks; at `now`, ns, which
    /// ascends.
    bool changed(uint64_t done, int64_t now);
    int64_t bytes() const { return bytes_; }

private:
    const JobMemory& job_;
    const uint64_t limit_;
    uint64_t done_ = 0;
    int64_t since_ = 0, next_ = INT64_MIN, bytes_ = -1;
};

}  // namespace reprise

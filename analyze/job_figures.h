// SPDX-License-Identifier: MIT
// The figures by which a run is held beside its recording: those of one side.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "analyze/summary.h"
#include "analyze/time_spent.h"
#include "formats/oplog/in_flight.h"
#include "formats/oplog/oplog.h"

namespace reprise {

struct JobFigures {
    int64_t elapsed = 0;  // ns
    uint64_t bytes_read = 0, bytes_written = 0;
    /// Of bytes_read, and beside it the pages of mapped files that were touched: what is not in /dev/shm, and so may
    /// have come from the device.
    uint64_t storage_bytes_read = 0, bytes_touched = 0;
    Latency reads, writes;  // calls that move file data; not asynchronous requests
    InFlight requests;
    TimeSpent time;
    // With accelerators only.
    std::optional<double> au;
    int64_t busy = 0, stall = 0;  // ns
};

/// Of a log.
JobFigures job_figures(const Summary& summary);
/// Sizes in bytes, times with _ns or _s at the end of their keys.
nlohmann::ordered_json to_json(const JobFigures& figures);

/// Of ops as they come: those of one task in their order, tasks in any. Says what the summary of a log of these ops
/// says.
class FigureCounter {
public:
    /// `tables`: of the log that the ops are from.
    explicit FigureCounter(const Tables& tables);
    FigureCounter(const FigureCounter&) = delete;
    FigureCounter& operator=(const FigureCounter&) = delete;
    /// `performed`: false for an op of a run that was left out, or whose counterpart was; its duration is none of a
    /// call.
    void add(TaskId task, const Op& op, bool performed = true);
    /// Bytes read from files on storage so far, and of their pages touched.
    uint64_t asked_so_far() const { return out_.storage_bytes_read + time_.touched_so_far(); }
    /// Without `elapsed` and accelerators, which others know. Call once.
    JobFigures finish();
    const Histogram& latency(OpKind kind) const { return latency_[static_cast<size_t>(kind)]; }

private:
    enum class Way : uint8_t { neither, read, write };
    void moved(Way way, FileId file, int64_t bytes);

    const Tables& tables_;
    JobFigures out_;
    TimeSpentCounter time_;
    std::vector<Histogram> latency_;  // by OpKind
    RequestMatcher requests_;
    InFlightCounter in_flight_;
};

}  // namespace reprise

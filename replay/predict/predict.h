// SPDX-License-Identifier: MIT
// The replay without I/O: the plan of a log in virtual time, against a storage model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "calibrate/storage_model.h"
#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "replay/plan/broken_edge.h"
#include "replay/plan/speeds.h"

namespace reprise {

struct PredictOptions {
    StorageModel storage;
    bool warm = false;  // every byte is in the page cache from the start; else each is fetched once
    Speeds speeds;      // its `computing` is not used
    int cpus = 0;       // that compute shares; 0: those of the recording, no limit where unknown
    OpFilter filter;
    std::filesystem::path output;  // op log of the predicted run; empty: none
    /// Given every op of the predicted run where the log uses accelerators; strings are those of the log. In the order
    /// in which the ops end.
    std::function<void(TaskId, const Op&)> observe = {};
};

struct Prediction {
    int64_t elapsed_ns = 0, recorded_ns = 0;
    uint64_t ops = 0, bytes_read = 0, bytes_written = 0;
    uint64_t storage_reads = 0, storage_bytes = 0;  // that went past the page cache
    int64_t storage_ns = 0;                         // time that tasks spent in them, together
    int64_t computing_ns = 0, run_queue_ns = 0;     // compute, and waiting for one of `cpus`
    int64_t after_waits_ns = 0;                     // of it: more than recorded, as waits are longer or shorter
    int cpus = 0;                                   // 0: without limit
    bool accelerators = false;
    std::filesystem::path output;
    std::vector<BrokenEdge> broken;  // edges dropped to break dependency cycles
    std::vector<Counter> counters;   // of the plan
};

/// The rules of pace `causal` (replay/plan/causal_step.h) in virtual time. Each call takes what the storage model says,
/// or its recorded time where that is not about storage. Throws Error where the log cannot be read or the output not be
/// written.
Prediction predict(const LogReader& log, const PredictOptions& options);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// The replay without I/O: the plan of a log in virtual time, against a storage model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/storage_model.h"
#include "formats/oplog/epochs.h"
#include "formats/oplog/held_memory.h"
#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "formats/support/histogram.h"
#include "replay/interval/interval.h"
#include "replay/plan/access.h"
#include "replay/plan/broken_edge.h"
#include "replay/plan/helper_time.h"
#include "replay/plan/open_loop.h"
#include "replay/plan/plan.h"
#include "replay/plan/recorded_doubts.h"
#include "replay/plan/serial_writers.h"
#include "replay/plan/slept_through.h"
#include "replay/plan/speeds.h"
#include "replay/predict/page_cache.h"

namespace reprise {

/// Memory of a job with what the page cache holds for it.
struct PredictedLimit {
    uint64_t bytes = 0;
    bool held = true;  // less what the job itself held in the recording
    PageCachePolicy policy = PageCachePolicy::two_lists;
};

/// Where the times of calls come from.
enum class CallTimes : uint8_t {
    model,     // PredictOptions::storage
    recorded,  // they take as long as recorded
    memory,    // storage without a device (replay/predict/memory_times.h)
    drawn,     // PredictOptions::service
};

class OpWatcher;
class ServiceTimes;

struct PredictOptions {
    CallTimes calls = CallTimes::model;
    StorageModel storage;                   // not used unless calls take what it says
    const ServiceTimes* service = nullptr;  // of another recording; used where calls take drawn times
    bool warm = false;                      // every byte is in the page cache from the start; else each is fetched once
    Speeds speeds;                          // its `computing` is not used
    std::string what_if = {};               // options that make it another job than the recorded one, for the log
    double speed_uncertainty = 0;           // share by which `speeds.cpu` may be off
    int cpus = 0;                           // that compute shares; 0: those of the recording, no limit where unknown
    AccessChange access;                    // how files are got at otherwise than recorded
    std::optional<PredictedLimit> memory = {};  // none: the page cache forgets nothing
    std::vector<LogEpoch> epochs = {};          // to be told apart
    OpFilter filter;
    bool filter_asked = false;  // it is not the default
    /// Of the bytes that the recording read, each once: pages of mapped files that were in memory then, so that not all
    /// of them are known.
    uint64_t hidden_bytes = 0, known_bytes = 0;
    MappedAround around;           // its read-ahead is the model's
    double mapped_times = 1;       // as many pages may be used of mapped files as page faults touched
    std::filesystem::path output;  // op log of the predicted run; empty: none
    /// Given every op of the predicted run where the log uses accelerators; strings are those of the log. In the order
    /// in which the ops end.
    std::function<void(TaskId, const Op&)> observe = {};
    OpWatcher* watcher = nullptr;  // told of every op; none: nobody is
};

/// From the first access of one epoch to that of the next, or to the end.
struct PredictedEpoch {
    uint64_t accesses = 0;
    int64_t begin_ns = 0, elapsed_ns = 0;
    uint64_t asked_bytes = 0, storage_bytes = 0;
};

struct Prediction {
    int64_t elapsed_ns = 0, recorded_ns = 0;
    bool computed = false;  // the log is of a job that `scale` or `generate` made, and so is recorded_ns
    uint64_t ops = 0, bytes_read = 0, bytes_written = 0;
    uint64_t storage_reads = 0, storage_bytes = 0;  // that went past the page cache
    uint64_t dropped_bytes = 0;                     // that the job dropped from it
    uint64_t scattered_reads = 0;                   // of these, of inodes and names of files around those of the log
    Histogram reads;                                // how long calls that read took, ns
    std::vector<OpenLoop> open_loops;               // by command
    std::vector<PredictedEpoch> epochs;             // of those asked for
    uint64_t limit_bytes = 0;                       // of memory; 0: none
    uint64_t left_mapped_bytes = 0;                 // that left the page cache while they were mapped
    bool held_unknown = false;                      // there is one, and the log does not say what the job itself held
    uint64_t touched_pages = 0;                     // page faults on mapped files, where not all is in memory
    int64_t storage_ns = 0;                         // time that tasks spent in them, together
    int64_t unknown_journal_ns = 0;                 // what that might be, on file systems of which it is not known
    int64_t journal_ns = 0;                         // of the device, for what syncs write of names and sizes: a guess
    int64_t computing_ns = 0, run_queue_ns = 0;     // compute, and waiting for one of `cpus`
    int64_t after_waits_ns = 0;                     // of it: more than recorded, as waits are longer or shorter
    int cpus = 0;                                   // 0: without limit
    uint32_t async_depth = 0;                       // most asynchronous requests in flight at a time in the recording
    std::string shared_work;                        // QueueInference::shared_work()
    bool shares_otherwise = false;                  // the time is far from the recorded one
    HelperFindings helpers;
    SerialWriters::Findings serial_writers;
    SleptThrough::Findings slept_through;
    bool accelerators = false;
    RecordedDoubts doubts;
    uint64_t hidden_bytes = 0, known_bytes = 0;  // as given, where faults were predicted
    MappedAround around;                         // likewise
    uint64_t guessed_bytes = 0;  // CallTimes::memory: moved by calls of which none alike was served by memory
    bool names_cached = false;   // the model does not know what a look at a name costs that is not in memory
    PathTimes path;              // what the time goes to on the critical path
    /// How far the real job's time there may lie from `elapsed_ns`; none where the prediction is not to be trusted.
    std::optional<TimeInterval> interval;
    std::filesystem::path output;                                // empty: no log of the predicted run
    std::string output_lost;                                     // why there is none, though one was begun
    std::vector<BrokenEdge> broken;                              // edges dropped to break dependency cycles
    std::vector<Counter> counters;                               // of the plan
    std::vector<std::pair<std::string, uint64_t>> not_modelled;  // what bears on storage and takes its recorded time
    CallTimes calls = CallTimes::model;
    std::vector<std::pair<std::string, uint64_t>> not_in_service;  // calls of kinds of which no times could be drawn
};

/// A job of which several predictions are made.
class Predictor {
public:
    /// `log` outlives it. Throws Error where it cannot be read.
    Predictor(const LogReader& log, const OpFilter& filter, const AccessChange& access);
    ~Predictor();

    const Plan& plan() const;
    /// The job's own memory over time; none: the log does not say.
    const std::optional<std::vector<HeldTotal>>& held() const;
    /// As predict(). The filter and the access of `options` are those of the constructor.
    Prediction run(const PredictOptions& options) const;

private:
    std::unique_ptr<const class PlannedJob> job_;
};

/// The rules of pace `causal` (replay/plan/causal_step.h) in virtual time. Each call takes what the storage model says,
/// or its recorded time where that is not about storage. Throws Error where the log cannot be read or the output not be
/// begun.
Prediction predict(const LogReader& log, const PredictOptions& options);

/// Why a prediction from a model that was measured in memory is not one of storage.
inline constexpr std::string_view kModelOfMemory =
    "the storage model was measured in memory: its reads are page cache reads, not storage";

/// Of the time on the critical path, that for Prediction::scattered_reads, ns.
double scattered_ns(const Prediction& prediction);

/// Why a prediction is not to be trusted; empty: nothing is known.
std::string poor_reason(const Prediction& prediction, const StorageModel& model);
/// Why the time gets no 95 % interval; empty: it gets one.
std::string why_no_interval(const Prediction& prediction, const StorageModel& model);
/// What bears on it without that; empty: nothing is known.
std::string fair_reason(const Prediction& prediction, const StorageModel& model);
/// Why it says little about the storage at all; it is not to be trusted then. Empty: it does.
std::string says_little(const Prediction& prediction);

}  // namespace reprise

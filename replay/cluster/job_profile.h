// SPDX-License-Identifier: MIT
// A job as a short list of segments for each task: what lies between two ops at which tasks, accelerators or steps
// meet. What a segment asks of the storage, the processor and the accelerator is summed up; who waits for whom is kept
// as it is. Made by one prediction of the job on storage that it has for itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/predict/predict.h"

namespace reprise {

/// Waits until `task` has published `count` times.
struct SegmentWait {
    uint32_t task = 0;
    uint32_t count = 0;
};

struct Segment {
    int64_t lead_ns = 0;                   // before its first op
    bool inside = false;                   // that op waits for others after `lead_ns`, else at the same time
    bool publishes_first = false;          // `published` counts from its begin
    bool step_end = false;                 // the step of an accelerator is over after it
    bool drain = false;                    // ends when `stream` is empty
    int32_t stream = -1;                   // of an accelerator
    uint32_t published = 0;                // of the task, when it is over
    uint32_t first_wait = 0, waits = 0;    // in JobProfile::waits
    uint32_t first_start = 0, starts = 0;  // in JobProfile::starts: tasks that begin with it
    int64_t busy_ns = 0;                   // work that it gives `stream` at its end
    double own_ns = 0;                     // calls, thinking, waits of unknown cause
    double compute_ns = 0;                 // on a processor
    double fetch_ns = 0;                   // calls that had to ask the storage for something
    double fetch_requests = 0, fetch_bytes = 0;
    double names = 0;  // calls that name a file, and listings
    double write_ns = 0;
    double sync_ns = 0, sync_bytes = 0;  // waiting for written data, and how much
    uint32_t alike = 0;                  // segments with the same number may stand for each other; 0: none may

    bool operator==(const Segment&) const = default;
};

struct ProfiledTask {
    uint32_t process = 0;
    bool at_start = false;
    std::vector<Segment> segments;
};

struct JobProfile {
    std::vector<ProfiledTask> tasks;  // the recorded ones, from 0 on
    std::vector<SegmentWait> waits;
    std::vector<uint32_t> starts;
    uint32_t streams = 0;
    uint32_t accelerators = 0;
    Prediction alone;           // the prediction that it was made by
    double unsynced_bytes = 0;  // written and never waited for
    uint64_t locks = 0;         // that calls on files are made under, and that are not simulated
    bool writes = false;
    uint64_t broken = 0;  // edges that the prediction had to give up

    size_t segments() const;
};

/// `how`: as for a prediction of the job; its storage without the limits that all share, and its processors without
/// number, are put in their place. Throws Error where the log has no accelerator, or requests that nobody waits for in
/// a call (io_uring, libaio), which a profile cannot hold.
JobProfile profile_job(const LogReader& log, const Predictor& predictor, PredictOptions how);

/// The model of storage without limits that requests share.
StorageModel without_limits(const StorageModel& model);

}  // namespace reprise

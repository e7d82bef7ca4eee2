// SPDX-License-Identifier: MIT
// The samples of each batch, as the calls of its loader show them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fit/job_trace.h"
#include "fit/training_loop.h"
#include "generate/job.h"

namespace reprise {

/// A read of a sample; of streams: a read.
struct SampleAccess {
    FileId file = 0;
    int64_t offset = 0, bytes = 0;  // mapped files: whole pages
    size_t first = 0;               // of the loader's TraceTask::ops
    bool opens = false;             // the file, for this
};

struct BatchSamples {
    uint32_t rank = 0;
    size_t batch = 0;  // of RankLoop::batches
    std::vector<SampleAccess> accesses;
    std::vector<int64_t> computes;    // ns, in order
    std::vector<size_t> compute_ops;  // of the loader's TraceTask::ops
};

struct LoadedSamples {
    SampleFormat format = SampleFormat::none;
    std::string word;                   // of format=
    std::string why;                    // that format
    bool guessed = false;               // ... by how it is read, not by its name
    std::vector<BatchSamples> batches;  // in the order of the job: by epoch, batch and rank
    uint64_t each = 0;                  // samples of a rank's batch; 0: not seen
    double each_share = 0;              // of the batches that have so many
    bool uneven = false;                // they differ too much for that: it is their mean
    bool computes_are_samples = false;  // each sample is followed by one op that computes
    int64_t piece = 0;                  // bytes of the reads that a sample takes several of; 0: none
    bool pieces_or_samples = false;     // reads go on where the one before ended, and all are equally large
    uint64_t unclear = 0;               // batches whose pieces do not tell its samples apart: without accesses
    bool direct = false;
    uint64_t columns = 0;            // of parquet: reads of a row group
    std::map<FileId, int64_t> ends;  // of parquet: where its row groups end, bytes

    /// Of the most frequent count and its share.
    static std::pair<uint64_t, double> usual(const std::vector<uint64_t>& counts);
};

/// `copies`: computing that is none of samples, by task and op.
LoadedSamples find_samples(const JobTrace& trace, const TrainingLoop& loop,
                           const std::set<std::pair<TaskId, uint64_t>>& copies);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// How many samples a data set has, how large they are, and how they lie in its files.
#pragma once

#include <cstdint>

#include "fit/fit.h"
#include "fit/samples.h"

namespace reprise {

struct DataSetFit {
    uint64_t samples = 0;
    uint64_t each = 0;  // samples of a rank's batch, as the job file has them
    /// Samples of a batch cannot be told apart: one stands for all.
    bool batch_is_sample = false;
};

/// Adds format, samples, samples_per_file, sample_size, bs, direct, row_group and columns.
DataSetFit fit_data_set(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, FittedJob& job);

/// A stream: what of its records each loader's reads show.
struct StreamFit {
    uint64_t complete = 0;        // files that one loader read from front to back, and went on
    uint64_t per_file = 0;        // samples of such a file
    bool same = true;             // all of them
    double record = 0;            // mean bytes, with what surrounds it
    double record_error = 0;      // as a share: reads come in pieces
    std::vector<double> records;  // bytes between two computations; as exact as a read
    double variance = 0;          // of `records`
    uint64_t per_group = 0;       // parquet: samples of a row group
};
StreamFit fit_stream(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded);

}  // namespace reprise

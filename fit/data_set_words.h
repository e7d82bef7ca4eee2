// SPDX-License-Identifier: MIT
// What the fits of the formats share: words of the data set, and what they are fitted to.
#pragma once

#include <cstdio>
#include <string>

#include "fit/data_set_fit.h"
#include "fit/fitted_values.h"
#include "formats/support/quantity.h"

namespace reprise {

class DataSetWords {
public:
    DataSetWords(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, FittedJob& job,
                 DataSetFit& out)
        : trace_(trace), loop_(loop), loaded_(loaded), job_(job), out_(out) {
        for (const FileId file : trace_.data) {
            file_bytes_ += static_cast<double>(size_of(file));
        }
    }

protected:
    int64_t size_of(FileId file) const { return static_cast<int64_t>(trace_.tables.files[file].size); }
    uint64_t batches_of_epoch() const { return loop_.batches_per_epoch() * loop_.ranks.size(); }

    FittedWord& sizes(const FittedValues& values, const std::string& evidence) {
        FittedWord& word = job_.add("sample_size", values.distribution.text, evidence);
        word.mean_error = values.mean_error;
        word.deviation_error = values.deviation_error;
        word.ks = values.distribution.varies() ? values.ks : -1;
        if (!values.fits || !values.kind_sure) {
            word.evidence += !values.fits ? "; no kind of distribution fits well"
                                          : "; another kind of distribution would fit as well";
        }
        return word;
    }
    FittedWord& count(uint64_t samples, const std::string& evidence) {
        out_.samples = samples;
        return job_.add("samples", std::to_string(samples), evidence);
    }
    void per_file(uint64_t samples, const std::string& evidence) {
        if (trace_.data.size() > 1) {
            job_.add("samples_per_file", std::to_string(samples), evidence);
        }
    }
    /// "±1.2 %"
    static std::string error_text(double error) {
        char text[32];
        std::snprintf(text, sizeof text, "±%.2g %%", 100 * error);
        return text;
    }

    const JobTrace& trace_;
    const TrainingLoop& loop_;
    const LoadedSamples& loaded_;
    FittedJob& job_;
    DataSetFit& out_;
    double file_bytes_ = 0;  // of the data set
};

/// Files that hold records which are read in any order: HDF5, token files, Arrow, LMDB.
void fit_packed(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, FittedJob& job,
                DataSetFit& out);
/// Files that are read from front to back: TFRecord, tar, Parquet.
void fit_records(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, FittedJob& job,
                 DataSetFit& out);

}  // namespace reprise

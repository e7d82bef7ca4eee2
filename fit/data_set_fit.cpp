// SPDX-License-Identifier: MIT
#include "fit/data_set_fit.h"

#include "fit/data_set_words.h"

namespace reprise {
namespace {

class FilesFitter : DataSetWords {
public:
    using DataSetWords::DataSetWords;

    void fit() {
        std::vector<double> values;
        for (const FileId file : trace_.data) {
            values.push_back(static_cast<double>(size_of(file)));
        }
        const std::string seen = counted(values.size(), "file");
        count(values.size(), seen + " *" + trace_.ending);
        sizes(fit_values(std::move(values), 1, Distribution::Unit::bytes), "sizes of " + seen);
    }
};

}  // namespace

DataSetFit fit_data_set(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, FittedJob& job) {
    DataSetFit out;
    out.each = loaded.each;
    switch (loaded.format) {
        case SampleFormat::none:
            job.add("format", "none", "no task reads a data set");
            out.each = 1;
            return out;
        case SampleFormat::files: FilesFitter(trace, loop, loaded, job, out).fit(); break;
        case SampleFormat::hdf5:
        case SampleFormat::indexed:
        case SampleFormat::arrow:
        case SampleFormat::lmdb: fit_packed(trace, loop, loaded, job, out); break;
        case SampleFormat::tfrecord:
        case SampleFormat::tar:
        case SampleFormat::parquet: fit_records(trace, loop, loaded, job, out); break;
    }
    job.add("format", loaded.word, loaded.why);
    if (loaded.guessed) {
        job.cannot_see("format", "by how the files are read, not by their names");
    }
    if (loaded.piece != 0) {
        job.add("bs", std::to_string(loaded.piece), "the size that most bytes are asked for with");
    }
    if (loaded.pieces_or_samples && !loaded.computes_are_samples) {
        for (const char* word : {"samples", "sample_size", "batch", "samples_per_file", "bs", "shuffle"}) {
            job.cannot_see(word, "reads that go on where the one before ended may be pieces of a sample, or samples");
        }
    }
    if (loaded.direct) {
        job.add("direct", "1", "opened with O_DIRECT");
    }
    return out;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// The files of a training job's data set, and where each sample lies in them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"
#include "generate/job.h"

namespace reprise {

/// Where a sample lies. Of Parquet: the sample is one of a row group, which is read as a whole.
struct SamplePlace {
    uint64_t file = 0;
    int64_t offset = 0, size = 0;  // bytes; without what surrounds the sample in its record
};

/// Memory: 8 bytes for each file, and for each sample where sizes vary and samples are chosen in packed files.
class DataSet {
public:
    DataSet(const JobSection& section, const TrainingJob& job);

    uint64_t files() const { return sizes_.size(); }
    int64_t file_size(uint64_t file) const { return sizes_[file]; }
    int64_t bytes() const;
    /// Adds a row for each file; call once.
    void add_files(LogWriter& log);
    FileId file(uint64_t number) const { return first_ + static_cast<FileId>(number); }
    /// `indexed`: the index beside each file.
    FileId index(uint64_t number) const { return first_index_ + static_cast<FileId>(number); }
    int64_t index_size(uint64_t file) const;

    uint64_t file_of(uint64_t sample) const { return sample / job_.samples_per_file; }
    uint64_t first_sample(uint64_t file) const { return file * job_.samples_per_file; }
    uint64_t samples_of(uint64_t file) const;
    /// Samples whose size was drawn below the least.
    uint64_t sizes_below() const { return sizes_below_; }
    int64_t sample_size(uint64_t sample) const { return job_.sample_size.draw(seed_, sample); }
    /// Of a format whose samples are chosen (not is_stream()).
    SamplePlace place(uint64_t sample) const;

    /// `lmdb`: the pages from the root of the file's tree down to the sample's leaf, numbered from 0 in the file.
    std::vector<int64_t> tree_path(uint64_t sample) const;

    /// Bytes that a sample of `size` bytes takes in its file, and how many of them lie before it.
    int64_t record_size(int64_t size) const;
    int64_t record_head() const;
    /// Bytes before the first record, and after the last.
    int64_t head() const;
    int64_t tail(uint64_t file) const;

private:
    std::vector<int64_t> tree_levels() const;
    std::string name_of(uint64_t number, std::string_view extension) const;

    const JobSection& section_;
    const TrainingJob& job_;
    uint64_t seed_, sizes_below_ = 0;
    std::vector<int64_t> sizes_;    // of files, bytes
    std::vector<int64_t> offsets_;  // of samples in their file
    FileId first_ = 0, first_index_ = 0;
};

}  // namespace reprise

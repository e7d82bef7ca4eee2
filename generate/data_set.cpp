// SPDX-License-Identifier: MIT
#include "generate/data_set.h"

#include <algorithm>
#include <numeric>

namespace reprise {
namespace {

constexpr uint64_t kSizes = 0x5a3e;  // draws of sizes are apart from all others
constexpr int64_t kPage = 4096, kMetaPages = 2;
constexpr uint64_t kEntries = 64;  // of a page of LMDB's tree

int64_t rounded(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

DataSet::DataSet(const JobSection& section, const TrainingJob& job)
    : section_(section), job_(job), seed_(mixed_bits(section.seed, kSizes)), sizes_(job.files()) {
    const bool chosen = !is_stream(job.format) && job.sample_size.varies() && job.format != SampleFormat::files;
    if (chosen) {
        offsets_.resize(job.samples);
    }
    for (uint64_t number = 0; number < sizes_.size(); ++number) {
        const uint64_t first = first_sample(number), count = samples_of(number);
        int64_t at = head();
        if (job.sample_size.varies()) {
            for (uint64_t sample = first; sample < first + count; ++sample) {
                if (chosen) {
                    offsets_[sample] = at + record_head();
                }
                at += record_size(job.sample_size.draw(seed_, sample, &sizes_below_));
            }
        } else {
            at += static_cast<int64_t>(count) * record_size(sample_size(0));
        }
        sizes_[number] = at + tail(number);
    }
}

int64_t DataSet::bytes() const { return std::accumulate(sizes_.begin(), sizes_.end(), int64_t{0}); }

uint64_t DataSet::samples_of(uint64_t file) const {
    return std::min(job_.samples_per_file, job_.samples - first_sample(file));
}

SamplePlace DataSet::place(uint64_t sample) const {
    const uint64_t number = file_of(sample);
    const int64_t size = sample_size(sample);
    const auto within = static_cast<int64_t>(sample - first_sample(number));
    const int64_t offset = offsets_.empty() ? head() + within * record_size(size) + record_head() : offsets_[sample];
    return {number, offset, size};
}

int64_t DataSet::record_size(int64_t size) const {
    switch (job_.format) {
        case SampleFormat::tfrecord: return size + 16;              // length and two checksums
        case SampleFormat::tar: return 512 + rounded(size, 512);    // a header, whole sectors
        case SampleFormat::lmdb: return rounded(size + 16, kPage);  // overflow pages with a header
        case SampleFormat::none:
        case SampleFormat::files:
        case SampleFormat::hdf5:
        case SampleFormat::indexed:
        case SampleFormat::parquet:
        case SampleFormat::arrow: return size;
    }
    return size;
}

int64_t DataSet::record_head() const {
    switch (job_.format) {
        case SampleFormat::tfrecord: return 12;
        case SampleFormat::tar: return 512;
        case SampleFormat::lmdb: return 16;
        case SampleFormat::none:
        case SampleFormat::files:
        case SampleFormat::hdf5:
        case SampleFormat::indexed:
        case SampleFormat::parquet:
        case SampleFormat::arrow: return 0;
    }
    return 0;
}

/// Pages of each level of a file's tree, from the leaves up to the root.
std::vector<int64_t> DataSet::tree_levels() const {
    std::vector<int64_t> levels;
    for (uint64_t count = job_.samples_per_file; levels.empty() || count > 1;) {
        count = (count + kEntries - 1) / kEntries;
        levels.push_back(static_cast<int64_t>(count));
    }
    return levels;
}

std::vector<int64_t> DataSet::tree_path(uint64_t sample) const {
    std::vector<int64_t> path;
    int64_t first = kMetaPages;
    uint64_t entry = sample - first_sample(file_of(sample));
    for (const int64_t level : tree_levels()) {
        entry /= kEntries;
        path.insert(path.begin(), first + static_cast<int64_t>(entry));
        first += level;
    }
    return path;
}

int64_t DataSet::head() const {
    switch (job_.format) {
        case SampleFormat::hdf5: return 2048;
        case SampleFormat::parquet: return 4;
        case SampleFormat::arrow: return 8;
        case SampleFormat::lmdb: {
            const std::vector<int64_t> levels = tree_levels();
            return (kMetaPages + std::accumulate(levels.begin(), levels.end(), int64_t{0})) * kPage;
        }
        case SampleFormat::none:
        case SampleFormat::files:
        case SampleFormat::tfrecord:
        case SampleFormat::tar:
        case SampleFormat::indexed: return 0;
    }
    return 0;
}

int64_t DataSet::tail(uint64_t file) const {
    const auto samples = static_cast<int64_t>(samples_of(file));
    switch (job_.format) {
        case SampleFormat::tar:
        case SampleFormat::arrow: return 1024;
        case SampleFormat::parquet: {
            const int64_t groups =
                (samples + static_cast<int64_t>(job_.row_group) - 1) / static_cast<int64_t>(job_.row_group);
            return 512 + groups * static_cast<int64_t>(job_.columns) * 100 + 8;
        }
        case SampleFormat::none:
        case SampleFormat::files:
        case SampleFormat::tfrecord:
        case SampleFormat::hdf5:
        case SampleFormat::indexed:
        case SampleFormat::lmdb: return 0;
    }
    return 0;
}

int64_t DataSet::index_size(uint64_t file) const {
    // As of Megatron: a header, then for each sequence its length (4 bytes) and its place (8).
    return 34 + static_cast<int64_t>(samples_of(file)) * 12;
}

std::string DataSet::name_of(uint64_t number, std::string_view extension) const {
    std::string digits = std::to_string(number);
    digits.insert(0, digits.size() < 7 ? 7 - digits.size() : 0, '0');
    return section_.directory + "/" + section_.name + "-" + digits + std::string(extension);
}

void DataSet::add_files(LogWriter& log) {
    const auto add = [&](std::string_view extension, auto size_of) {
        FileId first = 0;
        for (uint64_t number = 0; number < files(); ++number) {
            FileRow row;
            row.path = log.intern(name_of(number, extension));
            row.size = static_cast<uint64_t>(size_of(number));
            row.size_exact = true;
            row.type = FileType::regular;
            row.role = Role::dataset;
            row.origin = Origin::existed;
            row.mode = 0644;
            const FileId id = log.add_file(row);
            first = first == 0 ? id : first;
        }
        return first;
    };
    first_ = add(job_.extension, [&](uint64_t number) { return file_size(number); });
    if (job_.format == SampleFormat::indexed) {
        first_index_ = add(".idx", [&](uint64_t number) { return index_size(number); });
    }
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "generate/sample_reader.h"

#include <algorithm>
#include <array>

namespace reprise {
namespace {

constexpr int64_t kPage = 4096;

/// What libhdf5 reads of a file with one data set before its data: superblock, object headers, the tree of groups and
/// the heap of names (offset, bytes).
constexpr std::array<std::pair<int64_t, int64_t>, 8> kHdf5Head = {
    {{0, 8}, {0, 16}, {16, 80}, {96, 512}, {680, 512}, {136, 544}, {1072, 328}, {800, 512}}};

}  // namespace

void SampleReader::close(TaskWriter& task) {
    if (file_ != kNone) {
        task.close(opened_);
        file_ = kNone;
    }
    for (const auto& [file, opened] : ahead_) {
        task.close(opened);
    }
    ahead_.clear();
    for (const Mapped& each : maps_of_file_) {
        task.unmap(each.map, data_.file_size(each.file));
        if (each.index != 0) {
            task.unmap(each.index, data_.index_size(each.file));
        }
    }
    maps_of_file_.clear();
}

void SampleReader::open(TaskWriter& task, uint64_t file) {
    if (file_ == file) {
        return;
    }
    if (file_ != kNone) {
        task.close(opened_);
    }
    file_ = file;
    at_ = record_ = 0;
    group_ = kNone;
    const auto known = std::find_if(ahead_.begin(), ahead_.end(), [&](const auto& each) { return each.first == file; });
    if (known != ahead_.end()) {
        opened_ = known->second;
        ahead_.erase(known);
        at_ = std::min(job_.bs, data_.file_size(file));
        return;
    }
    opened_ = task.open(data_.file(file), O_RDONLY | O_CLOEXEC | (job_.direct ? O_DIRECT : 0));
    task.fstat(opened_);
    if (job_.format == SampleFormat::hdf5) {
        for (const auto& [offset, bytes] : kHdf5Head) {
            task.move(OpKind::pread, opened_, offset, bytes);
        }
    } else if (job_.format == SampleFormat::parquet) {
        const int64_t size = data_.file_size(file), footer = data_.tail(file);
        task.move(OpKind::pread, opened_, size - 8, 8);
        task.move(OpKind::pread, opened_, size - footer, footer - 8);
    }
}

void SampleReader::pieces(TaskWriter& task, int64_t from, int64_t to) {
    const int64_t whole = (to - from + kPage - 1) / kPage * kPage;
    const int64_t piece = job_.bs != 0 ? job_.bs : job_.direct ? whole : to - from;
    for (int64_t at = from; at < to; at += piece) {
        task.move(OpKind::pread, opened_, at, std::min(piece, to - at), job_.direct ? piece : 0);
    }
}

void SampleReader::read(TaskWriter& task, uint64_t sample) {
    const SamplePlace place = data_.place(sample);
    if (is_mapped(job_.format)) {
        return touch(task, sample, place);
    }
    open(task, place.file);
    pieces(task, place.offset, place.offset + place.size);
    if (data_.samples_of(place.file) == 1) {
        task.close(opened_);
        file_ = kNone;
    }
}

const SampleReader::Mapped& SampleReader::mapped(TaskWriter& task, uint64_t file) {
    const auto found =
        std::find_if(maps_of_file_.begin(), maps_of_file_.end(), [&](const Mapped& each) { return each.file == file; });
    if (found != maps_of_file_.end()) {
        return *found;
    }
    Mapped made;
    made.file = file;
    const auto map = [&](FileId id, int64_t size) {
        const OpenFile opened = task.open(id, O_RDONLY | O_CLOEXEC);
        task.fstat(opened);
        const uint32_t number = task.map(opened, size, ++maps_);
        task.close(opened);
        return number;
    };
    if (job_.format == SampleFormat::indexed) {
        made.index = map(data_.index(file), data_.index_size(file));
        task.touch(made.index, 0, data_.index_size(file));
    }
    made.map = map(data_.file(file), data_.file_size(file));
    return maps_of_file_.emplace_back(made);
}

void SampleReader::touch(TaskWriter& task, uint64_t sample, const SamplePlace& place) {
    const uint32_t map = mapped(task, place.file).map;
    if (job_.format == SampleFormat::lmdb) {
        task.touch(map, 0, kPage);
        for (const int64_t page : data_.tree_path(sample)) {
            task.touch(map, page * kPage, kPage);
        }
    }
    task.touch(map, place.offset, place.size);
}

void SampleReader::read_on(TaskWriter& task, uint64_t sample) {
    job_.format == SampleFormat::parquet ? row_group(task, sample) : stream(task, sample);
}

void SampleReader::look_ahead(TaskWriter& task, uint64_t file) {
    const bool known = file_ == file ||
                       std::any_of(ahead_.begin(), ahead_.end(), [&](const auto& each) { return each.first == file; });
    if (known) {
        return;
    }
    const OpenFile opened = task.open(data_.file(file), O_RDONLY | O_CLOEXEC | (job_.direct ? O_DIRECT : 0));
    task.fstat(opened);
    piece_of_stream(task, opened, 0, data_.file_size(file));
    ahead_.emplace_back(file, opened);
}

bool SampleReader::will_read(uint64_t sample) const {
    return file_ != data_.file_of(sample) || sample != next_ ||
           record_ + data_.record_size(data_.sample_size(sample)) > at_;
}

void SampleReader::piece_of_stream(TaskWriter& task, const OpenFile& opened, int64_t at, int64_t file_size) {
    task.move(OpKind::pread, opened, at, std::min(job_.bs, file_size - at), job_.direct ? job_.bs : 0);
}

void SampleReader::stream(TaskWriter& task, uint64_t sample) {
    const uint64_t file = data_.file_of(sample);
    const bool fresh = file_ != file || sample != next_;
    if (file_ == file && fresh) {
        task.close(opened_);  // another epoch begins
        file_ = kNone;
    }
    open(task, file);
    next_ = sample + 1;
    if (fresh) {
        record_ = data_.head();
        if (job_.sample_size.varies()) {
            for (uint64_t before = data_.first_sample(file); before < sample; ++before) {
                record_ += data_.record_size(data_.sample_size(before));
            }
        } else {
            record_ +=
                static_cast<int64_t>(sample - data_.first_sample(file)) * data_.record_size(data_.sample_size(0));
        }
        at_ = std::max(at_, record_ / job_.bs * job_.bs);
    }
    record_ += data_.record_size(data_.sample_size(sample));
    const int64_t size = data_.file_size(file);
    while (at_ < record_) {
        piece_of_stream(task, opened_, at_, size);
        at_ += std::min(job_.bs, size - at_);
    }
}

void SampleReader::row_group(TaskWriter& task, uint64_t sample) {
    const uint64_t file = data_.file_of(sample);
    open(task, file);
    const uint64_t group = (sample - data_.first_sample(file)) / job_.row_group;
    if (group == group_) {
        return;
    }
    group_ = group;
    const uint64_t samples = data_.samples_of(file), first = group * job_.row_group;
    const auto part = [&](uint64_t before) {
        const int64_t data = data_.file_size(file) - data_.head() - data_.tail(file);
        return static_cast<int64_t>(static_cast<double>(data) * static_cast<double>(before) /
                                    static_cast<double>(samples));
    };
    const int64_t from = data_.head() + part(first);
    const int64_t to = data_.head() + part(std::min(first + job_.row_group, samples));
    const auto columns = static_cast<int64_t>(job_.columns);
    for (int64_t column = 0; column < columns; ++column) {
        const int64_t begin = from + (to - from) * column / columns, end = from + (to - from) * (column + 1) / columns;
        if (end > begin) {
            task.move(OpKind::pread, opened_, begin, end - begin);
        }
    }
}

}  // namespace reprise

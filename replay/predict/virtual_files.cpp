// SPDX-License-Identifier: MIT
// What the calls of a prediction change about files: their names, sizes and holes.
#include <fcntl.h>
#include <linux/falloc.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "replay/predict/virtual_calls.h"

namespace reprise {

/// What no device holds of a file when the job begins. None where its size is not known.
std::optional<RangeSet> VirtualCalls::first_holes(FileId file) const {
    const auto recorded = first_holes_.find(file);
    RangeSet holes = recorded == first_holes_.end() ? RangeSet() : recorded->second;
    const FileRow* const row = file < tables_.files.size() ? &tables_.files[file] : nullptr;
    if (row == nullptr || row->origin != Origin::existed || !row->size_exact) {
        return recorded == first_holes_.end() ? std::nullopt : std::optional(std::move(holes));
    }
    const auto size = static_cast<uint64_t>(size_of(file));
    holes.add((size + RangeSet::kPage - 1) / RangeSet::kPage * RangeSet::kPage, uint64_t{VirtualHoles::kEnd});
    return holes;
}

/// The first time that a file is opened which that makes.
void VirtualCalls::make_empty(FileId file) {
    const bool made = file < tables_.files.size() && tables_.files[file].origin == Origin::created;
    if (made && data_.of(file) == file && !storage_.holes().knows(file)) {
        storage_.cut_out(file, 0, VirtualHoles::kEnd);
    }
}

void VirtualCalls::truncate(FileId file, int64_t size, int64_t now) {
    if (size == 0) {
        storage_.drop(file, now);
    }
    storage_.cut_out(file, size, VirtualHoles::kEnd);
}

void VirtualCalls::allocate(FileId file, int64_t from, int64_t bytes, int64_t mode) {
    if ((mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)) != 0) {
        storage_.holes().forget(file);
    } else if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0 && from >= 0 && bytes > 0) {
        storage_.cut_out(file, from, bytes < VirtualHoles::kEnd - from ? from + bytes : VirtualHoles::kEnd);
    }
}

/// Blocks of one file become those of another one, too.
void VirtualCalls::clone(const OpBlock& b, size_t i, int64_t moved) {
    const int64_t bytes = std::max(moved, (b.flags[i] & kCopyClones) != 0 ? b.size[i] : 0), at = b.offset2[i];
    if (at < 0 || bytes <= 0 || bytes > INT64_MAX - at) {
        storage_.holes().forget(data_of(b.handle2[i]));  // all of it
    } else {
        storage_.holes().fill(data_of(b.handle2[i]), at, at + bytes);
    }
}

/// The file whose name another one is given.
void VirtualCalls::forget_replaced(FileId by) {
    if (const FileId before = data_.before(by); before != by && data_.of(before) != data_.of(by)) {
        storage_.forget(data_.of(before));
    }
}

/// What a call changes about which name leads to which data, and where that has holes.
void VirtualCalls::name(const OpBlock& b, size_t i, int64_t now) {
    switch (static_cast<OpKind>(b.kind[i])) {
        case OpKind::rename:
            if (limited_) {
                forget_replaced(b.file2[i]);
            }
            data_.renamed(b.file[i], b.file2[i]);
            break;
        case OpKind::link: data_.linked(b.file[i], b.file2[i]); break;
        case OpKind::unlink:
            if (data_.removed(b.file[i])) {
                storage_.drop(data_.of(b.file[i]), now);
            }
            break;
        case OpKind::open:
            if ((b.flags[i] & int64_t{O_TRUNC}) != 0) {
                truncate(data_.of(b.file[i]), 0, now);
            } else if ((b.flags[i] & int64_t{O_CREAT}) != 0 ||
                       (b.flags[i] & int64_t{O_TMPFILE}) == int64_t{O_TMPFILE}) {
                make_empty(file_of(b.handle[i]));
            }
            break;
        case OpKind::truncate: truncate(data_.of(b.file[i]), b.size[i], now); break;
        case OpKind::ftruncate: truncate(data_of(b.handle[i]), b.size[i], now); break;
        case OpKind::fallocate: allocate(data_of(b.handle[i]), b.offset[i], b.size[i], b.flags[i]); break;
        default: break;
    }
}

/// Whether a copy shares the blocks. Where the model does not name its file system, as it did in the recording.
bool VirtualCalls::clones(const OpBlock& b, size_t i, int64_t moved) const {
    const bool did = (b.flags[i] & kCopyClones) != 0;
    if (model_.file_system.empty()) {
        return did;
    }
    constexpr std::array<std::string_view, 5> kThey = {"btrfs", "xfs", "bcachefs", "ocfs2", "zfs"};
    if (std::find(kThey.begin(), kThey.end(), model_.file_system) == kThey.end()) {
        return false;
    }
    // copy_file_range clones what is whole blocks, up to the end of the file.
    const auto whole = [](int64_t bytes) { return bytes % kPageBytes == 0; };
    const int64_t size = size_of(file_of(b.handle[i]));
    return did || (static_cast<OpKind>(b.kind[i]) == OpKind::copy_file_range && moved > 0 && whole(b.offset[i]) &&
                   whole(b.offset2[i]) && (whole(moved) || (size > 0 && b.offset[i] >= size - moved)));
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Writes to the storage of a prediction, and what they have to read before.
#include <algorithm>
#include <array>
#include <string_view>

#include "replay/predict/virtual_storage.h"

namespace reprise {

/// Of file systems that are not on a device here.
bool VirtualStorage::sends_parts(const std::string& file_system) {
    constexpr std::array<std::string_view, 7> kThey = {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "tmpfs"};
    return file_system.starts_with("fuse") || std::find(kThey.begin(), kThey.end(), file_system) != kThey.end();
}

void VirtualStorage::cut_out(FileId file, int64_t from, int64_t to) {
    holes_.make(file, from, to);
    const auto found = cached_.find(file);
    if (!room_ || found == cached_.end()) {
        return;
    }
    const int64_t first = pages_of(std::clamp<int64_t>(from, 0, kMostOffset)),
                  last = std::min(to, kMostOffset) / kPageBytes;
    found->second.each_range([&](int64_t begin, int64_t end) {
        if (std::max(begin, first) < std::min(end, last)) {
            room_->forget(file, std::max(begin, first), std::min(end, last));
        }
    });
}

/// Of what a write replaces in part, the pages that are not there. When they are.
int64_t VirtualStorage::read_parts(FileId file, int64_t offset, int64_t bytes, int64_t now) {
    if (sends_parts_ || !holes_.knows(file)) {
        return now;
    }
    VirtualPages& cache = cached_[file];
    const auto read = [&](int64_t page) {
        if (!cache.has(page) && !holes_.is_hole(file, page * kPageBytes)) {
            fetch_data(file, cache, page, page + 1, now);
        }
        const int64_t there = cache.there(page, now);
        time_ns += there - now;
        now = there;
    };
    const int64_t end = offset + bytes, first = offset / kPageBytes, last = end / kPageBytes;
    if (offset % kPageBytes != 0) {
        read(first);
    }
    if (end % kPageBytes != 0 && (last != first || offset % kPageBytes == 0)) {
        read(last);
    }
    return now;
}

int64_t VirtualStorage::write(FileId file, int64_t offset, int64_t bytes, int64_t now) {
    int64_t held = now;
    if (bytes > 0) {
        const bool placed = offset >= 0 && offset < kMostOffset;
        now = placed && !warm_ ? read_parts(file, offset, bytes, now) : now;
        held = write_back_.dirty(file, offset, bytes, now);
        if (placed) {
            holes_.fill(file, offset, offset + bytes);
        } else {
            holes_.forget(file);
        }
        if (placed && !warm_) {
            const int64_t from = offset / kPageBytes, to = pages_of(offset + bytes);
            cached_[file].add(from, to, now, now);
            if (room_) {
                room_->write(file, from, to, now);
            }
        }
    }
    const int64_t took = bytes <= 0 ? model_.call_ns : model_.write.empty() ? cached_ns(bytes) : model_.write_ns(bytes);
    const int64_t within = offset >= 0 ? offset % kPageBytes : 0;
    const bool parts = within != 0 && bytes > kPageBytes - within;
    return std::max(held, now + took + (parts ? model_.write_part_ns : 0));
}

int64_t VirtualStorage::write_direct(int64_t bytes, int64_t now, VirtualDevice::By by) {
    now += model_.call_ns;
    return bytes > 0 ? device_.write(bytes, now, write_back_, by) : now;
}

}  // namespace reprise

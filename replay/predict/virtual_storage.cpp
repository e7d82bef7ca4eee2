// SPDX-License-Identifier: MIT
#include "replay/predict/virtual_storage.h"

#include <algorithm>

namespace reprise {
namespace {

// Malformed logs read anywhere; beyond this offset reads are not cached.
constexpr int64_t kMostPieces = int64_t{1} << 24;
constexpr size_t kMostChannels = 4096;

int64_t at_rate(int64_t bytes, double per_second) {
    return static_cast<int64_t>(static_cast<double>(bytes) * 1e9 / per_second);
}

}  // namespace

VirtualStorage::VirtualStorage(const StorageModel& model, bool warm)
    : model_(model),
      warm_(warm),
      channel_free_(std::min(static_cast<size_t>(std::max(model.parallelism, 1)), kMostChannels)) {}

int64_t VirtualStorage::cached_ns(int64_t bytes) const {
    return model_.call_ns + at_rate(bytes, model_.cached_bytes_per_s);
}

int64_t VirtualStorage::fetch(int64_t bytes, int64_t now) {
    const auto channel = std::min_element(channel_free_.begin(), channel_free_.end());
    const int64_t begin = std::max(now, *channel);
    // A read also waits for its share of the bandwidth of the device.
    pipe_free_ = std::max(pipe_free_, begin) + at_rate(bytes, model_.read_bytes_per_s);
    const int64_t end = std::max(begin + model_.read_ns(bytes), pipe_free_);
    *channel = end;
    ++reads;
    bytes_read += static_cast<uint64_t>(bytes);
    time_ns += end - now;
    return end;
}

int64_t VirtualStorage::read(FileId file, int64_t offset, int64_t bytes, int64_t size, int64_t now) {
    if (warm_ || bytes <= 0 || offset < 0) {
        return now + cached_ns(std::max<int64_t>(bytes, 0));
    }
    offset = std::min(offset, kMostPieces * kPiece);
    const int64_t last = std::min((offset + bytes - 1) / kPiece, kMostPieces);
    std::vector<bool>& cached = cached_[file];
    if (static_cast<int64_t>(cached.size()) <= last) {
        cached.resize(static_cast<size_t>(last) + 1);
    }
    int64_t missing = 0;
    for (int64_t piece = offset / kPiece; piece <= last; ++piece) {
        if (!cached[static_cast<size_t>(piece)]) {
            cached[static_cast<size_t>(piece)] = true;
            // Of a file of unknown size only what is asked for is sure to be there.
            const int64_t end = std::min(size > 0 ? size : offset + bytes, (piece + 1) * kPiece);
            missing += std::clamp<int64_t>(end - piece * kPiece, 0, kPiece);
        }
    }
    const int64_t there = missing > 0 ? fetch(missing, now) : now;
    return there + cached_ns(bytes);
}

int64_t VirtualStorage::write(FileId file, int64_t offset, int64_t bytes, int64_t now) {
    if (bytes > 0) {
        dirty_free_ = std::max(dirty_free_, now) + at_rate(bytes, model_.write_bytes_per_s);
        offset = std::clamp<int64_t>(offset, 0, kMostPieces * kPiece);
        const int64_t last = std::min((offset + bytes - 1) / kPiece, kMostPieces);
        std::vector<bool>& cached = cached_[file];
        if (static_cast<int64_t>(cached.size()) <= last) {
            cached.resize(static_cast<size_t>(last) + 1);
        }
        for (int64_t piece = offset / kPiece; piece <= last; ++piece) {
            cached[static_cast<size_t>(piece)] = true;
        }
    }
    return now + cached_ns(std::max<int64_t>(bytes, 0));
}

int64_t VirtualStorage::sync(int64_t now) const { return std::max(now, dirty_free_) + model_.fsync_ns; }

}  // namespace reprise

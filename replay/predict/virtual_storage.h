// SPDX-License-Identifier: MIT
// The storage system of a prediction: a page cache in front of a device with limited parallelism and bandwidth.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "calibrate/storage_model.h"
#include "formats/oplog/op.h"

namespace reprise {

class VirtualStorage {
public:
    VirtualStorage(const StorageModel& model, bool warm);

    /// When a read of [offset, offset + bytes) of a file of `size` bytes that begins at `now` is over. Calls come in
    /// the order of their begins.
    int64_t read(FileId file, int64_t offset, int64_t bytes, int64_t size, int64_t now);
    /// A write into the cache.
    int64_t write(FileId file, int64_t offset, int64_t bytes, int64_t now);
    /// Until everything written so far is on the device.
    [[nodiscard]] int64_t sync(int64_t now) const;

    uint64_t reads = 0, bytes_read = 0;
    int64_t time_ns = 0;  // of those reads

private:
    static constexpr int64_t kPiece = int64_t{128} << 10;  // what read-ahead fetches at once
    int64_t cached_ns(int64_t bytes) const;
    int64_t fetch(int64_t bytes, int64_t now);

    const StorageModel& model_;
    const bool warm_;
    std::unordered_map<FileId, std::vector<bool>> cached_;  // pieces of each file
    std::vector<int64_t> channel_free_;                     // when each of the device's channels is free
    int64_t pipe_free_ = 0, dirty_free_ = 0;                // when what all share is
};

}  // namespace reprise

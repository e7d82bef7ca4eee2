// SPDX-License-Identifier: MIT
// What the page cache of a prediction has yet to write: kept until a sync, until it is old, or until there is too much.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>

#include "calibrate/storage_model.h"
#include "formats/oplog/op.h"
#include "formats/support/range_set.h"

namespace reprise {

/// As Linux does it: dirty data stays in memory for `dirty_expire_ns`; beyond `dirty_background_bytes` of it the oldest
/// is written, and well beyond that those who write are held up. Calls come in the order of `now`, ns.
class WriteBack {
public:
    explicit WriteBack(const StorageModel& model)
        : model_(model), request_(std::max<int64_t>(model.request_bytes, RangeSet::kPage)) {}

    /// A file has so many more dirty bytes, from `offset` on (less than 0: after what it has). Until when the writer is
    /// held up; `now` where it is not.
    int64_t dirty(FileId file, int64_t offset, int64_t bytes, int64_t now);
    /// When all that is dirty of the file, or on its way, is written.
    int64_t sync(FileId file, int64_t now);
    /// Of a sync that has something to write, the time of its first page: measured syncs include it.
    int64_t first_page_ns(FileId file) const;
    int64_t sync_all(int64_t now);
    /// The file's data goes away before it is written.
    void drop(FileId file, int64_t now);
    /// When bytes that go past the cache are written: after what the device has to write already.
    int64_t write(int64_t bytes, int64_t begin) { return write(bytes, requests(bytes), begin); }
    /// How long so many blocks take, one by one, ns.
    int64_t blocks_ns(int64_t blocks) const;
    /// When the device has written what it was sent, ns.
    int64_t free() const { return free_; }
    /// When so many blocks of the journal are written, each by a request: after the data.
    int64_t write_blocks(int64_t blocks, int64_t begin) { return write(blocks * 4096, blocks, begin); }
    /// The same where the device is known to write so many bytes past the cache in a second, in requests of any size.
    int64_t write_direct(int64_t bytes, double per_s, int64_t begin);

private:
    struct File {
        int64_t dirty = 0;    // bytes, those that are written again before they are sent each time
        int64_t since = 0;    // ns, the oldest of them
        int64_t written = 0;  // ns, when what was sent to the device is there
        int64_t end = 0;      // of what was written so far, bytes
        RangeSet pages;       // dirty
    };
    int64_t requests(int64_t bytes) const { return (bytes + request_ - 1) / request_; }
    int64_t write(int64_t bytes, int64_t requests, int64_t begin);
    void expire(int64_t now);
    void send(FileId id, File& file, int64_t bytes, int64_t now);

    const StorageModel& model_;
    const int64_t request_;  // bytes
    std::unordered_map<FileId, File> files_;
    std::set<std::pair<int64_t, FileId>> oldest_;  // by `since`: the dirty ones
    int64_t dirty_ = 0;                            // bytes of all files
    int64_t free_ = 0;                             // when the device has written what it was sent, ns
};

}  // namespace reprise

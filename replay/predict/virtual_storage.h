// SPDX-License-Identifier: MIT
// The storage system of a prediction: a page cache, filled as Linux fills it, in front of a device with limits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calibrate/storage_model.h"
#include "formats/oplog/op.h"
#include "replay/predict/journal.h"
#include "replay/predict/page_cache.h"
#include "replay/predict/read_ahead.h"
#include "replay/predict/virtual_device.h"
#include "replay/predict/virtual_holes.h"
#include "replay/predict/virtual_pages.h"
#include "replay/predict/write_back.h"

namespace reprise {

/// Pages of a file that a task needs one after the other, by a read or by touching a mapping. It goes on in steps, as
/// others read meanwhile what it needs next, or stand before it at the device.
struct PageWalk {
    enum class By : uint8_t {
        read,
        touch,     // each page is a fault that the recording had
        populate,  // all pages of a range, those that one fault maps together
    };
    struct Range {
        int64_t from = 0, to = 0;  // pages
        MapAdvice advice{};
    };
    By by = By::read;
    bool writes = false;   // faults that write map nothing around them
    bool dirties = false;  // and what they write is the file's
    FileId file = 0;
    HandleId handle = 0;        // whose read-ahead state
    uint32_t map = 0;           // touch, populate: by which mapping; 0: a call
    int64_t size = 0;           // bytes of the file; 0: unknown
    std::vector<Range> ranges;  // in order
    int64_t bytes = 0;          // read: to be copied
    int64_t page_ns = 0;        // touch, populate: of a fault as recorded, with what it waited for
    int64_t last_page = 0;      // read: where it ends
    int64_t again = -1;         // read: its first page where the read before ended in the middle of that

    bool done = false;
    bool fetched = false;  // asked the device for something, or waited for it

    // How far it is:
    size_t range = 0;
    int64_t page = -1;
    bool waited = false;  // for the page at hand
    bool asked = false;   // so that something is read
    int64_t worked = 0;   // ns of its own that have not passed yet
    int64_t copied = 0;   // bytes
};

class VirtualStorage {
public:
    /// `policy`: how pages leave where limit() says that there is no room; none: it is never called.
    VirtualStorage(const StorageModel& model, bool warm, std::optional<PageCachePolicy> policy = {});
    VirtualStorage(const VirtualStorage&) = delete;
    VirtualStorage& operator=(const VirtualStorage&) = delete;

    /// So many bytes for the page cache from now on.
    void limit(int64_t bytes, int64_t now);
    /// A mapping is gone.
    void unmap(uint32_t map);

    /// Goes on with a walk as far as it gets by `now`: to its end, which `done` tells, or to where time has to pass.
    /// Returns until when. Calls of all tasks come in the order of `now`.
    int64_t go_on(PageWalk& walk, int64_t now);
    /// A walk that reads bytes [offset, offset + bytes).
    PageWalk reading(FileId file, HandleId handle, int64_t offset, int64_t bytes, int64_t size) const;
    /// Advice that bytes [offset, offset + bytes) will be needed: what is missing is asked for. How long that takes who
    /// asks, ns (StorageModel::inline_reads).
    int64_t prefetch(FileId file, HandleId handle, int64_t offset, int64_t bytes, int64_t size, int64_t now);
    /// POSIX_FADV_* that says how an instance reads.
    void set_reading(HandleId handle, int advice);

    /// A write into the cache: it may be held up until there is room for it. Of a page that is not there and of which
    /// it replaces a part, the rest is read before.
    int64_t write(FileId file, int64_t offset, int64_t bytes, int64_t now);
    /// Past the cache (O_DIRECT). A model without rows by depth has no latency of writes: one takes as long as a read
    /// of its size.
    int64_t read_direct(int64_t bytes, int64_t now, VirtualDevice::By by = VirtualDevice::By::call);
    int64_t write_direct(int64_t bytes, int64_t now, VirtualDevice::By by = VirtualDevice::By::call);
    /// Requests of `bytes` each that are asked for at once: when the first `needed` of them are over.
    int64_t read_metadata(uint32_t requests, uint32_t needed, int64_t bytes, int64_t now);
    const VirtualDevice& device() const { return device_; }
    /// What names and sizes that change have a sync write (calls tell).
    Journal& journal() { return journal_; }
    /// What the device would take for a journal like ext4's, where that of this file system is not known, ns.
    int64_t unknown_journal_ns() const { return write_back_.blocks_ns(journal_.unknown()); }
    /// Until everything that was written to the file so far, to any file, is on the device.
    int64_t sync(FileId file, int64_t now) {
        const int64_t first = write_back_.first_page_ns(file);
        return beside_syncs(now, log(journal_.sync(file), std::max(write_back_.sync(file, now), now + first), first));
    }
    /// Pages of a mapping that were clean are written. Until when the writer is held up; `now` where it is not.
    int64_t write_mapped(FileId file, int64_t offset, int64_t bytes, int64_t now) {
        return write_back_.dirty(file, offset, bytes, now);
    }
    int64_t sync_all(int64_t now) { return log(journal_.sync_all(), write_back_.sync_all(now), 0); }
    /// When that data is there, without what belongs to it (sync_file_range).
    int64_t write_out(FileId file, int64_t now) { return write_back_.sync(file, now); }
    /// What no device holds of files: nothing is asked for it.
    VirtualHoles& holes() { return holes_; }
    /// How many bytes of [offset, offset + bytes) the device holds.
    int64_t data_bytes(FileId file, int64_t offset, int64_t bytes);
    /// What was written to the file goes away, and need not get to the device.
    void drop(FileId file, int64_t now) {
        write_back_.drop(file, now);
        forget(file);
    }
    /// [from, to) of the file gets a hole.
    void cut_out(FileId file, int64_t from, int64_t to);
    /// Whole pages of these bytes leave the cache (POSIX_FADV_DONTNEED). Where the file has something to write, that
    /// begins, and all of it stays.
    void drop_cached(FileId file, int64_t offset, int64_t bytes, int64_t now);
    /// What is cached of the file takes no room any more.
    void forget(FileId file);

    /// Bytes that left the page cache while they were mapped.
    uint64_t left_mapped() const { return room_ ? room_->left_mapped() * static_cast<uint64_t>(kPageBytes) : 0; }

    uint64_t reads = 0, bytes_read = 0;
    uint64_t dropped_bytes = 0;  // by drop_cached()
    int64_t time_ns = 0;         // that tasks waited for reads
    int64_t journal_ns = 0;      // the device's, for the journal

private:
    int64_t cached_ns(int64_t bytes) const;
    int64_t copy_ns(int64_t bytes) const;
    ReadAhead& state_of(HandleId handle);
    /// Calls use(rules) with the rules for one file and instance, whose requests go to the device at `now`.
    template <class Use>
    void ahead(FileId file, HandleId handle, int64_t end, int64_t now, Use use);
    int64_t fetch(int64_t bytes, int64_t now, VirtualDevice::By by = VirtualDevice::By::call);
    int64_t beside_syncs(int64_t now, int64_t end);
    int64_t write_journal(int64_t blocks, int64_t now);
    int64_t log(Journal::Logged logged, int64_t now, int64_t done_ns);
    int64_t asking() { return std::exchange(asked_ns_, 0); }
    void fetch_data(FileId file, VirtualPages& cache, int64_t from, int64_t to, int64_t now);
    int64_t read_parts(FileId file, int64_t offset, int64_t bytes, int64_t now);
    int64_t go_on_reading(PageWalk& walk, int64_t now);
    int64_t go_on_touching(PageWalk& walk, int64_t now);
    bool fault(PageWalk& walk, const PageWalk::Range& range, int64_t now);
    void map_around(PageWalk& walk, int64_t now);
    /// Pages that a call uses, or a fault maps.
    void use(PageWalk& walk, int64_t from, int64_t to);
    void add(FileId file, VirtualPages& cache, int64_t from, int64_t to, int64_t there, int64_t now);
    void next_page(PageWalk& walk, int64_t now);
    static bool enter(PageWalk& walk);

    static bool sends_parts(const std::string& file_system);
    static int64_t pages_of(int64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes; }
    // Malformed logs read anywhere; beyond this offset nothing is cached.
    static constexpr int64_t kMostOffset = VirtualPages::kMostPages * kPageBytes / 2;

    const StorageModel& model_;
    const bool warm_;
    const ReadAheadRules::Kind kind_;
    const bool sends_parts_;  // of pages to its device, which others read first
    VirtualDevice device_;
    WriteBack write_back_;
    Journal journal_;
    const DepthCurve syncs_by_depth_;
    InFlightWork syncs_;
    std::unordered_map<FileId, VirtualPages> cached_;
    std::optional<PageCache> room_;  // which of them leave; none: all stay
    std::unordered_map<HandleId, ReadAhead> states_;
    VirtualHoles holes_;
    int64_t asked_ns_ = 0;  // that requests of the call at hand took who made them; see asking()
};

}  // namespace reprise

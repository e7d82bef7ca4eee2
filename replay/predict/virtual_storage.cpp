// SPDX-License-Identifier: MIT
#include "replay/predict/virtual_storage.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace reprise {
namespace {

// A fault maps what is in the cache of so many pages around it (fault_around_bytes: 64 KiB).
constexpr int64_t kAroundPages = 16;
// That one folio has on x86-64: a huge page.
constexpr int64_t kMostFolio = (int64_t{2} << 20) / kPageBytes;
// A fault takes about a microsecond where the page is there, some more where it makes a request or sleeps: a window of
// pages is allocated. A recorded one that took longer waited for its storage.
constexpr int64_t kMostFault = 4'000, kMostAsking = 20'000;  // ns

int64_t at_rate(int64_t bytes, double per_second) {
    return static_cast<int64_t>(static_cast<double>(bytes) * 1e9 / per_second);
}
/// As of Linux 6.18.
bool has_large_folios(const std::string& file_system) {
    constexpr std::array<std::string_view, 8> kThey = {"ext4", "xfs",  "erofs", "bcachefs",
                                                       "nfs",  "nfs4", "cifs",  "smb3"};
    return std::find(kThey.begin(), kThey.end(), file_system) != kThey.end();
}

}  // namespace

VirtualStorage::VirtualStorage(const StorageModel& model, bool warm, std::optional<PageCachePolicy> policy)
    : model_(model),
      warm_(warm),
      kind_{std::max<int64_t>(model.request_bytes / kPageBytes, 1), has_large_folios(model.file_system)},
      sends_parts_(sends_parts(model.file_system)),
      device_(model),
      write_back_(model),
      journal_(model.file_system),
      syncs_by_depth_(model.sync_depth) {
    if (policy && !warm) {
        room_.emplace(
            *policy, [this](const PageCache::Piece& left) { cached_[left.file].remove(left.page, left.mask); },
            [this](FileId file, int64_t now) { return write_back_.sync(file, now); });
    }
}

void VirtualStorage::limit(int64_t bytes, int64_t now) {
    if (room_) {
        room_->resize(bytes / kPageBytes, now);
    }
}

void VirtualStorage::unmap(uint32_t map) {
    if (room_) {
        room_->unmap(map);
    }
}

void VirtualStorage::forget(FileId file) {
    if (const auto found = cached_.find(file); room_ && found != cached_.end()) {
        // What was there is known to be nothing, and needs no room for that.
        found->second.each_range([&](int64_t from, int64_t to) { room_->forget(file, from, to); });
    }
}

void VirtualStorage::drop_cached(FileId file, int64_t offset, int64_t bytes, int64_t now) {
    const auto found = cached_.find(file);
    if (write_back_.sync(file, now) > now || found == cached_.end() || offset < 0 || offset >= kMostOffset) {
        return;
    }
    const int64_t end = offset + std::min(bytes, kMostOffset);
    for (const auto& [from, to] : found->second.drop(pages_of(offset), end / kPageBytes, now)) {
        dropped_bytes += static_cast<uint64_t>((to - from) * kPageBytes);
        if (room_) {
            room_->forget(file, from, to);
        }
    }
}

void VirtualStorage::add(FileId file, VirtualPages& cache, int64_t from, int64_t to, int64_t there, int64_t now) {
    cache.add(from, to, there, now);
    if (room_) {
        room_->add(file, from, to, there, now);
    }
}

void VirtualStorage::use(PageWalk& walk, int64_t from, int64_t to) {
    if (!room_) {
        return;
    }
    if (walk.map != 0) {
        room_->map(walk.file, from, to, walk.map);
    } else if (from += from == walk.again ? 1 : 0; from < to) {
        room_->use(walk.file, from, to);
    }
}

int64_t VirtualStorage::copy_ns(int64_t bytes) const { return at_rate(bytes, model_.cached_bytes_per_s); }
int64_t VirtualStorage::cached_ns(int64_t bytes) const { return model_.call_ns + copy_ns(bytes); }

ReadAhead& VirtualStorage::state_of(HandleId handle) {
    const auto [found, made] = states_.try_emplace(handle);
    if (made) {
        found->second.pages = model_.read_ahead_bytes / kPageBytes;
    }
    return found->second;
}

void VirtualStorage::set_reading(HandleId handle, int advice) {
    if (advice != POSIX_FADV_NORMAL && advice != POSIX_FADV_SEQUENTIAL && advice != POSIX_FADV_RANDOM) {
        return;
    }
    ReadAhead& state = state_of(handle);
    const int64_t pages = model_.read_ahead_bytes / kPageBytes;
    state.random = advice == POSIX_FADV_RANDOM;
    if (!state.random) {
        state.pages = advice == POSIX_FADV_SEQUENTIAL ? 2 * pages : pages;
    }
}

template <class Use>
void VirtualStorage::ahead(FileId file, HandleId handle, int64_t end, int64_t now, Use use) {
    VirtualPages& cache = cached_[file];
    const std::function<void(int64_t, int64_t)> ask = [&](int64_t from, int64_t to) {
        fetch_data(file, cache, from, to, now);
    };
    use(ReadAheadRules(cache, state_of(handle), end, kind_, ask));
}

int64_t VirtualStorage::fetch(int64_t bytes, int64_t now, VirtualDevice::By by) {
    ++reads;
    bytes_read += static_cast<uint64_t>(bytes);
    return device_.read(bytes, now, by);
}

/// A sync that would be over at `end` if it were alone.
int64_t VirtualStorage::beside_syncs(int64_t now, int64_t end) {
    if (syncs_by_depth_.empty()) {
        return end;
    }
    end += static_cast<int64_t>(syncs_by_depth_.extra_ns(kPageBytes, 1 + syncs_.others(1, now)));
    syncs_.add(1, end);
    return end;
}

/// The rest of a sync once its data is there, of which `done_ns` were in that: as long as it was measured, on any file
/// system, and as the device takes for the blocks where they are known.
int64_t VirtualStorage::log(Journal::Logged logged, int64_t now, int64_t done_ns) {
    const auto rest = [&](int64_t ns) { return std::max<int64_t>(ns - done_ns, 0); };
    const int64_t end = write_journal(logged.blocks, now) + rest(model_.fsync_ns);
    return logged.any ? std::max(end, now + rest(model_.fsync_longer_ns)) : end;
}

/// After the data; nobody else writes meanwhile.
int64_t VirtualStorage::write_journal(int64_t blocks, int64_t now) {
    if (blocks == 0) {
        return now;
    }
    const int64_t begin = std::max(now, write_back_.free()), end = write_back_.write_blocks(blocks, now);
    journal_ns += end - begin;
    return end;
}

/// Pages [from, to): those of holes are there at once.
void VirtualStorage::fetch_data(FileId file, VirtualPages& cache, int64_t from, int64_t to, int64_t now) {
    holes_.each(file, from * kPageBytes, to * kPageBytes, [&](int64_t begin, int64_t end, bool is_hole) {
        const int64_t begun = now + asked_ns_, there = is_hole ? now : fetch(end - begin, begun);
        if (model_.inline_reads && !is_hole) {
            asked_ns_ += std::min(there - begun, model_.read_ns(end - begin));  // less what a limit held up
        }
        add(file, cache, begin / kPageBytes, end / kPageBytes, there, now);
    });
}

int64_t VirtualStorage::data_bytes(FileId file, int64_t offset, int64_t bytes) {
    if (bytes <= 0 || offset < 0 || offset >= kMostOffset) {
        return bytes;
    }
    int64_t data = 0;
    holes_.each(file, offset, offset + bytes,
                [&](int64_t begin, int64_t end, bool is_hole) { data += is_hole ? 0 : end - begin; });
    return data;
}

PageWalk VirtualStorage::reading(FileId file, HandleId handle, int64_t offset, int64_t bytes, int64_t size) const {
    PageWalk walk;
    walk.file = file;
    walk.handle = handle;
    walk.bytes = std::max<int64_t>(bytes, 0);
    if (warm_ || bytes <= 0 || offset < 0 || offset >= kMostOffset) {
        return walk;
    }
    // Of a file of unknown size only what is asked for is sure to be there.
    walk.size = std::max(size > 0 ? std::min(size, kMostOffset) : 0, offset + bytes);
    walk.last_page = (offset + bytes) / kPageBytes;
    if (const auto state = states_.find(handle);
        offset % kPageBytes != 0 && state != states_.end() && state->second.previous == offset / kPageBytes) {
        walk.again = offset / kPageBytes;
    }
    walk.ranges = {{offset / kPageBytes, pages_of(offset + bytes)}};
    return walk;
}

int64_t VirtualStorage::prefetch(FileId file, HandleId handle, int64_t offset, int64_t bytes, int64_t size,
                                 int64_t now) {
    if (warm_ || bytes <= 0 || offset < 0 || offset >= kMostOffset) {
        return 0;
    }
    asking();
    const int64_t end = std::min(offset + std::min(bytes, kMostOffset), size > 0 ? size : kMostOffset);
    ahead(file, handle, pages_of(end), now,
          [&](ReadAheadRules rules) { rules.wanted(offset / kPageBytes, pages_of(end)); });
    return asking();
}

int64_t VirtualStorage::go_on(PageWalk& walk, int64_t now) {
    asking();
    return walk.by == PageWalk::By::read ? go_on_reading(walk, now) : go_on_touching(walk, now);
}

/// At the page that is next. False at the end.
bool VirtualStorage::enter(PageWalk& walk) {
    while (walk.range < walk.ranges.size()) {
        const PageWalk::Range& range = walk.ranges[walk.range];
        walk.page = std::max(walk.page, range.from);
        if (walk.page < range.to) {
            return true;
        }
        ++walk.range;
        walk.page = -1;
    }
    return false;
}

int64_t VirtualStorage::go_on_reading(PageWalk& walk, int64_t now) {
    while (enter(walk)) {
        const int64_t end = walk.ranges[walk.range].to;
        VirtualPages& cache = cached_[walk.file];
        // What was waited for is there, even if there was no room for it for long.
        const bool has = cache.has(walk.page) || walk.waited,
                   marked = cache.has(walk.page) && cache.is_marked(walk.page);
        if ((!has || marked) && walk.worked > 0) {
            return now + std::exchange(walk.worked, 0);  // the copying before it, then the request
        }
        if (!has) {
            ahead(walk.file, walk.handle, pages_of(walk.size), now,
                  [&](ReadAheadRules rules) { rules.missed(walk.page, end - walk.page); });
            walk.fetched = true;
        } else if (marked) {
            ahead(walk.file, walk.handle, pages_of(walk.size), now,
                  [&](ReadAheadRules rules) { rules.met_mark(walk.page, end - walk.page); });
        }
        const int64_t asked = asking(), there = std::max(cache.there(walk.page, now), now);
        if (there > now && !walk.waited) {
            walk.fetched = walk.waited = true;
            const int64_t over = std::max(there, now + asked);
            const int64_t copied = now + std::exchange(walk.worked, 0);  // meanwhile
            time_ns += std::max<int64_t>(over - copied, 0);
            return std::max(over, copied);
        }
        walk.worked += asked;
        const int64_t from = walk.page;
        walk.waited = false;
        do {
            ++walk.page;
        } while (walk.page < end && cache.is_ready(walk.page, now));
        use(walk, from, walk.page);
        const int64_t bytes = std::min((walk.page - from) * kPageBytes, walk.bytes - walk.copied);
        walk.copied += bytes;
        walk.worked += copy_ns(bytes);
    }
    if (!walk.ranges.empty()) {
        state_of(walk.handle).previous = walk.last_page;
    }
    walk.done = true;
    return now + model_.call_ns + walk.worked + copy_ns(walk.bytes - walk.copied);
}

/// A fault maps what is in the cache around it, which counts as found.
void VirtualStorage::map_around(PageWalk& walk, int64_t now) {
    if (walk.writes) {
        return;
    }
    VirtualPages& cache = cached_[walk.file];
    ReadAhead& state = state_of(walk.handle);
    const int64_t first = walk.page / kAroundPages * kAroundPages;
    for (int64_t page = first; page < first + kAroundPages && state.misses > 0; ++page) {
        state.misses -= cache.is_ready(page, now) ? 1 : 0;
    }
}

/// False where it has to wait.
bool VirtualStorage::fault(PageWalk& walk, const PageWalk::Range& range, int64_t now) {
    VirtualPages& cache = cached_[walk.file];
    ReadAhead& state = state_of(walk.handle);
    const int64_t end = std::max(pages_of(walk.size), walk.size > 0 ? walk.page + 1 : range.to);
    const bool has = cache.has(walk.page);
    map_around(walk, now);
    if (!walk.writes && has && cache.is_ready(walk.page, now)) {
        return true;
    }
    if (!has) {
        walk.fetched = walk.asked = true;
        ahead(walk.file, walk.handle, end, now,
              [&](ReadAheadRules rules) { rules.fault_missed(walk.page, range.advice); });
        if (!cache.has(walk.page)) {
            fetch_data(walk.file, cache, walk.page, walk.page + 1, now);
        }
    } else if (!range.advice.random && state.pages > 0) {
        if (cache.there(walk.page, now) <= now && state.misses > 0) {
            --state.misses;
        }
        if (cache.is_marked(walk.page)) {
            walk.asked = true;
            ahead(walk.file, walk.handle, end, now,
                  [&](ReadAheadRules rules) { rules.met_mark(walk.page, state.pages); });
        }
    }
    return cache.there(walk.page, now) <= now;
}

void VirtualStorage::next_page(PageWalk& walk, int64_t now) {
    walk.worked += std::min(walk.page_ns, walk.asked || walk.waited ? kMostAsking : kMostFault);
    if (walk.dirties) {
        // Of a folio of several pages the fault maps all, and the log has none for what was written there.
        const int64_t most = kind_.large_folios ? walk.page + kMostFolio : walk.page + 1;
        holes_.fill(walk.file, walk.page * kPageBytes,
                    std::max(cached_[walk.file].next_missing(walk.page, most), walk.page + 1) * kPageBytes);
        walk.worked += write_mapped(walk.file, walk.page * kPageBytes, kPageBytes, now) - now;
    }
    walk.waited = walk.asked = false;
    const int64_t around = (walk.page / kAroundPages + 1) * kAroundPages;
    use(walk, walk.writes ? walk.page : around - kAroundPages, walk.writes ? walk.page + 1 : around);
    ++walk.page;
    if (walk.by != PageWalk::By::populate || walk.writes) {
        return;
    }
    VirtualPages& cache = cached_[walk.file];
    while (walk.page < std::min(around, walk.ranges[walk.range].to) && cache.is_ready(walk.page, now)) {
        ++walk.page;
    }
}

int64_t VirtualStorage::go_on_touching(PageWalk& walk, int64_t now) {
    while (enter(walk)) {
        VirtualPages& cache = cached_[walk.file];
        if (walk.waited) {
            map_around(walk, now);  // the fault is tried again
        } else {
            if (walk.worked > 0 && !cache.is_ready(walk.page, now)) {
                return now + std::exchange(walk.worked, 0);
            }
            if (!fault(walk, walk.ranges[walk.range], now)) {
                const int64_t there = std::max(cache.there(walk.page, now), now + asking());
                walk.waited = walk.fetched = true;
                time_ns += there - now;
                return there;
            }
            walk.worked += asking();
        }
        next_page(walk, now);
    }
    walk.done = true;
    return now + walk.worked;
}

int64_t VirtualStorage::read_direct(int64_t bytes, int64_t now, VirtualDevice::By by) {
    const bool waits = by == VirtualDevice::By::call;
    now += waits ? model_.call_ns : 0;
    if (bytes <= 0) {
        return now;
    }
    const int64_t end = fetch(bytes, now, by);
    time_ns += waits ? end - now : 0;
    return end;
}

int64_t VirtualStorage::read_metadata(uint32_t requests, uint32_t needed, int64_t bytes, int64_t now) {
    int64_t end = now;
    for (uint32_t i = 0; i < requests; ++i) {
        const int64_t over = fetch(bytes, now);
        end = i < needed ? std::max(end, over) : end;
    }
    time_ns += end - now;
    return end;
}

}  // namespace reprise

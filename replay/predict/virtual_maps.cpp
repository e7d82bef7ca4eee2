// SPDX-License-Identifier: MIT
// Mapped files and advice in a prediction.
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "formats/oplog/touched.h"
#include "replay/plan/fault_reach.h"
#include "replay/predict/virtual_calls.h"

namespace reprise {
namespace {

constexpr int64_t kPopulateRead = 22, kPopulateWrite = 23;  // MADV_*, since Linux 5.14

constexpr int64_t kFaultBytes = int64_t{64} << 10;  // that a fault maps where all is there

MapAdvice advised(MapAdvice before, int64_t advice) {
    switch (advice) {
        case MADV_NORMAL: before.random = before.sequential = false; break;
        case MADV_RANDOM: before.random = true, before.sequential = false; break;
        case MADV_SEQUENTIAL: before.random = false, before.sequential = true; break;
        case MADV_HUGEPAGE: before.huge = true; break;
        case MADV_NOHUGEPAGE: before.huge = false; break;
        default: break;
    }
    return before;
}

bool changes_reading(int64_t advice) {
    return advice == MADV_NORMAL || advice == MADV_RANDOM || advice == MADV_SEQUENTIAL || advice == MADV_HUGEPAGE ||
           advice == MADV_NOHUGEPAGE;
}

/// Of a mapping at an offset.
MapAdvice advice_at(const std::map<int64_t, MapAdvice>& advice, int64_t offset) {
    const auto after = advice.upper_bound(offset);
    return after == advice.begin() ? MapAdvice{} : std::prev(after)->second;
}

/// Changes [from, to).
void advise_range(std::map<int64_t, MapAdvice>& all, int64_t from, int64_t to, int64_t advice) {
    const MapAdvice first = advice_at(all, from), beyond = advice_at(all, to);
    all.try_emplace(from, first);
    all.try_emplace(to, beyond);
    for (auto at = all.find(from); at->first < to; ++at) {
        at->second = advised(at->second, advice);
    }
}

}  // namespace

/// A mapping takes its recorded time, unless it reads what is not cached.
int64_t VirtualCalls::map(VirtualCall& call, const OpBlock& b, size_t i, int64_t now) {
    Mapping mapping{file_of(b.handle[i]), b.handle[i], std::max<int64_t>(b.offset[i], 0), {}};
    const bool populates = (b.flags[i] & MAP_POPULATE) != 0 && b.handle[i] != 0 && b.result[i] >= 0;
    const int64_t end = populates ? populate(call, mapping, b, i, now) : now + recorded(b, i);
    if (b.map[i] != 0 && b.handle[i] != 0) {
        maps_.insert_or_assign(b.map[i], std::move(mapping));
    }
    return end;
}

/// All pages of a range, by faults that map what is there 64 KiB at a time.
int64_t VirtualCalls::populate(VirtualCall& call, const Mapping& mapping, const OpBlock& b, size_t i, int64_t now) {
    const int64_t at = static_cast<OpKind>(b.kind[i]) == OpKind::mmap ? 0 : std::max<int64_t>(b.offset[i], 0);
    int64_t bytes = std::clamp<int64_t>(b.size[i], 0, kMostBytes), from = 0;
    if (warm_ || __builtin_add_overflow(mapping.offset, at, &from)) {
        return now + recorded(b, i);
    }
    const int64_t size = size_of(mapping.file);
    if (size > 0) {
        bytes = std::min(bytes, std::max<int64_t>(size - from, 0));
    }
    call.walk.by = PageWalk::By::populate;
    call.walk.file = data_.of(mapping.file);
    call.walk.handle = mapping.handle;
    call.walk.map = b.map[i];
    call.walk.size = size;
    call.walk.page_ns = recorded(b, i) / (bytes / kFaultBytes + 1);
    add_range(call.walk, mapping, at, bytes);
    call.done = false;
    return now;
}

/// Advice takes its recorded time; what it asks for is read meanwhile.
int64_t VirtualCalls::advise(VirtualCall& call, const OpBlock& b, size_t i, int64_t now) {
    int64_t end = now + recorded(b, i);
    if (b.result[i] < 0) {
        return end;
    }
    const int64_t bytes = std::max<int64_t>(b.size[i], 0);
    if (static_cast<OpKind>(b.kind[i]) == OpKind::madvise) {
        const auto found = maps_.find(b.map[i]);
        const int64_t at = b.offset[i];
        int64_t to = 0, from = 0;
        if (found == maps_.end() || at < 0 || __builtin_add_overflow(at, bytes, &to) ||
            __builtin_add_overflow(found->second.offset, at, &from)) {
            return end;
        }
        Mapping& mapping = found->second;
        if (b.arg[i] == kPopulateRead || b.arg[i] == kPopulateWrite) {
            return populate(call, mapping, b, i, now);
        }
        if (b.arg[i] == MADV_WILLNEED) {
            end += storage_.prefetch(data_.of(mapping.file), mapping.handle, from, bytes, size_of(mapping.file), now);
        } else if (to > at && changes_reading(b.arg[i])) {
            advise_range(mapping.advice, at, to, b.arg[i]);
        }
        return end;
    }
    const FileId file = file_of(b.handle[i]);
    if (static_cast<OpKind>(b.kind[i]) == OpKind::readahead || b.arg[i] == POSIX_FADV_WILLNEED) {
        end += storage_.prefetch(data_.of(file), b.handle[i], b.offset[i], bytes == 0 ? kMostBytes : bytes,
                                 size_of(file), now);
    } else if (b.arg[i] == POSIX_FADV_DONTNEED) {
        const bool to_end = bytes == 0 || bytes >= size_of(file) - std::max<int64_t>(b.offset[i], 0);
        drop(file, b.offset[i], to_end ? kMostBytes : bytes, now);
    } else {
        storage_.set_reading(b.handle[i], static_cast<int>(b.arg[i]));
    }
    return end;
}

void VirtualCalls::drop(FileId file, int64_t offset, int64_t bytes, int64_t now) {
    const auto is_of = [&](const auto& mapped) { return data_.of(mapped.second.file) == data_.of(file); };
    if (warm_) {
        note_unmodelled(Unmodelled::drops);
    } else if (std::none_of(maps_.begin(), maps_.end(), is_of)) {  // what is mapped stays
        storage_.drop_cached(data_.of(file), offset, bytes, now);
    }
}

/// Bytes of a mapping, as pages of its file, each with the advice for it.
void VirtualCalls::add_range(PageWalk& walk, const Mapping& mapping, int64_t at, int64_t bytes) const {
    constexpr int64_t kMostEnd = (VirtualPages::kMostPages / 2) * kPageBytes;
    int64_t from = 0, to = 0;
    if (bytes <= 0 || __builtin_add_overflow(mapping.offset, at, &from) || __builtin_add_overflow(from, bytes, &to) ||
        from < 0 || to > kMostEnd) {
        return;
    }
    while (from < to) {
        const auto next = mapping.advice.upper_bound(from - mapping.offset);
        const int64_t end = next == mapping.advice.end() ? to : std::min(to, mapping.offset + next->first);
        walk.ranges.push_back(
            {from / kPageBytes, (end + kPageBytes - 1) / kPageBytes, advice_at(mapping.advice, from - mapping.offset)});
        from = end;
    }
}

/// Nothing has to be read; what is written makes pages dirty.
int64_t VirtualCalls::touch_warm(const Mapping& mapping, const OpBlock& b, size_t i, int64_t now) {
    int64_t end = now + recorded(b, i);
    if (b.flags[i] == kTouchWrites && writes_file(b.map[i])) {
        int64_t left = kMostBytes;  // hostile lists name more
        each_touched(b.offset[i], b.size[i], b.list_of(i), [&](int64_t at, int64_t bytes) {
            int64_t from = 0;
            bytes = std::min(bytes, left);
            left -= bytes;
            if (bytes > 0 && !__builtin_add_overflow(mapping.offset, at, &from)) {
                end = std::max(end, storage_.write_mapped(data_.of(mapping.file), from, bytes, now));
            }
        });
    }
    return end;
}

/// Pages of a mapped file, each a fault that the recording had.
int64_t VirtualCalls::touch(VirtualCall& call, const OpBlock& b, size_t i, int64_t now) {
    const auto found = maps_.find(b.map[i]);
    if (found == maps_.end()) {
        return now + recorded(b, i);
    }
    const Mapping& mapping = found->second;
    if (warm_) {
        return touch_warm(mapping, b, i, now);
    }
    PageWalk& walk = call.walk;
    walk.by = PageWalk::By::touch;
    walk.writes = b.flags[i] == kTouchWrites;
    walk.dirties = walk.writes && writes_file(b.map[i]);
    walk.file = data_.of(mapping.file);
    walk.handle = mapping.handle;
    walk.map = b.map[i];
    walk.size = size_of(mapping.file);
    int64_t left = kMostBytes, pages = 0;  // hostile lists name more
    const bool again = b.flags[i] == kTouchAgain;
    int64_t& last = touched_to_[AccessPlan::key(b.task, b.map[i])];
    each_touched(b.offset[i], b.size[i], b.list_of(i), [&](int64_t at, int64_t bytes) {
        bytes = std::min(bytes, left);
        left -= bytes;
        if (!walk.writes && !again && last != 0 && mapping.offset < INT64_MAX - at &&
            came_with_fault(plan_, mapping.file, mapping.offset + last, mapping.offset + at, false)) {
            add_range(walk, mapping, last, at - last);  // may take faults of its own there
            walk.by = PageWalk::By::populate;
        }
        last = again ? last : at + bytes;
        pages += (bytes + kPageBytes - 1) / kPageBytes;
        add_range(walk, mapping, at, bytes);
    });
    if (walk.ranges.empty()) {
        return now + recorded(b, i);
    }
    touched_pages += static_cast<uint64_t>(pages);
    walk.page_ns = recorded(b, i) / pages;
    call.done = false;
    return now;
}

}  // namespace reprise

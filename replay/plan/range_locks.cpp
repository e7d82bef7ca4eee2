// SPDX-License-Identifier: MIT
#include "replay/plan/range_locks.h"

#include <algorithm>
#include <utility>

namespace reprise {
namespace {

constexpr size_t kMostFreed = 256, kMostHeld = 4096;  // of one file; beyond that the oldest are forgotten

bool conflict(const RangeLock& a, const RangeLock& b) {
    return a.overlaps(b) && (a.type == F_WRLCK || b.type == F_WRLCK);
}

}  // namespace

void RangeLocks::free(File& file, const Hold& hold, const RangeLock& part, const LockSource& by) {
    const auto same = std::find_if(file.freed.begin(), file.freed.end(),
                                   [&](const Free& other) { return other.owner == hold.owner && other.lock == part; });
    if (same != file.freed.end()) {
        same->by = by;
        return;
    }
    if (file.freed.size() == kMostFreed) {
        file.freed.erase(std::min_element(file.freed.begin(), file.freed.end(),
                                          [](const Free& a, const Free& b) { return a.by.end < b.by.end; }));
    }
    file.freed.push_back({hold.owner, part, by});
}

std::vector<LockSource> RangeLocks::set(FileId id, LockOwner owner, const RangeLock& lock, const LockSource& by) {
    File& file = files_[id];
    std::vector<LockSource> waits;
    if (lock.type != F_UNLCK) {
        for (const Free& freed : file.freed) {
            if (!(freed.owner == owner) && conflict(freed.lock, lock)) {
                waits.push_back(freed.by);
            }
        }
        if (lock.type == F_WRLCK) {  // whoever comes next waits for this one
            std::erase_if(file.freed,
                          [&](const Free& freed) { return lock.from <= freed.lock.from && freed.lock.to <= lock.to; });
        }
    }
    // What the owner had of the range is replaced; the rest of it stays.
    std::vector<Hold> rest;
    for (Hold& hold : file.holds) {
        if (!(hold.owner == owner) || !hold.lock.overlaps(lock)) {
            continue;
        }
        const RangeLock part{hold.lock.type, std::max(hold.lock.from, lock.from), std::min(hold.lock.to, lock.to)};
        const bool less = lock.type == F_UNLCK || (lock.type == F_RDLCK && hold.lock.type == F_WRLCK);
        if (less) {
            waits.insert(waits.end(), hold.refused.begin(), hold.refused.end());
            free(file, hold, part, by);
        }
        if (hold.lock.from < part.from) {
            rest.push_back({owner, {hold.lock.type, hold.lock.from, part.from}, hold.by, {}});
        }
        if (part.to < hold.lock.to) {
            rest.push_back({owner, {hold.lock.type, part.to, hold.lock.to}, hold.by, {}});
        }
    }
    std::erase_if(file.holds, [&](const Hold& hold) { return hold.owner == owner && hold.lock.overlaps(lock); });
    file.holds.insert(file.holds.end(), std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
    if (lock.type != F_UNLCK) {
        file.holds.push_back({owner, lock, by, {}});
    }
    if (file.holds.size() > kMostHeld) {
        file.holds.erase(file.holds.begin(), file.holds.end() - kMostHeld);
    }
    return waits;
}

std::vector<LockSource> RangeLocks::refused(FileId id, LockOwner owner, const RangeLock& lock, const LockSource& by,
                                            int64_t begin) {
    std::vector<LockSource> waits;
    const auto found = files_.find(id);
    if (found == files_.end()) {
        return waits;
    }
    for (Hold& hold : found->second.holds) {
        if (hold.owner == owner || !conflict(hold.lock, lock)) {
            continue;
        }
        if (hold.by.end <= begin) {
            waits.push_back(hold.by);
        }
        std::erase_if(hold.refused, [&](const LockSource& other) { return other.task == by.task; });
        hold.refused.push_back(by);
    }
    return waits;
}

void RangeLocks::give_back(File& file, LockOwner owner, const LockSource& by, std::vector<LockSource>& waits) {
    for (const Hold& hold : file.holds) {
        if (hold.owner == owner) {
            waits.insert(waits.end(), hold.refused.begin(), hold.refused.end());
            free(file, hold, hold.lock, by);
        }
    }
    std::erase_if(file.holds, [&](const Hold& hold) { return hold.owner == owner; });
}

std::vector<LockSource> RangeLocks::give_back(FileId id, LockOwner owner, const LockSource& by) {
    std::vector<LockSource> waits;
    if (const auto found = files_.find(id); found != files_.end()) {
        give_back(found->second, owner, by, waits);
    }
    return waits;
}

std::vector<LockSource> RangeLocks::give_back(LockOwner owner, const LockSource& by) {
    std::vector<LockSource> waits;
    for (auto& [id, file] : files_) {
        give_back(file, owner, by, waits);
    }
    return waits;
}

}  // namespace reprise

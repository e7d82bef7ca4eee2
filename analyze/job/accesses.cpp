// SPDX-License-Identifier: MIT
#include "analyze/job/accesses.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace reprise {

uint32_t AccessSample::hash_of(uint64_t place) {
    // The finaliser of SplitMix64.
    place ^= place >> 30;
    place *= 0xbf58476d1ce4e5b9ULL;
    place ^= place >> 27;
    place *= 0x94d049bb133111ebULL;
    place ^= place >> 31;
    return static_cast<uint32_t>(place) & (kHashes - 1);
}

void AccessSample::add(int64_t begin, FileId file, int64_t offset, int64_t bytes, TaskId task, bool first) {
    constexpr int kPageBits = 12;
    constexpr int64_t kMostPage = Access::kFirst - 1;
    Access access;
    access.begin = begin;
    access.file = file;
    access.page = static_cast<uint32_t>(std::clamp<int64_t>(offset >> kPageBits, 0, kMostPage));
    if (hash_of(access.place()) >= limit_) {
        return;
    }
    access.page |= first ? Access::kFirst : 0;
    access.bytes = static_cast<uint32_t>(std::clamp<int64_t>(bytes, 0, std::numeric_limits<uint32_t>::max()));
    access.task = task;
    kept_.push_back(access);
    while (kept_.size() > most_ && limit_ > 1) {
        limit_ /= 2;
        std::erase_if(kept_, [&](const Access& one) { return hash_of(one.place()) >= limit_; });
    }
}

std::vector<Access> AccessSample::finish() {
    std::sort(kept_.begin(), kept_.end(), [](const Access& a, const Access& b) {
        return std::tuple(a.begin, a.task, a.page) < std::tuple(b.begin, b.task, b.page);
    });
    return std::move(kept_);
}

}  // namespace reprise

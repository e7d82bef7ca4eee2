// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/memory.h"

#include <algorithm>

namespace reprise {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kLast = UINT64_MAX - kPage;
constexpr size_t kMostRanges = 65536;  // a process with more loses the oldest knowledge: nothing counts as fresh

uint64_t down(uint64_t address) { return address & ~(kPage - 1); }
uint64_t up(uint64_t address) { return address > kLast ? down(kLast) : down(address + kPage - 1); }
uint64_t end_of(uint64_t address, uint64_t size) {
    return size > kLast - std::min(address, kLast) ? kLast : address + size;
}

}  // namespace

void FreshMemory::add(uint64_t address, uint64_t size) {
    uint64_t begin = down(address), end = up(end_of(address, size));
    if (begin >= end) {
        return;
    }
    remove(begin, end - begin);
    if (ranges_.size() >= kMostRanges) {
        ranges_.clear();
    }
    // Neighbours become one.
    if (const auto after = ranges_.find(end); after != ranges_.end()) {
        end = after->second;
        ranges_.erase(after);
    }
    if (auto before = ranges_.lower_bound(begin); before != ranges_.begin() && (--before)->second == begin) {
        before->second = end;
        return;
    }
    ranges_[begin] = end;
}

void FreshMemory::remove(uint64_t address, uint64_t size) {
    const uint64_t begin = down(address), end = up(end_of(address, size));
    if (begin >= end) {
        return;
    }
    auto it = ranges_.upper_bound(begin);
    if (it != ranges_.begin()) {
        --it;
    }
    while (it != ranges_.end() && it->first < end) {
        const auto [from, to] = *it;
        if (to <= begin) {
            ++it;
            continue;
        }
        it = ranges_.erase(it);
        if (from < begin) {
            ranges_[from] = begin;
        }
        if (to > end) {
            it = ranges_.emplace(end, to).first;
        }
    }
}

void FreshMemory::break_at(uint64_t address) {
    const uint64_t from = up(break_), to = up(address);
    if (break_ && to > from) {
        add(from, to - from);
    }
    if (break_ && to < from) {
        remove(to, from - to);
    }
    break_ = address;
}

bool FreshMemory::fill(uint64_t address, uint64_t size) {
    if (size == 0 || ranges_.empty()) {
        return false;
    }
    const uint64_t begin = down(address), end = up(end_of(address, size));
    uint64_t fresh = 0;
    auto it = ranges_.upper_bound(begin);
    if (it != ranges_.begin()) {
        --it;
    }
    for (; it != ranges_.end() && it->first < end; ++it) {
        const uint64_t from = std::max(begin, it->first), to = std::min(end, it->second);
        if (to > from) {
            fresh += to - from;
        }
    }
    if (fresh == 0) {
        return false;
    }
    remove(begin, end - begin);
    return fresh * 2 >= end - begin;
}

}  // namespace reprise

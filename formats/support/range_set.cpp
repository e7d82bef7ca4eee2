// SPDX-License-Identifier: MIT
#include "formats/support/range_set.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace reprise {
namespace {

constexpr uint64_t down(uint64_t value, uint64_t unit) { return value / unit * unit; }
constexpr uint64_t up(uint64_t value, uint64_t unit) {
    constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();
    return value > kEnd - unit ? down(kEnd, unit) : down(value + unit - 1, unit);
}

}  // namespace

void RangeSet::add(uint64_t from, uint64_t to) {
    if (from >= to) {
        return;
    }
    insert(down(from, unit_), up(to, unit_));
    while (ranges_.size() >= kMost) {
        coarsen();
    }
}

void RangeSet::insert(uint64_t from, uint64_t to) {
    if (from >= to) {
        return;  // the last, incomplete unit of all
    }
    auto at = ranges_.upper_bound(from);
    if (at != ranges_.begin() && std::prev(at)->second >= from) {
        --at;
        at->second = std::max(at->second, to);
    } else {
        at = ranges_.emplace_hint(at, from, to);
    }
    auto next = std::next(at);
    while (next != ranges_.end() && next->first <= at->second) {
        at->second = std::max(at->second, next->second);
        next = ranges_.erase(next);
    }
}

void RangeSet::remove(uint64_t from, uint64_t to) {
    if (from >= to) {
        return;
    }
    auto at = ranges_.upper_bound(from);
    if (at != ranges_.begin() && std::prev(at)->second > from) {
        --at;
    }
    while (at != ranges_.end() && at->first < to) {
        const auto [begin, end] = *at;
        at = ranges_.erase(at);
        if (begin < from) {
            ranges_.emplace(begin, from);
        }
        if (end > to) {
            at = ranges_.emplace(to, end).first;
            break;
        }
    }
}

void RangeSet::clip(uint64_t size) { remove(size, std::numeric_limits<uint64_t>::max()); }

uint64_t RangeSet::bytes() const {
    uint64_t sum = 0;
    for (const auto& [from, to] : ranges_) {
        sum += to - from;
    }
    return sum;
}

bool RangeSet::contains(uint64_t offset) const {
    const auto next = ranges_.upper_bound(offset);
    return next != ranges_.begin() && std::prev(next)->second > offset;
}

RangeSet RangeSet::without(const RangeSet& other) const {
    RangeSet out = *this;
    for (const auto& [from, to] : other.ranges_) {
        out.remove(from, to);
    }
    return out;
}

void RangeSet::coarsen() {
    const std::map<uint64_t, uint64_t> all = std::exchange(ranges_, {});
    while (true) {
        unit_ *= 2;
        for (const auto& [from, to] : all) {
            insert(down(from, unit_), up(to, unit_));
        }
        if (ranges_.size() <= kMost / 2) {
            return;
        }
        ranges_.clear();
    }
}

}  // namespace reprise

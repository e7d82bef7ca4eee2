// SPDX-License-Identifier: MIT
#include "formats/support/range_set.h"

#include <algorithm>
#include <limits>

namespace reprise {
namespace {

constexpr uint64_t down(uint64_t value, uint64_t unit) { return value / unit * unit; }
constexpr uint64_t up(uint64_t value, uint64_t unit) {
    constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();
    return value > kEnd - unit ? down(kEnd, unit) : down(value + unit - 1, unit);
}

}  // namespace

RangeSet::RangeSet(const RangeSet& other)
    : one_(other.one_), many_(other.many_ ? std::make_unique<Many>(*other.many_) : nullptr) {}

void RangeSet::add(uint64_t from, uint64_t to) {
    if (from >= to) {
        return;
    }
    insert(down(from, unit()), up(to, unit()));
    while (many_ && many_->ranges.size() >= kMost) {
        coarsen(*many_);
    }
}

void RangeSet::insert(uint64_t from, uint64_t to) {
    if (from >= to) {
        return;  // the last, incomplete unit of all
    }
    if (many_) {
        insert(many_->ranges, from, to);
    } else if (empty()) {
        one_ = {from, to};
    } else if (from <= one_.second && to >= one_.first) {
        one_ = {std::min(from, one_.first), std::max(to, one_.second)};
    } else {
        spread().ranges.emplace(from, to);
    }
}

RangeSet::Many& RangeSet::spread() {
    many_ = std::make_unique<Many>();
    many_->ranges.insert(std::exchange(one_, {}));
    return *many_;
}

void RangeSet::insert(Map& ranges, uint64_t from, uint64_t to) {
    auto at = ranges.upper_bound(from);
    if (at != ranges.begin() && std::prev(at)->second >= from) {
        --at;
        at->second = std::max(at->second, to);
    } else {
        at = ranges.emplace_hint(at, from, to);
    }
    auto next = std::next(at);
    while (next != ranges.end() && next->first <= at->second) {
        at->second = std::max(at->second, next->second);
        next = ranges.erase(next);
    }
}

void RangeSet::remove(uint64_t from, uint64_t to) {
    if (from >= to) {
        return;
    }
    if (!many_) {
        if (from <= one_.first && to >= one_.second) {
            one_ = {};
        } else if (from <= one_.first) {
            one_.first = std::max(one_.first, to);
        } else if (to >= one_.second) {
            one_.second = std::min(one_.second, from);
        } else {
            Map& ranges = spread().ranges;
            ranges.emplace(to, std::exchange(ranges.begin()->second, from));
        }
        return;
    }
    Map& ranges = many_->ranges;
    auto at = ranges.upper_bound(from);
    if (at != ranges.begin() && std::prev(at)->second > from) {
        --at;
    }
    while (at != ranges.end() && at->first < to) {
        const auto [begin, end] = *at;
        at = ranges.erase(at);
        if (begin < from) {
            ranges.emplace(begin, from);
        }
        if (end > to) {
            at = ranges.emplace(to, end).first;
            break;
        }
    }
}

void RangeSet::clip(uint64_t size) { remove(size, std::numeric_limits<uint64_t>::max()); }

RangeSet::View RangeSet::ranges() const {
    if (many_) {
        return {Iterator(many_->ranges.begin()), Iterator(many_->ranges.end())};
    }
    return {empty() ? Iterator() : Iterator(&one_), Iterator()};
}

RangeSet::View RangeSet::ranges_from(uint64_t offset) const {
    if (!many_) {
        return ranges();
    }
    auto at = many_->ranges.upper_bound(offset);
    if (at != many_->ranges.begin()) {
        --at;
    }
    return {Iterator(at), Iterator(many_->ranges.end())};
}

uint64_t RangeSet::bytes() const {
    uint64_t sum = 0;
    for (const auto& [from, to] : ranges()) {
        sum += to - from;
    }
    return sum;
}

bool RangeSet::contains(uint64_t offset) const {
    const View found = ranges_from(offset);
    return found.begin() != found.end() && (*found.begin()).first <= offset && (*found.begin()).second > offset;
}

RangeSet RangeSet::without(const RangeSet& other) const {
    RangeSet out = *this;
    for (const auto& [from, to] : other.ranges()) {
        out.remove(from, to);
    }
    return out;
}

bool RangeSet::operator==(const RangeSet& other) const {
    const View here = ranges(), there = other.ranges();
    return std::equal(here.begin(), here.end(), there.begin(), there.end());
}

void RangeSet::coarsen(Many& many) {
    const Map all = std::exchange(many.ranges, {});
    while (true) {
        many.unit *= 2;
        for (const auto& [from, to] : all) {
            const uint64_t begin = down(from, many.unit), end = up(to, many.unit);
            if (begin < end) {
                insert(many.ranges, begin, end);
            }
        }
        if (many.ranges.size() <= kMost / 2) {
            return;
        }
        many.ranges.clear();
    }
}

}  // namespace reprise

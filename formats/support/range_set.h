// SPDX-License-Identifier: MIT
// Which bytes of a file: disjoint ranges in whole pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace reprise {

/// Memory is bounded: from kMost ranges on, units get larger until half as many are left, so that what lies between
/// close ranges counts as well.
class RangeSet {
public:
    static constexpr uint64_t kPage = 4096;
    static constexpr size_t kMost = size_t{1} << 16;

    /// Bytes [from, to), rounded outwards to whole units; nothing where it is empty.
    void add(uint64_t from, uint64_t to);
    void remove(uint64_t from, uint64_t to);
    /// Drops what lies at or beyond `size`, which need not be a multiple of a unit.
    void clip(uint64_t size);

    bool empty() const { return ranges_.empty(); }
    uint64_t bytes() const;
    uint64_t unit() const { return unit_; }
    bool contains(uint64_t offset) const;
    RangeSet without(const RangeSet& other) const;
    /// From begin to end of each range, ascending; ranges neither touch nor overlap.
    const std::map<uint64_t, uint64_t>& ranges() const { return ranges_; }

    bool operator==(const RangeSet& other) const { return ranges_ == other.ranges_; }

private:
    void insert(uint64_t from, uint64_t to);
    void coarsen();

    std::map<uint64_t, uint64_t> ranges_;
    uint64_t unit_ = kPage;
};

}  // namespace reprise

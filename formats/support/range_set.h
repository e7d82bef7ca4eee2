// SPDX-License-Identifier: MIT
// Which bytes of a file: disjoint ranges in whole pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

namespace reprise {

/// Memory is bounded: from kMost ranges on, units get larger until half as many are left, so that what lies between
/// close ranges counts as well. A set of one range takes nothing beside itself, as a log may have a million such files.
class RangeSet {
public:
    static constexpr uint64_t kPage = 4096;
    static constexpr size_t kMost = size_t{1} << 16;
    using Range = std::pair<uint64_t, uint64_t>;  // from begin to end

    RangeSet() = default;
    RangeSet(const RangeSet& other);
    RangeSet(RangeSet&& other) noexcept : one_(std::exchange(other.one_, {})), many_(std::move(other.many_)) {}
    RangeSet& operator=(RangeSet other) noexcept {
        std::swap(one_, other.one_);
        std::swap(many_, other.many_);
        return *this;
    }
    ~RangeSet() = default;

    /// Bytes [from, to), rounded outwards to whole units; nothing where it is empty.
    void add(uint64_t from, uint64_t to);
    void remove(uint64_t from, uint64_t to);
    /// Drops what lies at or beyond `size`, which need not be a multiple of a unit.
    void clip(uint64_t size);

    bool empty() const { return many_ ? many_->ranges.empty() : one_.first == one_.second; }
    size_t count() const { return many_ ? many_->ranges.size() : empty() ? 0 : 1; }  // of ranges
    uint64_t bytes() const;
    uint64_t unit() const { return many_ ? many_->unit : kPage; }
    bool contains(uint64_t offset) const;
    RangeSet without(const RangeSet& other) const;

    /// Valid until the set is changed.
    class Iterator;
    class View;
    /// Ascending; ranges neither touch nor overlap.
    View ranges() const;
    /// Those from the last one on that begins at or before `offset`; all where none does.
    View ranges_from(uint64_t offset) const;

    bool operator==(const RangeSet& other) const;

private:
    using Map = std::map<uint64_t, uint64_t>;
    struct Many {
        Map ranges;
        uint64_t unit = kPage;
    };
    void insert(uint64_t from, uint64_t to);
    Many& spread();
    static void insert(Map& ranges, uint64_t from, uint64_t to);
    static void coarsen(Many& many);

    Range one_{0, 0};             // empty where equal, and where there are many
    std::unique_ptr<Many> many_;  // none, one or more
};

class RangeSet::Iterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Range;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Range;

    Iterator() = default;
    explicit Iterator(const Range* one) : one_(one) {}
    explicit Iterator(Map::const_iterator at) : at_(at) {}
    Range operator*() const { return one_ != nullptr ? *one_ : Range(*at_); }
    Iterator& operator++() {
        if (one_ != nullptr) {
            one_ = nullptr;
        } else {
            ++at_;
        }
        return *this;
    }
    bool operator==(const Iterator&) const = default;

private:
    const Range* one_ = nullptr;
    Map::const_iterator at_;
};

class RangeSet::View {
public:
    View(Iterator begin, Iterator end) : begin_(begin), end_(end) {}
    Iterator begin() const { return begin_; }
    Iterator end() const { return end_; }

private:
    Iterator begin_, end_;
};

}  // namespace reprise

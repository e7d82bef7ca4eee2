// SPDX-License-Identifier: MIT
// Equal intervals of a stretch of time, into which what happened is counted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "formats/oplog/op_fields.h"

namespace reprise {

class TimeGrid {
public:
    /// [begin, end], ns, in `count` intervals; at least one, of at least 1 ns.
    TimeGrid(int64_t begin, int64_t end, size_t count)
        : begin_(begin),
          end_(std::max(end, end_of(begin, 1))),
          count_(std::max<size_t>(count, 1)),
          width_(static_cast<double>(distance_ns(begin_, end_)) / static_cast<double>(count_)) {}

    size_t count() const { return count_; }
    double width_ns() const { return width_; }
    int64_t begin() const { return begin_; }
    int64_t end() const { return end_; }
    /// s since the beginning.
    double start_s(size_t interval) const { return static_cast<double>(interval) * width_ / 1e9; }
    /// Times outside belong to the first or the last interval.
    size_t at(int64_t time) const {
        if (time <= begin_) {
            return 0;
        }
        return std::min(static_cast<size_t>(static_cast<double>(distance_ns(begin_, time)) / width_), count_ - 1);
    }
    /// Calls visit(interval, ns) for the part of [from, to) that lies in each interval.
    template <class Visit>
    void spread(int64_t from, int64_t to, Visit visit) const {
        from = std::max(from, begin_);
        to = std::min(to, end_);
        if (to <= from) {
            return;
        }
        const size_t first = at(from), last = at(to);
        if (first == last) {
            visit(first, static_cast<double>(to - from));
            return;
        }
        const auto offset = [&](int64_t time) { return static_cast<double>(time - begin_); };
        visit(first, static_cast<double>(first + 1) * width_ - offset(from));
        for (size_t interval = first + 1; interval < last; ++interval) {
            visit(interval, width_);
        }
        visit(last, offset(to) - static_cast<double>(last) * width_);
    }

private:
    int64_t begin_, end_;
    size_t count_;
    double width_;  // ns
};

}  // namespace reprise

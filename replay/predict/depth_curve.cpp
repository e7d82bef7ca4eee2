// SPDX-License-Identifier: MIT
#include "replay/predict/depth_curve.h"

#include <algorithm>
#include <functional>

namespace reprise {

DepthCurve::DepthCurve(const std::vector<DepthRow>& rows) {
    bool limited = false;  // a row of the size at hand
    for (const DepthRow& row : rows) {
        if (row.bytes <= 0 || row.depth < 1) {
            continue;
        }
        const bool fresh = sizes_.empty() || sizes_.back().bytes != row.bytes;
        limited = (limited && !fresh) || row.limited;
        if (limited && !fresh) {
            sizes_.back().beyond_ns = 0;
            continue;
        }
        if (fresh) {
            sizes_.push_back({row.bytes, {}, 0, 0});
        }
        Size& size = sizes_.back();
        const double before = size.points.empty() ? 0 : size.points.back().second;
        size.points.emplace_back(row.depth, std::max(static_cast<double>(row.mean_ns), before));
        const double each = size.points.back().second / row.depth;
        size.beyond_ns = limited ? 0 : each;
        size.work_ns = size.points.size() == 1 ? each : std::min(size.work_ns, each);
    }
}

double DepthCurve::at(const Size& size, double depth) {
    const auto& points = size.points;
    if (depth >= points.back().first) {
        return points.back().second + (depth - points.back().first) * size.beyond_ns;
    }
    if (depth <= points.front().first) {
        return points.front().second;
    }
    size_t upper = 1;
    while (points[upper].first < depth) {
        ++upper;
    }
    const auto& [from, low] = points[upper - 1];
    const auto& [to, high] = points[upper];
    return low + (high - low) * (depth - from) / (to - from);
}

template <class Of>
double DepthCurve::between(int64_t bytes, Of of) const {
    if (bytes <= sizes_.front().bytes || sizes_.size() == 1) {
        return of(sizes_.front());
    }
    if (bytes >= sizes_.back().bytes) {
        return of(sizes_.back()) * static_cast<double>(bytes) / static_cast<double>(sizes_.back().bytes);
    }
    size_t upper = 1;
    while (sizes_[upper].bytes < bytes) {
        ++upper;
    }
    const Size &a = sizes_[upper - 1], &b = sizes_[upper];
    const double share = static_cast<double>(bytes - a.bytes) / static_cast<double>(b.bytes - a.bytes);
    return of(a) + (of(b) - of(a)) * share;
}

double DepthCurve::taken_ns(int64_t bytes, double depth) const {
    return between(bytes, [&](const Size& size) { return at(size, depth); });
}

double DepthCurve::work_ns(int64_t bytes) const {
    return std::max(between(bytes, [](const Size& size) { return size.work_ns; }), 1e-3);
}

double InFlightWork::others(double each, int64_t now) {
    while (!heap_.empty() && heap_.front().first <= now) {
        sum_ -= heap_.front().second;
        std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
        heap_.pop_back();
    }
    if (heap_.empty()) {
        sum_ = 0;  // nothing is left of what rounding made
    }
    return std::max(sum_, 0.0) / each;
}

void InFlightWork::add(double work_ns, int64_t end) {
    sum_ += work_ns;
    heap_.emplace_back(end, work_ns);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

}  // namespace reprise

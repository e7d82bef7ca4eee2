// SPDX-License-Identifier: MIT
// How long a request takes beside others that are in flight, by the rows of a storage model.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "calibrate/storage_model.h"

namespace reprise {

/// Limits are modelled apart. So requests that stood still do not count, rows that a limit decided are left out but for
/// a size that has no others, and beyond them a request is taken to take no longer.
class DepthCurve {
public:
    explicit DepthCurve(const std::vector<DepthRow>& rows);

    bool empty() const { return sizes_.empty(); }
    /// Whether rows tell about such requests, so that taken_ns(bytes, 1) is their own time.
    bool covers(int64_t bytes) const { return !empty() && bytes <= sizes_.back().bytes; }
    /// ns, of one of `bytes` where the others are worth `depth` - 1 of it.
    double taken_ns(int64_t bytes, double depth) const;
    /// How much longer than alone, ns.
    double extra_ns(int64_t bytes, double depth) const { return taken_ns(bytes, depth) - taken_ns(bytes, 1); }
    /// What one adds to the time of all that come after it where the storage has as much as it can do, ns. Not 0.
    double work_ns(int64_t bytes) const;

private:
    struct Size {
        int64_t bytes = 0;
        std::vector<std::pair<double, double>> points;  // depth, ns of a request; both ascend
        double beyond_ns = 0;                           // for each more in flight after the last one
        double work_ns = 0;
    };
    static double at(const Size& size, double depth);
    /// Of the sizes next to `bytes`.
    template <class Of>
    double between(int64_t bytes, Of of) const;

    std::vector<Size> sizes_;
};

/// What is in flight at one device, in time that it takes.
class InFlightWork {
public:
    /// So many requests with a work of `each` ns, that left are over by `now`, ns. In the order of `now`.
    double others(double each, int64_t now);
    void add(double work_ns, int64_t end);

private:
    std::vector<std::pair<int64_t, double>> heap_;  // the first to end on top
    double sum_ = 0;
};

}  // namespace reprise

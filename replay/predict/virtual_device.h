// SPDX-License-Identifier: MIT
// The device of a prediction: what it does with so many requests in flight, and limits of bytes and of requests per
// second that all share.
#pragma once

#include <cstdint>
#include <vector>

#include "calibrate/storage_model.h"
#include "replay/predict/depth_curve.h"
#include "replay/predict/write_back.h"

namespace reprise {

class VirtualDevice {
public:
    explicit VirtualDevice(const StorageModel& model);

    /// Who asks: a call, which waits, or a ring. A model measures the two apart.
    enum class By : uint8_t { call, ring };

    /// What a read takes with nothing else in flight and where no limit holds it up, ns.
    double alone_ns(int64_t bytes, By by) const;
    /// When a read of `bytes`, one piece, that is asked for at `now` is over, ns. In the order of `now`.
    int64_t read(int64_t bytes, int64_t now, By by = By::call);
    /// The same of a write past the cache, after what `cache` sent before it.
    int64_t write(int64_t bytes, int64_t now, WriteBack& cache, By by = By::call);

private:
    /// What may pass in a second; unused time is saved up to `burst`, ns. With a `step`, ns, what passes in that time
    /// is let through at once, each time after so long: what is not used by the end of the next step is lost
    /// (blk-throttle.c; measured on Linux 6.18).
    class Limit {
    public:
        Limit(double per_second, int64_t burst, int64_t step) : per_second_(per_second), burst_(burst), step_(step) {}
        /// When so much that comes at `begin` has passed.
        int64_t pass(double amount, int64_t begin);

    private:
        int64_t pass_in_steps(int64_t takes, int64_t begin);

        double per_second_;  // 0: no limit
        int64_t burst_, step_;
        int64_t free_ = 0;            // when all that was let in would have passed evenly, ns
        int64_t start_ = 0;           // of the steps
        int64_t last_ = -kRestedYet;  // when the last one passed
        static constexpr int64_t kRestedYet = INT64_MAX / 4;
    };
    /// The channel that is free first: when it begins.
    int64_t& channel();
    int64_t beside_others(const DepthCurve& curve, int64_t bytes, int64_t now, double alone_ns);

    const StorageModel& model_;
    const DepthCurve reads_by_depth_, writes_by_depth_;  // empty: not measured
    const double most_written_;                          // past the cache, bytes per second
    InFlightWork in_flight_;
    std::vector<int64_t> channel_free_;  // when each of them is, ns; where depth was not measured
    Limit bytes_, requests_;             // of reads
    Limit writes_;                       // requests past the cache
};

}  // namespace reprise

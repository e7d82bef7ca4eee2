// SPDX-License-Identifier: MIT
// Bursts of writing, as checkpoints make them: much in a short time, then nothing for long.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace reprise {

struct Burst {
    int64_t begin_ns = 0, end_ns = 0;  // since the beginning
    double bytes = 0;
};

struct Bursts {
    std::vector<Burst> bursts;  // in order of time; none where writing was spread
    double bytes = 0;           // written in all
    int64_t period_ns = 0;      // median distance of their beginnings; 0 of fewer than two
};

/// `bytes`: written in intervals of `interval_ns`. Intervals with writes that are less than a fiftieth of the whole
/// time apart belong together; bursts are what has a hundredth of all bytes, unless they take most of the time
/// together.
Bursts find_bursts(std::span<const double> bytes, double interval_ns);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// What a storage allows in the long run, by when its reads were over.
#pragma once

#include <cstdint>
#include <span>

namespace reprise {

struct SteadyRate {
    double per_second = 0;  // reads
    int64_t burst_ns = 0;   // how long it takes, at that rate, to read what came at once in the beginning
    int64_t step_ns = 0;    // the limit lets so much through at once, each time after that long; 0: evenly
};

/// `done` counts the reads that were over in each `width_ns`, from the first one on. The rate is the slope of a line
/// through their sums, but for those of the first fifth.
SteadyRate steady_rate(std::span<const int64_t> done, int64_t width_ns);

}  // namespace reprise

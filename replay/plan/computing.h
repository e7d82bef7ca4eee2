// SPDX-License-Identifier: MIT
// What recorded computing is to a replay: which of it takes the processor, until when, and how much of it the
// recording has at once.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "calibrate/compute.h"
#include "formats/oplog/op.h"

namespace reprise {

/// The length of computing, by powers of 2: below 64; of what took no time 0.
inline unsigned length_of(int64_t ns) { return std::bit_width(static_cast<uint64_t>(std::max<int64_t>(ns, 0))); }

/// Decided once per run.
struct Computing {
    DelayPolicy policy = DelayPolicy::sleep;  // never automatic
    bool unknown = false;                     // also ops of which the log does not tell whether they computed

    /// Whether the log says that it took the processor, and not that it slept.
    static bool surely(OpKind kind, int64_t flags) {
        return kind == OpKind::compute && flags != kComputeSleeps && flags != kComputeUnknown;
    }
    bool takes_processor(OpKind kind, int64_t flags) const {
        return policy != DelayPolicy::sleep && kind == OpKind::compute && flags != kComputeSleeps &&
               (flags != kComputeUnknown || unknown);
    }
};

/// Pace causal: when an op is over that takes the processor for `ns`, due at `due`, issued at `begin`. What waking up
/// took, `made_up` at most, is made up for; what other threads took is not, as the job itself would have lost it.
inline int64_t compute_deadline(int64_t due, int64_t begin, int64_t ns, int64_t made_up) {
    return std::max(due, begin - made_up) + ns;
}
/// From when on the op after it counts, where it ended at `end`, up to `overshoot` late.
inline int64_t compute_passed(int64_t deadline, int64_t end, int64_t overshoot) {
    return end > deadline + overshoot ? end : deadline;
}

/// How many processors the tasks of a recording computed on at once, at most: over stretches of a tenth of a second, or
/// longer ones where the recording is long.
class ComputeLoad {
public:
    /// Nothing begins before `first` (ns).
    explicit ComputeLoad(int64_t first = 0) : first_(first) {}
    /// An op that computed.
    void add(int64_t begin, int64_t duration);
    double peak() const;

private:
    void coarsen();
    static constexpr size_t kMostBins = 1 << 14;
    int64_t first_ = 0, width_ = 100'000'000;  // ns
    std::vector<double> bins_;                 // ns computed in each
};

}  // namespace reprise

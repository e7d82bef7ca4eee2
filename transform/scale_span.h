// SPDX-License-Identifier: MIT
// What of a recording is a whole epoch, from where to where: played again for more epochs, left out for fewer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transform/scale_cuts.h"
#include "transform/scale_moments.h"
#include "transform/scale_past.h"

namespace reprise {

/// From a moment of one epoch to the same of a later one.
struct EpochSpan {
    static constexpr size_t kEnd = SIZE_MAX;  // no moment: when the last access of the epoch was made
    uint32_t first = 0, last = 0;             // epochs
    size_t from = kEnd, to = kEnd;            // moments of them
};

/// Where an epoch may be left for another one: up to the first moment and from the second one on, as what lies between
/// is made longer or shorter.
struct EpochSides {
    size_t until = SIZE_MAX, from = 0;
};

/// What to play again, or to leave out, for `epochs`; the recording has two or more, and another number of them.
EpochSpan find_span(const ScaleRecording& recording, const Moments& moments, const std::vector<EpochSides>& sides,
                    uint32_t epochs);

/// When the last access of the epoch and of those before was made (ns).
int64_t end_of_reads(const ScaleRecording& recording, uint32_t epoch);
/// Everything up to there: all that is before `past`, these accesses, and what tasks did meanwhile.
Cut cut_after_reads(const ScaleRecording& recording, CausalPast past, uint32_t epoch);

}  // namespace reprise

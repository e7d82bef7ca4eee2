// SPDX-License-Identifier: MIT
// In what order samples are read: one after the other, shuffled, or shuffled within a window as shuffle buffers do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/oplog/op.h"

namespace reprise {

struct SampleOrder {
    enum class Kind : uint8_t { too_few, in_order, windowed, shuffled };
    Kind kind = Kind::too_few;
    size_t samples = 0;
    /// Of consecutive reads of the same task, the share that goes forward: 1 in order, one half shuffled.
    double forward_share = 0;
    /// How many samples a sample comes early at most, and itself: the buffer that was shuffled in. Without meaning
    /// where they are read in order.
    double window = 0;
};
/// "in order", "shuffled", ...
std::string_view sample_order_name(SampleOrder::Kind kind);

struct SampleRead {
    uint32_t rank = 0;  // of the sample in the order of the data set, from 0, without gaps
    TaskId task = 0;
};

/// `reads`: of one pass over the set, by time. Several tasks may each read in order. Fewer than 16 are too few.
SampleOrder order_of(std::span<const SampleRead> reads);

/// Less, with numbers in names by their value: img_2 before img_10.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace reprise

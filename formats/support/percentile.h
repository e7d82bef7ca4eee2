// SPDX-License-Identifier: MIT
// What a percentile is: the nearest rank, without interpolation, so that it is a value that occurred.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace reprise {

/// Rank, from 1, of the percentile `share` (0..1) among `count` values in order: the least value that at least that
/// share of them do not exceed. `count` is at least 1.
inline uint64_t percentile_rank(double share, uint64_t count) {
    // 0.07 * 100 is slightly more than 7 in floating point; the next lower share gives 7 again.
    const double wanted = std::nextafter(std::clamp(share, 0.0, 1.0), 0.0) * static_cast<double>(count);
    return std::clamp<uint64_t>(static_cast<uint64_t>(std::ceil(wanted)), 1, count);
}

/// Of values in any order. Of none: T{}.
template <class T>
T percentile(std::vector<T> values, double share) {
    if (values.empty()) {
        return {};
    }
    const uint64_t rank = percentile_rank(share, values.size());
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

/// The lower one of an even number. Of none: T{}.
template <class T>
T median(std::vector<T> values) {
    return percentile(std::move(values), 0.5);
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// The median of measurements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace reprise {

/// The upper one of an even number. Of none: T{}.
template <class T>
T median(std::vector<T> values) {
    if (values.empty()) {
        return {};
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace reprise

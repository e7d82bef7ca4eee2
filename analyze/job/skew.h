// SPDX-License-Identifier: MIT
// How unevenly something is shared out.
#pragma once

#include <cstddef>
#include <vector>

namespace reprise {

struct Skew {
    size_t count = 0;  // that have any
    double most = 0, mean = 0;
    double gini = 0;       // 0: all have the same; towards 1: one has everything
    double top_share = 0;  // of the tenth that has most; at least one

    /// How many times the mean the greatest has; 0 of none.
    double most_over_mean() const { return mean > 0 ? most / mean : 0; }
};

/// Values of 0 or less are left out.
Skew skew_of(std::vector<double> values);

}  // namespace reprise

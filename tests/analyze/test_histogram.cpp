// SPDX-License-Identifier: MIT
// Percentiles against sorted values.
#include "analyze/histogram.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support.h"

using namespace reprise;

TEST_CASE("percentiles are at most 0.8 % above the sorted values, over nine decades") {
    std::mt19937_64 random(11);
    std::vector<int64_t> values;
    Histogram histogram, left, right;
    for (int i = 0; i < 100000; ++i) {
        const auto value = static_cast<int64_t>(std::exp(std::uniform_real_distribution<double>(0, 21)(random)));
        values.push_back(value);
        histogram.add(value);
        (i % 3 ? left : right).add(value);
    }
    left.merge(right);
    std::sort(values.begin(), values.end());
    for (const double share : {0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
        const auto rank =
            std::max<size_t>(1, static_cast<size_t>(std::ceil(share * static_cast<double>(values.size()))));
        const auto exact = static_cast<double>(values[rank - 1]);
        INFO(share);
        const auto found = static_cast<double>(histogram.percentile(share));
        CHECK(found >= exact);
        CHECK(found <= exact * 1.008);
        CHECK(histogram.percentile(share) == left.percentile(share));
    }
    CHECK(histogram.min() == values.front());
    CHECK(histogram.max() == values.back());
    CHECK(histogram.count() == values.size());
}

TEST_CASE("a histogram takes nothing, zero, negative and the greatest value") {
    Histogram histogram;
    CHECK(histogram.percentile(0.5) == 0);
    CHECK(histogram.max() == 0);
    histogram.add(-5);
    CHECK(histogram.max() == 0);
    histogram.add(std::numeric_limits<int64_t>::max());
    CHECK(histogram.percentile(1) == std::numeric_limits<int64_t>::max());
    CHECK(histogram.max() == std::numeric_limits<int64_t>::max());
    Histogram small;
    for (int64_t value = 0; value < 256; ++value) {
        small.add(value);
    }
    for (int64_t value = 0; value < 256; ++value) {
        CHECK(small.percentile(static_cast<double>(value + 1) / 256) == value);
    }
}

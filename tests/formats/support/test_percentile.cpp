// SPDX-License-Identifier: MIT
// The nearest rank, against its definition.
#include "formats/support/percentile.h"

#include <algorithm>
#include <random>

#include "tests/support.h"

using namespace reprise;

TEST_CASE("percentiles of a few values are those of the textbook") {
    const std::vector<int> five = {35, 20, 50, 15, 40};
    CHECK(percentile(five, 0.05) == 15);
    CHECK(percentile(five, 0.30) == 20);
    CHECK(percentile(five, 0.40) == 20);
    CHECK(percentile(five, 0.50) == 35);
    CHECK(percentile(five, 1.00) == 50);
    CHECK(median(five) == 35);
    CHECK(median(std::vector<int>{4, 1, 3, 2}) == 2);
    CHECK(median(std::vector<double>{}) == 0.0);
    CHECK(percentile(std::vector<int>{7}, 0.0) == 7);
}

TEST_CASE("a share of whole values is not rounded up to the next one") {
    // 0.07 * 100 is 7.000000000000001 in floating point.
    for (uint64_t count = 1; count <= 1000; ++count) {
        for (uint64_t rank = 1; rank <= count; ++rank) {
            REQUIRE(percentile_rank(static_cast<double>(rank) / static_cast<double>(count), count) == rank);
        }
    }
    CHECK(percentile_rank(0.07, 100) == 7);
    CHECK(percentile_rank(0.999, 1000) == 999);
    CHECK(percentile_rank(0.9991, 1000) == 1000);
}

TEST_CASE("a percentile is the least value that the share does not exceed") {
    std::mt19937_64 random(5);
    for (int round = 0; round < 200; ++round) {
        std::vector<int64_t> values(1 + random() % 50);
        for (int64_t& value : values) {
            value = static_cast<int64_t>(random() % 20);
        }
        const double share = std::uniform_real_distribution<double>(0, 1)(random);
        const int64_t found = percentile(values, share);
        const auto up_to = [&](int64_t limit) {
            return static_cast<double>(
                std::count_if(values.begin(), values.end(), [&](int64_t value) { return value <= limit; }));
        };
        const double wanted = share * static_cast<double>(values.size());
        CHECK(std::find(values.begin(), values.end(), found) != values.end());
        CHECK(up_to(found) >= wanted);
        CHECK(up_to(found - 1) < std::max(wanted, 1.0));
    }
}

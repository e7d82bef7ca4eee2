// SPDX-License-Identifier: MIT
// Times counted in fixed buckets from 100 ns to 100 s, three a decade: small, quick to copy, and the same in all runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace reprise {

/// Upper bounds, ns.
inline constexpr std::array<int64_t, 28> kTimeBucketBounds = {
    100,           200,           500,           1'000,          2'000,          5'000,          10'000,
    20'000,        50'000,        100'000,       200'000,        500'000,        1'000'000,      2'000'000,
    5'000'000,     10'000'000,    20'000'000,    50'000'000,     100'000'000,    200'000'000,    500'000'000,
    1'000'000'000, 2'000'000'000, 5'000'000'000, 10'000'000'000, 20'000'000'000, 50'000'000'000, 100'000'000'000};

struct TimeBuckets {
    /// Of each bucket by itself, a value that equals a bound below it; the last one: beyond all bounds.
    std::array<uint64_t, kTimeBucketBounds.size() + 1> counts{};
    double sum_ns = 0;

    /// Negative times count as 0.
    void add(int64_t ns) {
        ns = std::max<int64_t>(ns, 0);
        const auto at = std::lower_bound(kTimeBucketBounds.begin(), kTimeBucketBounds.end(), ns);
        ++counts[static_cast<size_t>(at - kTimeBucketBounds.begin())];
        sum_ns += static_cast<double>(ns);
    }
    void merge(const TimeBuckets& other) {
        for (size_t i = 0; i < counts.size(); ++i) {
            counts[i] += other.counts[i];
        }
        sum_ns += other.sum_ns;
    }
    uint64_t count() const {
        uint64_t all = 0;
        for (const uint64_t one : counts) {
            all += one;
        }
        return all;
    }
};

}  // namespace reprise

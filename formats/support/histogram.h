// SPDX-License-Identifier: MIT
// Counts of values in buckets of constant relative width, for percentiles without keeping the values.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/support/bytes.h"

namespace reprise {

/// Log-linear buckets: values below 256 exactly, above in 128 buckets per power of two (the scheme of HdrHistogram). A
/// percentile (formats/support/percentile.h) is the greatest value that its bucket got: a value that occurred, at most
/// 0.8 % above the exact one. Least, greatest and sum are exact. Negative values count as 0. At most 120 KiB.
class Histogram {
public:
    void add(int64_t value, uint64_t times = 1);
    void merge(const Histogram& other);

    uint64_t count() const { return count_; }
    int64_t min() const { return count_ ? min_ : 0; }
    int64_t max() const { return max_; }
    double mean() const { return count_ ? sum_ / static_cast<double>(count_) : 0; }
    double sum() const { return sum_; }
    /// `share` in 0..1; 0 where there are no values.
    int64_t percentile(double share) const;
    /// As bytes, and back: exactly the same. unpack() throws Corrupt for bytes that pack() does not make.
    void pack(Bytes& out) const;
    static Histogram unpack(ByteReader& in);
    /// Calls visit(greatest value, count) of every bucket that has any, by value.
    template <class Visit>
    void each(Visit&& visit) const {
        for (const Bucket& bucket : buckets_) {
            if (bucket.count != 0) {
                visit(bucket.greatest, bucket.count);
            }
        }
    }

private:
    struct Bucket {
        uint64_t count = 0;
        int64_t greatest = 0;
    };
    std::vector<Bucket> buckets_;
    uint64_t count_ = 0;
    double sum_ = 0;
    int64_t min_ = 0, max_ = 0;
};

}  // namespace reprise

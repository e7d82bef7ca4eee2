// SPDX-License-Identifier: MIT
// Buckets and percentiles of Histogram.
#include "formats/support/histogram.h"

#include <algorithm>
#include <bit>

#include "formats/support/percentile.h"

namespace reprise {
namespace {

constexpr int kBits = 7;  // 2^7 buckets per power of two
constexpr uint64_t kExact = uint64_t{2} << kBits;

size_t bucket_of(uint64_t value) {
    if (value < kExact) {
        return value;
    }
    const int shift = std::bit_width(value) - 1 - kBits;
    return static_cast<size_t>(shift) * (kExact / 2) + static_cast<size_t>(value >> shift);
}

}  // namespace

void Histogram::add(int64_t value, uint64_t times) {
    if (times == 0) {
        return;
    }
    value = std::max<int64_t>(0, value);
    const size_t bucket = bucket_of(static_cast<uint64_t>(value));
    if (bucket >= buckets_.size()) {
        buckets_.resize(bucket + 1);
    }
    buckets_[bucket].count += times;
    buckets_[bucket].greatest = std::max(buckets_[bucket].greatest, value);
    min_ = count_ ? std::min(min_, value) : value;
    max_ = std::max(max_, value);
    count_ += times;
    sum_ += static_cast<double>(value) * static_cast<double>(times);
}

void Histogram::merge(const Histogram& other) {
    if (other.count_ == 0) {
        return;
    }
    if (other.buckets_.size() > buckets_.size()) {
        buckets_.resize(other.buckets_.size());
    }
    for (size_t i = 0; i < other.buckets_.size(); ++i) {
        buckets_[i].count += other.buckets_[i].count;
        buckets_[i].greatest = std::max(buckets_[i].greatest, other.buckets_[i].greatest);
    }
    min_ = count_ ? std::min(min_, other.min_) : other.min_;
    max_ = std::max(max_, other.max_);
    count_ += other.count_;
    sum_ += other.sum_;
}

int64_t Histogram::percentile(double share) const {
    if (count_ == 0) {
        return 0;
    }
    const uint64_t rank = percentile_rank(share, count_);
    uint64_t seen = 0;
    for (const Bucket& bucket : buckets_) {
        seen += bucket.count;
        if (seen >= rank) {
            return bucket.greatest;
        }
    }
    return max_;
}

}  // namespace reprise

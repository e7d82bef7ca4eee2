// SPDX-License-Identifier: MIT
// Buckets and percentiles of Histogram.
#include "formats/support/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

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

void Histogram::pack(Bytes& out) const {
    put_varint(out, count_);
    if (count_ == 0) {
        return;
    }
    put_fixed(out, sum_);
    put_varint(out, static_cast<uint64_t>(min_));
    uint64_t filled = 0;
    for (const Bucket& bucket : buckets_) {
        filled += bucket.count != 0 ? 1 : 0;
    }
    put_varint(out, filled);
    uint64_t before = 0;  // ascending, as the buckets are
    for (const Bucket& bucket : buckets_) {
        if (bucket.count != 0) {
            put_varint(out, static_cast<uint64_t>(bucket.greatest) - before);
            put_varint(out, bucket.count);
            before = static_cast<uint64_t>(bucket.greatest);
        }
    }
}

Histogram Histogram::unpack(ByteReader& in) {
    Histogram out;
    const uint64_t count = in.varint();
    if (count == 0) {
        return out;
    }
    const auto sum = in.fixed<double>();
    const uint64_t least = in.count(INT64_MAX);
    uint64_t value = 0;
    size_t last = SIZE_MAX;
    for (size_t n = in.count(in.left()); n > 0; --n) {
        value += in.count(static_cast<size_t>(INT64_MAX) - value);
        const uint64_t times = in.varint();
        const size_t bucket = bucket_of(value);
        if (times == 0 || bucket == last || times > count - out.count_) {
            throw Corrupt("the buckets of a histogram contradict each other");
        }
        last = bucket;
        out.add(static_cast<int64_t>(value), times);
    }
    if (out.count_ != count || least > static_cast<uint64_t>(out.min_) ||
        bucket_of(least) != bucket_of(static_cast<uint64_t>(out.min_)) || !std::isfinite(sum) || sum < 0) {
        throw Corrupt("the figures of a histogram contradict its buckets");
    }
    out.min_ = static_cast<int64_t>(least);
    out.sum_ = sum;
    return out;
}

}  // namespace reprise

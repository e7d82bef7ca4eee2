// SPDX-License-Identifier: MIT
// Counts values by magnitude, so that percentiles of any number of ops cost a fixed amount of memory.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace reprise {

/// Non-negative 64-bit values in buckets of at most 1/64 relative width; values below 64 are exact.
class Magnitudes {
public:
    void add(int64_t value) {
        const auto v = static_cast<uint64_t>(value < 0 ? 0 : value);
        ++counts_[bucket(v)];
        ++count_;
        sum_ += static_cast<double>(v);
        greatest_ = v > greatest_ ? v : greatest_;
    }
    uint64_t count() const { return count_; }
    double sum() const { return sum_; }
    uint64_t greatest() const { return greatest_; }
    /// The value that a share `p` of all values do not exceed (nearest rank; middle of its bucket). 0 where empty.
    double percentile(double p) const {
        if (count_ == 0) {
            return 0.0;
        }
        auto rank = static_cast<uint64_t>(p * static_cast<double>(count_) + 0.999999999);
        rank = rank < 1 ? 1 : rank > count_ ? count_ : rank;
        uint64_t seen = 0;
        for (size_t i = 0; i < counts_.size(); ++i) {
            seen += counts_[i];
            if (seen >= rank) {
                const double middle = value_of(i);
                return middle < static_cast<double>(greatest_) ? middle : static_cast<double>(greatest_);
            }
        }
        return static_cast<double>(greatest_);
    }

private:
    static constexpr unsigned kBits = 6;  // of precision
    static size_t bucket(uint64_t v) {
        if (v < (1u << kBits)) {
            return static_cast<size_t>(v);
        }
        const unsigned shift = static_cast<unsigned>(std::bit_width(v)) - 1 - kBits;
        return (static_cast<size_t>(shift + 1) << kBits) + static_cast<size_t>((v >> shift) & ((1u << kBits) - 1));
    }
    static double value_of(size_t index) {
        if (index < (1u << kBits)) {
            return static_cast<double>(index);
        }
        const unsigned shift = static_cast<unsigned>(index >> kBits) - 1;
        const uint64_t low = ((1ull << kBits) + (index & ((1u << kBits) - 1))) << shift;
        return static_cast<double>(low) + static_cast<double>((1ull << shift) - 1) / 2.0;
    }
    std::array<uint64_t, (64 - kBits + 1) << kBits> counts_{};
    uint64_t count_ = 0, greatest_ = 0;
    double sum_ = 0.0;
};

}  // namespace reprise

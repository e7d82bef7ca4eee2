// SPDX-License-Identifier: MIT
// Orders: permutations that need no memory, and a shuffle buffer.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "generate/distribution.h"

namespace reprise {

/// A permutation of 0 to `count` - 1, by a Feistel network of which results beyond `count` are walked along: the same
/// for the same key everywhere.
class Permutation {
public:
    Permutation(uint64_t count, uint64_t key) : count_(count), key_(key) {
        const int width = count <= 2 ? 2 : std::bit_width(count - 1);
        low_bits_ = width / 2;
        low_ = (uint64_t{1} << low_bits_) - 1;
        high_ = (uint64_t{1} << (width - low_bits_)) - 1;
    }
    uint64_t operator()(uint64_t at) const {
        do {
            at = once(at);
        } while (at >= count_);
        return at;
    }

private:
    uint64_t once(uint64_t at) const {
        uint64_t high = at >> low_bits_, low = at & low_;
        for (uint64_t round = 0; round < 2; ++round) {
            high ^= mixed_bits(key_ + 2 * round, low) & high_;
            low ^= mixed_bits(key_ + 2 * round + 1, high) & low_;
        }
        return high << low_bits_ | low;
    }
    uint64_t count_, key_, low_ = 0, high_ = 0;  // masks of the two parts
    int low_bits_ = 0;
};

/// The samples of an epoch in the order in which they are read: as they lie, all of them drawn, or out of a buffer that
/// is filled as they lie.
class EpochOrder {
public:
    /// `buffer`: 0 draws from all.
    EpochOrder(uint64_t count, bool shuffled, uint64_t buffer, uint64_t key)
        : all_(count, key), count_(count), key_(key), shuffled_(shuffled) {
        if (shuffled && buffer != 0 && buffer < count) {
            buffer_.resize(buffer);
            for (uint64_t i = 0; i < buffer; ++i) {
                buffer_[i] = i;
            }
            filled_ = buffer;
        }
    }
    uint64_t next() {
        const uint64_t at = at_++;
        if (!shuffled_) {
            return at;
        }
        if (buffer_.empty()) {
            return all_(at);
        }
        const size_t place = mixed_bits(key_, at) % buffer_.size();
        const uint64_t sample = buffer_[place];
        if (filled_ < count_) {
            buffer_[place] = filled_++;
        } else {
            buffer_[place] = buffer_.back();
            buffer_.pop_back();
            if (buffer_.empty()) {
                shuffled_ = false;  // all are out
            }
        }
        return sample;
    }

private:
    Permutation all_;
    uint64_t count_, key_, at_ = 0, filled_ = 0;
    bool shuffled_;
    std::vector<uint64_t> buffer_;
};

}  // namespace reprise

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
        const int width = count <= 1 ? 2 : std::bit_width(count - 1);
        half_ = (width + 1) / 2;
        mask_ = (uint64_t{1} << half_) - 1;
    }
    uint64_t operator()(uint64_t at) const {
        do {
            at = once(at);
        } while (at >= count_);
        return at;
    }

private:
    uint64_t once(uint64_t at) const {
        uint64_t left = at >> half_, right = at & mask_;
        for (uint64_t round = 0; round < 4; ++round) {
            const uint64_t mixed = left ^ (mixed_bits(key_ + round, right) & mask_);
            left = right;
            right = mixed;
        }
        return left << half_ | right;
    }
    uint64_t count_, key_, mask_;
    int half_;
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

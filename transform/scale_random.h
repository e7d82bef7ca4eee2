// SPDX-License-Identifier: MIT
// Random numbers that are the same everywhere for the same seed (splitmix64).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "formats/support/random.h"

namespace reprise {

/// A key of two numbers.
inline uint64_t mixed(uint64_t a, uint64_t b) {
    uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    return x;
}

class ScaleRandom {
public:
    explicit ScaleRandom(uint64_t seed) : state_(seed) {}
    uint64_t next() { return splitmix64(state_ += kGolden); }
    /// Below `end`, which is not 0.
    size_t below(size_t end) { return static_cast<size_t>(next() % end); }
    template <class T>
    void shuffle(std::vector<T>& values) {
        for (size_t i = values.size(); i > 1; --i) {
            std::swap(values[i - 1], values[below(i)]);
        }
    }

private:
    uint64_t state_;
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Whether accesses to a file go on where the one before ended, jump by equal distances, or are random.
#pragma once

#include <cstdint>

namespace reprise {

enum class AccessOrder : uint8_t { sequential, strided, random };

/// How many accesses were of each order.
struct AccessOrders {
    uint64_t sequential = 0, strided = 0, random = 0;

    uint64_t total() const { return sequential + strided + random; }
    AccessOrders& operator+=(const AccessOrders& other) {
        sequential += other.sequential;
        strided += other.strided;
        random += other.random;
        return *this;
    }
    bool operator==(const AccessOrders&) const = default;
};

/// The accesses of one task through one open instance or mapping, in their order. The first one is sequential where it
/// begins at 0. A jump is strided where it is as far as the one before it, from where the run before began; the first
/// jump of such a row is counted anew once the second has shown that it was one.
class AccessStream {
public:
    /// Counts the access into `into`, which all its accesses go to.
    AccessOrder see(int64_t offset, int64_t bytes, AccessOrders& into) {
        const bool goes_on = offset == next_;
        next_ = sum(offset, bytes > 0 ? bytes : 0);
        if (goes_on) {
            ++into.sequential;
            return AccessOrder::sequential;
        }
        const auto jump = static_cast<int64_t>(static_cast<uint64_t>(offset) - static_cast<uint64_t>(run_));
        run_ = offset;
        if (jump != 0 && jump == jump_) {
            if (first_jump_) {
                --into.random;
                ++into.strided;
                first_jump_ = false;
            }
            ++into.strided;
            return AccessOrder::strided;
        }
        jump_ = jump;
        first_jump_ = true;
        ++into.random;
        return AccessOrder::random;
    }

private:
    /// Of numbers from a log: only whether sums are equal matters, so they may wrap.
    static int64_t sum(int64_t a, int64_t b) {
        return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    }
    int64_t next_ = 0, run_ = 0, jump_ = 0;
    bool first_jump_ = false;
};

}  // namespace reprise

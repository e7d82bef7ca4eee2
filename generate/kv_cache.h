// SPDX-License-Identifier: MIT
// Which block of a full storage tier a request loads, and which it replaces.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace reprise {

/// Blocks by when they were used last. Memory: 8 bytes a block.
class LeastRecentlyUsed {
public:
    /// All are in use, the first as the least recent.
    explicit LeastRecentlyUsed(uint32_t blocks) : before_(blocks + 1), after_(blocks + 1) {
        std::iota(after_.begin(), after_.end(), 1u);  // the last place, `blocks`, is the ring's head
        after_.back() = 0;
        for (uint32_t i = 0; i <= blocks; ++i) {
            before_[after_[i]] = i;
        }
    }
    void use(uint32_t block) {
        after_[before_[block]] = after_[block];
        before_[after_[block]] = before_[block];
        const auto head = static_cast<uint32_t>(after_.size() - 1);
        before_[block] = before_[head];
        after_[block] = head;
        after_[before_[head]] = block;
        before_[head] = block;
    }
    /// The least recent, which is the most recent then.
    uint32_t replace() {
        const uint32_t block = after_.back();
        use(block);
        return block;
    }

private:
    std::vector<uint32_t> before_, after_;
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Where bytes are not what they should be.
#pragma once

#include <cstddef>
#include <span>

namespace reprise {

/// Calls visit(begin, end) for each run of differing bytes, at most `most` times. Up to three equal bytes within a run
/// are part of it: in a wrong block one byte in 256 is right by chance.
template <class Visit>
void each_difference(std::span<const std::byte> got, std::span<const std::byte> want, size_t most, Visit&& visit) {
    constexpr size_t kByChance = 3;
    size_t at = 0;
    for (size_t runs = 0; runs < most; ++runs) {
        while (at < got.size() && got[at] == want[at]) {
            ++at;
        }
        if (at == got.size()) {
            return;
        }
        const size_t begin = at;
        size_t end = at;  // one past the last that differs
        for (; at < got.size() && at <= end + kByChance; ++at) {
            end = got[at] != want[at] ? at + 1 : end;
        }
        visit(begin, end);
        at = end;
    }
}

}  // namespace reprise

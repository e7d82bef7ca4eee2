// SPDX-License-Identifier: MIT
// Which bytes of its mapping a touch touches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace reprise {

/// flags of touch. Used again, as samples of a recording tell (capture --with mapped-uses): the page was mapped, so
/// there was no fault.
inline constexpr int64_t kTouchWrites = 1, kTouchAgain = 2;

/// Calls visit(offset in the mapping, bytes) for each range, in order. Ranges may lie anywhere: a skip of `list` is
/// negative where pages were touched backwards. Ends at a range that no mapping can have.
template <class Visit>
void each_touched(int64_t offset, int64_t size, std::span<const int64_t> list, Visit&& visit) {
    if (list.empty()) {
        if (offset >= 0 && size > 0) {
            visit(offset, size);
        }
        return;
    }
    int64_t at = offset;
    for (size_t i = 0; i + 1 < list.size(); i += 2) {
        int64_t end = 0;
        if (__builtin_add_overflow(at, list[i], &at) || __builtin_add_overflow(at, list[i + 1], &end) || at < 0 ||
            end < at) {
            return;
        }
        if (end > at) {
            visit(at, end - at);
        }
        at = end;
    }
}

/// Whether a page fault that ended at byte `last` of a mapped file may have mapped all up to the one at `at`: what the
/// page cache has as one piece is mapped as one. Such pieces have up to 2 MiB and lie at multiples of their size.
constexpr bool comes_with_fault(int64_t last, int64_t at) {
    constexpr int64_t kLeast = int64_t{128} << 10, kMost = int64_t{2} << 20;
    if (last < 0 || at <= last) {
        return false;
    }
    const int64_t piece = at & -at;
    return piece >= kLeast && last > at - (piece < kMost ? piece : kMost);
}

}  // namespace reprise

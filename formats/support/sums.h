// SPDX-License-Identifier: MIT
// Sums of what a log names, which may be anything: they end at the most that can be said.
#pragma once

#include <algorithm>
#include <cstdint>

namespace reprise {

inline void sum(uint64_t& to, uint64_t more) { to += std::min(more, UINT64_MAX - to); }
/// Of times: `to` is not negative, and what is negative counts as nothing.
inline void sum(int64_t& to, int64_t more) { to += std::clamp<int64_t>(more, 0, INT64_MAX - to); }

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Lengths of time and amounts of data that tests count in.
#pragma once

#include <cstdint>

namespace reprise {

inline constexpr int64_t kUs = 1'000;      // ns
inline constexpr int64_t kMs = 1'000'000;  // ns
inline constexpr int64_t kMiB = 1 << 20;   // bytes

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Flags of open(2) as op logs have them: those of x86-64 Linux, whatever machine reads the log.
#pragma once

#include <cstdint>

namespace reprise {

inline constexpr int64_t kOpenDirect = 040000;  ///< O_DIRECT
inline constexpr int64_t kOpenDsync = 010000;   ///< O_DSYNC, which is part of O_SYNC

}  // namespace reprise

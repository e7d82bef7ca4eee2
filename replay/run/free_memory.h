// SPDX-License-Identifier: MIT
// Memory that the page cache may take here.
#pragma once

#include <cstdint>
#include <optional>

#include "calibrate/own_groups.h"

namespace reprise {

/// Bytes: what the machine has available (MemAvailable, page cache included), or what the limits of this process's
/// control groups leave, if that is less. None: unknown.
std::optional<uint64_t> free_memory();

/// What the memory limits of a control group and those above it leave, page cache included; none: there is no limit.
std::optional<uint64_t> free_of_groups(const OwnGroup& group);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// What a limited replay had of memory, as a line and as JSON.
#pragma once

#include <string>

#include "cli/json_output.h"
#include "replay/limit/limited_run.h"

namespace reprise::cli {

/// "limit 200 MiB, data 800 MiB (ratio 4.00); used up to 200 MiB, limit reached 1,234 times; ..."
std::string memory_line(const LimitedMemory& memory);
Json memory_json(const LimitedMemory& memory);
Json io_limits_json(const IoLimits& limits);

}  // namespace reprise::cli

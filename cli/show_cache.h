// SPDX-License-Identifier: MIT
// What a replay's result says of the page cache.
#pragma once

#include <string>
#include <vector>

#include "cli/table.h"
#include "replay/prepare/cache_regime.h"
#include "replay/run/machine.h"

namespace reprise::cli {

/// One line: the regime, why it is that one, and what was in memory before and after the run.
std::string cache_line(const CacheReport& report);
/// Sentences: what is not as the regime says, and why it can be.
std::vector<std::string> cache_notes(const CacheReport& report, const MachineFacts& machine);
/// docs/replay.md lists the keys.
Json cache_json(const CacheReport& report);

}  // namespace reprise::cli

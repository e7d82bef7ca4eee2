// SPDX-License-Identifier: MIT
// Options that limit a replay's memory and I/O.
#pragma once

#include <optional>
#include <string>

#include "cli/options.h"
#include "replay/engine/engines.h"
#include "replay/limit/limited_run.h"
#include "replay/prepare/cache_regime.h"

namespace reprise::cli {

void add_limit_options(po::options_description& add);
/// Throws Error (usage).
RunLimits run_limits(const po::variables_map& values);
/// "read=50M,riops=1000". Throws Error (usage).
IoLimits io_limits_of(const std::string& text);
/// Data to memory. Throws Error (usage).
double ratio_of_text(const std::string& text);
/// Throws Error (usage) where other options contradict them.
void check_limits(const RunLimits& limits, EngineKind engine, std::optional<CacheRegime> regime);
/// "--memory 200M --io-limit read=50M"
std::string limit_words(const RunLimits& limits);

}  // namespace reprise::cli

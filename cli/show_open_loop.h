// SPDX-License-Identifier: MIT
// Requests of open loops: how long from when they were due, and how much of that they waited for a task.
#pragma once

#include <string>
#include <vector>

#include "cli/table.h"
#include "replay/plan/open_loop.h"

namespace reprise::cli {

/// "serve: 6,000, from due p50 120 us, p99 301 ms, max 310 ms; from begin p99 4 ms; 412 began late (max 299 ms)". A
/// line for each loop.
std::vector<std::string> open_loop_lines(const std::vector<OpenLoop>& loops);
/// `open_loops` of the JSON.
nlohmann::json open_loops_json(const std::vector<OpenLoop>& loops);

}  // namespace reprise::cli

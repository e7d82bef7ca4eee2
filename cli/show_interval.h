// SPDX-License-Identifier: MIT
// Where the time of a run went along its critical path, and how far the real job's may lie from it.
#pragma once

#include <optional>
#include <ostream>

#include "cli/table.h"
#include "replay/interval/interval.h"

namespace reprise::cli {

/// Two lines; nothing where nothing is known.
void print_interval(std::ostream& out, const PathTimes& path, const std::optional<TimeInterval>& interval);
/// Seconds by part; null where the run followed no causes.
Json path_json(const PathTimes& path);
/// How far each source of error reaches down and up, seconds.
Json interval_json(const TimeInterval& interval);

}  // namespace reprise::cli

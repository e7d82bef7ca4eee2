// SPDX-License-Identifier: MIT
// A summary as tables on the screen; info and compare show the same ones.
#pragma once

#include "analyze/summary.h"
#include "cli/table.h"

namespace reprise::cli {

/// Bytes from a log, printable in JSON too.
Cell text_cell(std::string_view bytes);

Table kinds_table(const Summary& summary);
Table roles_table(const Summary& summary);
/// Shares of task time: all tasks first, then the `most` longest ones. No rows if the log does not have them.
Table times_table(const Summary& summary, size_t most);
/// One row per device and, below it, one per epoch.
Table devices_table(const AcceleratorUse& use, const Tables& tables);
/// Notes are not shown with -q.
bool is_shown(const Counter& counter);
/// Worst first.
Table counters_table(const std::vector<Counter>& counters);
Json counters_json(const std::vector<Counter>& counters);
Json header_json(const Header& header);

}  // namespace reprise::cli

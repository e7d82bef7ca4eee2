// SPDX-License-Identifier: MIT
// A summary as tables on the screen; info and compare show the same ones.
#pragma once

#include "analyze/summary.h"
#include "cli/table.h"

namespace reprise::cli {

/// Bytes of a log; the table makes them printable on the screen, this in JSON.
Cell text_cell(std::string_view bytes);

Table kinds_table(const Summary& summary);
Table roles_table(const Summary& summary);
/// Where the tasks' time went, as shares: of all together first, then of the `most` that lasted longest. Without rows
/// where the log does not tell.
Table times_table(const Summary& summary, size_t most);
/// One row per device and, below it, one per epoch.
Table devices_table(const AcceleratorUse& use, const Tables& tables);
/// Worst first.
Table counters_table(const std::vector<Counter>& counters);
Json counters_json(const std::vector<Counter>& counters);
Json header_json(const Header& header);

}  // namespace reprise::cli

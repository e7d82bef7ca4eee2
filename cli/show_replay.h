// SPDX-License-Identifier: MIT
// The result of a replay, on the screen and as JSON.
#pragma once

#include <optional>
#include <utility>

#include "analyze/summary.h"
#include "cli/command.h"
#include "cli/show_summary.h"
#include "cli/table.h"
#include "formats/oplog/op_filter.h"
#include "replay/run/runner.h"

namespace reprise::cli {

/// What the run's accelerators did. `tables`: of the log that was replayed.
struct Accelerators : AcceleratorUse {
    Accelerators(AcceleratorUse use, const Tables& tables)
        : AcceleratorUse(std::move(use)), table(devices_table(*this, tables)), json(devices_json(*this, tables)) {}
    Table table;
    Json json;
};

/// `values`: of the command line, of which the result tells what was asked.
Json result_json(const ReplayResult& result, const std::optional<Accelerators>& summary,
                 const po::variables_map& values, const OpFilter& filter);
/// After how long computing is: by how much that differs from the recording, as waits do; nothing where it hardly does.
void print_after_waits(std::ostream& out, int64_t ns);
void print_result(const ReplayResult& result, const std::optional<Accelerators>& summary);

}  // namespace reprise::cli

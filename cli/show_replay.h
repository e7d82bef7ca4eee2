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

/// Accelerator utilisation of the run. `tables`: of the replayed log.
struct Accelerators : AcceleratorUse {
    Accelerators(AcceleratorUse use, const Tables& tables)
        : AcceleratorUse(std::move(use)), table(devices_table(*this, tables)), json(devices_json(*this, tables)) {}
    Table table;
    Json json;
};

/// `values`: the command line, which the result records.
Json result_json(const ReplayResult& result, const std::optional<Accelerators>& summary,
                 const po::variables_map& values, const OpFilter& filter);
/// Appends how much compute differs from the recording because its waits do; nothing below a millisecond.
void print_after_waits(std::ostream& out, int64_t ns);
void print_result(const ReplayResult& result, const std::optional<Accelerators>& summary);

}  // namespace reprise::cli

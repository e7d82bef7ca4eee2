// SPDX-License-Identifier: MIT
// What is in memory when the runs of a sweep begin: the same in each, or what is varied is not all that differs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/show_sweep.h"
#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"

namespace reprise::cli {

struct SweepCache {
    std::string option;    // of `replay --cache`; empty: a memory limit starts cold
    std::string sentence;  // "cold at the start of each run (the log does not say what was in memory)"
};

void add_sweep_cache_option(po::options_description& add);

/// As asked; else as `replay` would choose for the log, and where it would leave the cache as it is, warm if the
/// recording's was, and cold if that is not known. `filter`: what is replayed. `limited`: the runs have memory limits.
/// Throws Error (usage) where the log does not know enough.
SweepCache sweep_cache(const po::variables_map& values, const LogReader& log, const OpFilter& filter, bool limited);

/// Cells whose device served another share of the bytes than that of the others with the same memory: something else
/// was in the page cache. Empty: none, or there is nothing to compare.
std::vector<size_t> cells_of_other_cache(const SweepResult& result);

}  // namespace reprise::cli

// SPDX-License-Identifier: MIT
// What a sweep found: as a table, CSV, JSON, and pictures.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "cli/sweep_beside.h"
#include "cli/table.h"
#include "experiment/sweep.h"

namespace reprise::cli {

struct SweepResult {
    std::string log, root;
    std::vector<SweepAxis> axes;
    std::vector<SweepCell> cells;
    std::vector<std::vector<const SweepRun*>> runs;  // of each cell, as far as they were made
    size_t wanted = 0;                               // runs of each
    std::vector<SweepBeside> beside;                 // over the first axis
    bool predicted = false;                          // not run; `root` names the storage model
    std::string cache = {};                          // what was in memory when each run began; empty: nothing is said
};

struct SweepFiles {
    std::filesystem::path csv, svg, png;
};

/// Columns of CSV that hold figures: "elapsed_s".
std::vector<std::string> sweep_columns();
/// Whether every cell has a run that may be trusted, and they differ in nothing but what is varied.
bool sweep_believed(const SweepResult& result);
/// Into a folder. Throws Error (machine).
SweepFiles write_sweep(const SweepResult& result, const std::filesystem::path& folder);
void print_sweep(std::ostream& out, const SweepResult& result, const SweepFiles& files);
Json sweep_json(const SweepResult& result);

}  // namespace reprise::cli

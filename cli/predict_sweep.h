// SPDX-License-Identifier: MIT
// `reprise predict --sweep`: predictions over a grid.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/show_sweep.h"
#include "experiment/sweep.h"
#include "replay/predict/predict.h"

namespace reprise::cli {

void add_sweep_option(po::options_description& add);

/// "read=10M..1G", "ratio=0.5,1,2": at most two, the first one that of the pictures. Throws Error (usage).
std::vector<SweepAxis> predicted_axes(const std::vector<std::string>& asked);

/// What a cell changes. Throws Error (usage, machine): a cell that cannot be is one for itself.
struct PredictedCell {
    StorageModel storage;
    std::optional<double> gpu, ratio;
    std::optional<uint64_t> memory;
};
PredictedCell predicted_cell(const std::vector<SweepAxis>& axes, const SweepCell& cell, const StorageModel& storage);

/// Predictions of all cells; where one throws Error (machine), that cell is refused.
class PredictedSweep {
public:
    PredictedSweep(std::string log, std::string storage, std::vector<SweepAxis> axes);

    void run(const std::function<SweepRun(const SweepCell&)>& predict);
    SweepResult result() const;

private:
    SweepResult result_;
    std::vector<SweepRun> runs_;
};

}  // namespace reprise::cli

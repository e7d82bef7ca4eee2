// SPDX-License-Identifier: MIT
// `--runs`: several runs of one replay, what they say together, and which of them something else disturbed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/show_replay.h"
#include "cli/table.h"
#include "experiment/series.h"
#include "replay/run/runner.h"

namespace reprise::cli {

void add_series_options(po::options_description& add);
/// Whether the runs are a series, each with a log of its own.
bool is_series(const po::variables_map& values);
/// One run, where neither --runs nor --until-stable was given.
SeriesGoal series_goal(const po::variables_map& values);

struct SeriesRun {
    ReplayResult result;
    std::unique_ptr<RunFigures> figures;
    PeersReport ranks = {};  // of all ranks of the run, on rank 0; empty: it had one
};

class RunSeries {
public:
    explicit RunSeries(SeriesGoal goal) : goal_(goal) {}

    /// Runs until there are enough or one did not finish. `run`: with the number of the run, from 1.
    void run(const std::function<SeriesRun(size_t)>& run);

    /// The run nearest to the median.
    const SeriesRun& median_run() const { return runs_[verdict_.median_run]; }
    bool finished() const { return !runs_.empty() && runs_.back().result.ended == "complete"; }
    /// Whether the figures may be believed: all runs did what the recorded job did, at least half of them in its time.
    bool believed() const;
    bool did_one_job() const;
    /// The runs, then what they say.
    void print(std::ostream& out) const;
    Json json() const;

private:
    void widen();
    Table table() const;
    void print_verdict(std::ostream& out) const;
    void print_reasons(std::ostream& out) const;
    std::string not_stable() const;
    std::string example(const std::function<std::string(size_t)>& reason) const;

    SeriesGoal goal_;
    std::vector<SeriesRun> runs_;
    std::vector<RunOutcome> outcomes_;
    SeriesVerdict verdict_;
};

}  // namespace reprise::cli

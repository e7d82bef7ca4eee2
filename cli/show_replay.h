// SPDX-License-Identifier: MIT
// The result of a replay, on the screen and as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "analyze/job_figures.h"
#include "analyze/run_sums.h"
#include "analyze/summary.h"
#include "analyze/verdict.h"
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

/// A run beside its recording, counted as it is collected.
class RunFigures {
public:
    /// `tables`: of the replayed log.
    explicit RunFigures(const Tables& tables)
        : tables_(tables), recorded_(tables), here_(tables), recorded_use_(tables), here_use_(tables) {}
    /// Of several ranks, counted elsewhere.
    RunFigures(const Tables& tables, RunSums sums) : RunFigures(tables) {
        sums_ = std::move(sums);
        counted_ = true;
    }
    void add(const ObservedOp& op);
    /// After the run: what was counted.
    const RunSums& sums();
    /// After the run. Call once, before the others.
    void finish(const ReplayResult& result, const std::string& pace, EngineKind engine,
                const std::string& tolerated_by);

    /// The replayed log has other work for the accelerators than the recording: none is shown as recorded.
    void without_recorded_accelerators() { recorded_use_known_ = false; }
    /// That of a series, in place of the run's own.
    void put_interval(const std::optional<TimeInterval>& interval);
    const Verdict& verdict() const { return verdict_; }
    /// Of the run; none without accelerators, and where time means nothing to them.
    const std::optional<Accelerators>& accelerators() const { return accelerators_; }
    /// Bytes asked for of files on storage, before the first epoch and in each.
    const std::vector<uint64_t>& asked() const { return sums_.asked; }
    const Histogram& recorded_latency(OpKind kind) const { return sums_.recorded.latency[static_cast<size_t>(kind)]; }

private:
    const Tables& tables_;
    FigureCounter recorded_, here_;
    AcceleratorObserver recorded_use_, here_use_;
    RunSums sums_;
    bool recorded_use_known_ = true;
    bool counted_ = false;  // sums_ has what the counters had
    Verdict verdict_;
    std::optional<Accelerators> accelerators_;
};

/// `values`: the command line, which the result records.
Json result_json(const ReplayResult& result, const RunFigures& figures, const po::variables_map& values,
                 const OpFilter& filter);
/// Appends how much compute differs from the recording because its waits do; nothing below a millisecond.
void print_after_waits(std::ostream& out, int64_t ns);
/// "recorded", or "computed" where the log is none of a job that ran.
std::string_view recorded_word(const ReplayResult& result);
/// At most ten lines; with -v the details, too.
void print_result(const ReplayResult& result, const RunFigures& figures);

}  // namespace reprise::cli

// SPDX-License-Identifier: MIT
// The live figures of `replay`, of all its runs.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "analyze/accelerator.h"
#include "cli/command.h"
#include "cli/metrics_option.h"
#include "formats/oplog/tables.h"
#include "replay/run/runner.h"

namespace reprise::cli {

/// What does not change from run to run.
struct ReplayMetricsInfo {
    std::string log;  // file name
    std::string pace, engine;
    bool timed = true;  // lateness and accelerators mean something
};

class ReplayMetrics {
public:
    /// `tables`: of the replayed log.
    ReplayMetrics(ReplayMetricsInfo info, const Tables& tables) : info_(std::move(info)), tables_(tables) {}

    // From the thread that replays:
    void begin_run();
    void progress(const ReplayProgress& now);
    void end_run();
    // From any thread:
    void live(const LiveFigures& now);
    std::string text() const;

private:
    /// ns, of several runs.
    struct DeviceTime {
        int64_t busy = 0, stall = 0;
    };
    void put_run(Exposition& out) const;
    void put_tasks(Exposition& out) const;
    void put_ops(Exposition& out) const;
    void put_devices(Exposition& out) const;
    void put_accelerators(Exposition& out) const;

    const ReplayMetricsInfo info_;
    const Tables& tables_;
    mutable std::mutex mutex_;  // of all below
    uint64_t run_ = 0;
    std::optional<ReplayProgress> progress_;     // none between runs
    int64_t elapsed_ns_ = 0;                     // of the run
    LiveFigures before_, now_;                   // of earlier runs together; of this one
    std::optional<AcceleratorTracker> tracker_;  // of this run
    DeviceTime devices_before_;
    mutable DeviceTime devices_;  // as said last
};

}  // namespace reprise::cli

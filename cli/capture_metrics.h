// SPDX-License-Identifier: MIT
// The live figures of `capture`, of all its runs. They are in shared memory: with --runs each recording is made by a
// process of its own.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "capture/capture.h"
#include "cli/command.h"
#include "cli/metrics_option.h"
#include "replay/run/shared.h"

namespace reprise::cli {

class CaptureMetrics {
public:
    /// `log`: file name of the log.
    explicit CaptureMetrics(std::string log);

    // From the process that records:
    void begin_run();
    void progress(const CaptureProgress& now);
    void end_run();
    // From any thread:
    std::string text() const;

private:
    static constexpr size_t kTypes = std::tuple_size_v<decltype(CaptureProgress::by_type)>;
    /// Grows from run to run. One process at a time writes.
    struct Counter {
        std::atomic<uint64_t> all{0}, latest{0};
        void set(uint64_t now);
    };
    struct Shared {
        std::array<Counter, kTypes> by_type;
        Counter lost, bytes, tasks, cpu_ns;
        std::atomic<uint64_t> run{0}, recording{0}, live{0}, ring_used{0}, ring_bytes{0};
        std::atomic<int64_t> elapsed_ns{0}, most_lag_ns{0};
    };

    const std::string log_;
    SharedMemory memory_;
    Shared* const shared_;
};

}  // namespace reprise::cli

// SPDX-License-Identifier: MIT
// The verdict of a run on itself: whether this machine could keep the recording's time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/support/histogram.h"

namespace reprise {

struct Fidelity {
    Histogram delay_error;               // ns, actual less asked end of every delay that was slept
    double delays_asked_ns = 0;          // all of them together
    double computing_asked_ns = 0;       // processor time of recorded computing, as scaled
    double computing_took_ns = 0;        // time that it took
    double after_waits_ns = 0;           // of it: more than recorded, as waits were longer or shorter
    double added_ns = 0;                 // causal: what the replay itself added on the critical path
    bool path_known = false;             // added_ns says what delays cost, whose sum over tasks says little then
    int64_t recorded_run_queue_ns = -1;  // what recorded tasks waited for processors; -1: unknown
    double other_cpus = -1.0;            // CPUs that other programs used; -1: unknown
    double stolen_cpus = -1.0;           // steal time, in CPUs; -1: unknown
    double own_cpus = -1.0;              // CPUs that this run used itself; -1: unknown
    int64_t caches_dropped = 0;          // times that somebody dropped the machine's page cache meanwhile
    int64_t calls_longer_ns = 0;         // pace timed: of calls on files, than recorded; of the task where that is most
    std::vector<std::string> failures;   // plain sentences; none: it kept up

    /// Share by which all delays together took too long.
    double delay_total_error() const { return delays_asked_ns > 0 ? delay_error.sum() / delays_asked_ns : 0.0; }
};

/// The run failed where it lost more than these shares, and 50 ms; docs/replay.md explains them.
inline constexpr double kMostLateShare = 0.05;   // 99th percentile of lateness, of the elapsed time
inline constexpr double kMostDelayError = 0.05;  // of delays together, and of the elapsed time
inline constexpr double kMostAdded = 0.05;       // by the replay on the critical path, of the elapsed time
inline constexpr double kMostProcessorShare =
    0.10;  // waiting for processors beyond the recorded, of the computing and of the elapsed time

/// Fills `failures`. `cpus`: of this machine.
void judge(Fidelity& fidelity, const Histogram& lateness, int64_t elapsed_ns, int cpus);

/// Processor time of the processors that this process may use, and its own with its ended children, to tell what others
/// used between two readings.
struct ProcessorUse {
    double machine_ns = -1, stolen_ns = 0, own_ns = 0;
    int64_t at_ns = 0;
    int64_t caches_dropped = 0;  // since the machine was started
};
ProcessorUse read_processor_use();
/// In processors; -1 where /proc/stat cannot be read.
double others_between(const ProcessorUse& from, const ProcessorUse& to);
double stolen_between(const ProcessorUse& from, const ProcessorUse& to);
double own_between(const ProcessorUse& from, const ProcessorUse& to);

}  // namespace reprise

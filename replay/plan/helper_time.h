// SPDX-License-Identifier: MIT
// Time in which nobody but helpers (replay/plan/helpers.h) did anything: what they wait for has happened.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "replay/plan/plan.h"

namespace reprise {

/// How much of each kind goes on over time, in a few thousand steps, which get longer as more time passes.
class Goings {
public:
    /// `reaps`: calls that wait for asynchronous requests, or for those that others have yet to make.
    enum Kind : size_t { work, beats, cut, timers, reaps };
    static constexpr size_t kKinds = 5;
    /// From `begin` to `end`, ns from the start.
    void add(Kind kind, int64_t begin, int64_t end);
    /// ns of that kind of helpers, while nothing of kind `work` went on, nor of `reaps`, unless those are mere waits.
    int64_t alone(Kind kind, bool reaps_wait = false) const;

private:
    static constexpr size_t kSteps = 8192;
    struct Series {
        std::vector<double> ns = std::vector<double>(kSteps);             // of the parts of steps
        std::vector<int64_t> changes = std::vector<int64_t>(kSteps + 1);  // of how many fill whole steps, from each on
    };
    std::vector<double> sums(size_t kind) const;
    void longer_steps();

    int64_t step_ = 100'000;  // ns
    std::array<Series, kKinds> series_;
};

struct HelperFindings {
    /// By how much longer than in the recording helpers were alone at work, ns: those that sleep and look again, those
    /// that a signal ended.
    int64_t beats_ns = 0, cut_ns = 0;
    int64_t timers_ns = 0;   // likewise timers', whose calls that wait for requests may wait for what they give others
    double cut_share = 0;    // of the recording's work, or data: what was done until a signal came
    uint64_t processes = 0;  // that one ended
    int signal = 0;
    int64_t limited_ns = 0;  // of sleeps between which about as many bytes were moved each time
};

/// Compares a run, op for op, with the recording.
class HelperTime {
public:
    HelperTime(const Plan& plan, int64_t start_ns);
    /// An op that was performed; the ops of each task in their order. ns.
    void see(TaskId task, const OpBlock& block, size_t i, int64_t begin, int64_t end);
    HelperFindings finish() const;

private:
    struct Before {
        int64_t recorded = INT64_MIN, here = INT64_MIN;  // end of the last op, ns
    };
    const Plan& plan_;
    const int64_t start_;
    std::vector<Before> before_;  // by task
    Goings recorded_, here_;
    double work_ns_ = 0, cut_work_ns_ = 0, bytes_ = 0, cut_bytes_ = 0;
};

/// "2 processes were ended by a signal (SIGTERM): the replay does what they did until then", where that is of weight;
/// else empty.
std::string ended_by_signal(const HelperFindings& findings);
/// Of these findings: with `asleep_ns` on the critical path, timers' time-outs lie there, too. ns.
int64_t alone_ns(const HelperFindings& findings, int64_t asleep_ns);
/// "for 2.02 s of the 2.29 s only sleeps one after the other went on: ...", where that is more than a share of the
/// time; else empty.
std::string alone_at_work(const HelperFindings& findings, int64_t asleep_ns, int64_t elapsed_ns, double share);
/// By how much longer than recorded this is, as far as such sleeps (`asleep_ns`, those on the critical path) would have
/// been shorter if they limit a rate, ns.
int64_t kept_by_limit(const HelperFindings& findings, int64_t asleep_ns, int64_t elapsed_ns, int64_t recorded_ns);
/// "1.00 s are sleeps after each of which a task moves as much: ...", where that is more than a tenth of the time, and
/// the time is not the recorded one; else empty.
std::string limits_rate(const HelperFindings& findings, int64_t asleep_ns, int64_t elapsed_ns, int64_t recorded_ns);

}  // namespace reprise

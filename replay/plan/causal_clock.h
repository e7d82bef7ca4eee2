// SPDX-License-Identifier: MIT
// The arithmetic of pace `causal`: when the next op of a task is due, given when the op before it really ended.
#pragma once

#include <algorithm>
#include <cstdint>

#include "formats/oplog/header_facts.h"
#include "formats/oplog/oplog.h"

namespace reprise {

/// How much of the distance between two ops is think time, ns.
struct ThinkGap {
    int64_t most = INT64_MAX;  // more is waiting for a processor
    int64_t recorder = 0;      // is what the recorder itself took
    int64_t first = 0;         // in place of `most` before a task's first op, where it is more; < 0: that has none
};

/// A capture makes ops of computing that is longer than most (RawAssembleOptions::least_compute_ns), which are without
/// the recorder's share; other sources cannot. `slept`: computing is, so that waiting for a processor does not come by
/// itself.
inline ThinkGap think_gap(const Header& header, bool slept) {
    ThinkGap think;
    if (header.source == "capture") {
        think.most = slept ? INT64_MAX : 1'000;
        think.recorder = std::min<int64_t>(read_fact(header, fact::call_gap).value_or(0), 10'000);
    }
    return think;
}

/// One task. Times "recorded" are those of the log, the others CLOCK_MONOTONIC; all in nanoseconds.
///
/// Think time is what the recording shows between the end of one op and the begin of the next, ops of kind `compute`
/// included; it counts from where the op before it ended in this run. What this run was late by is carried: an op
/// issued late shortens the think time after it, so that lateness never adds up.
///
/// A captured log tells computing from waiting for a processor: what took 1 us or more is an op `compute`, so that more
/// distance than that between two ops is run-queue time. It comes by itself where threads compete for processors, and
/// is no think time. Before the first op of a task whose begin is not in the recording it may have slept, too: that
/// distance counts whole.
class CausalClock {
public:
    /// The task exists since `base`, which is `recorded` in the log. `scale`: of recorded times; `compute`: of those
    /// that the processor took, think time among them.
    CausalClock(int64_t base, int64_t recorded, double scale, double compute, ThinkGap think = {})
        : base_(base),
          recorded_(recorded),
          think_(think),
          most_(think.first < 0 ? 0 : std::max(think.most, think.first)),
          scale_(scale),
          compute_(compute) {}

    /// When the op that began at `begin` in the recording is due.
    int64_t due(int64_t begin) const { return std::max(sum(base_, scaled(sum(left_, gap(begin)), compute_)), free_); }

    /// How long the recorded task waited for a processor before the op that began at `begin`, as far as the log tells
    /// that from think time.
    int64_t waited_for_cpu(int64_t begin) const {
        return std::max<int64_t>(sum(distance(recorded_, begin), -sum(gap(begin), think_.recorder)), 0);
    }

    /// An op that is left out leaves its recorded time behind as think time.
    void left_out(int64_t recorded_begin, int64_t recorded_end) {
        const int64_t own = std::max<int64_t>(distance(std::max(recorded_begin, recorded_), recorded_end), 0);
        left_ = sum(sum(left_, gap(recorded_begin)), own);
        recorded_ = std::max(recorded_, recorded_end);
        most_ = think_.most;
    }

    /// What lies between the op before and this one is a wait for others, and no think time.
    void waits_for_others(int64_t begin) {
        recorded_ = std::max(recorded_, begin);
        most_ = think_.most;
    }
    /// It was performed.
    void performed(int64_t recorded_end, int64_t due, int64_t begin, int64_t end) {
        passed(end - std::max<int64_t>(begin - due, 0), recorded_end);
    }
    /// The same of a call of which the log has no duration: the time to the next op is its own, as far as it takes that
    /// here, and think time beyond.
    void performed_untimed(int64_t recorded_end, int64_t due, int64_t begin, int64_t end) {
        passed(due, recorded_end);
        free_ = end - std::max<int64_t>(begin - due, 0);
    }
    /// It is no time of the task, which it held up for so long.
    void held(int64_t ns) { base_ = sum(base_, ns); }
    /// It stands for its recorded duration, which the processor took or not, and `more`. Returns when that is over.
    int64_t stood(int64_t recorded_begin, int64_t recorded_end, int64_t due, bool computed, int64_t more = 0) {
        const int64_t took = distance(recorded_begin, recorded_end);
        passed(sum(sum(due, scaled(took, computed ? compute_ : scale_)), more), recorded_end);
        return base_;
    }
    /// It was a wait for something else in this run, or a computation that had to share its processor; over at `end`.
    void waited(int64_t recorded_end, int64_t end) { passed(end, recorded_end); }
    /// The op at hand was computing: where the log tells computing from waiting for a processor, it is all of it, and
    /// what lies between it and the next op is no think time.
    void computed() {
        if (think_.most != INT64_MAX) {
            most_ = 0;
        }
    }

private:
    int64_t gap(int64_t begin) const {
        return std::clamp<int64_t>(sum(distance(recorded_, begin), -think_.recorder), 0, most_);
    }
    void passed(int64_t end, int64_t recorded_end) {
        base_ = end;
        recorded_ = recorded_end;
        free_ = INT64_MIN;
        left_ = 0;
        most_ = think_.most;
    }
    /// A log may name any times. What is too long to be said stays long, and never becomes nothing.
    static int64_t sum(int64_t a, int64_t b) {
        int64_t out = 0;
        return __builtin_add_overflow(a, b, &out) ? (b < 0 ? INT64_MIN : INT64_MAX) : out;
    }
    static int64_t distance(int64_t from, int64_t to) {
        int64_t out = 0;
        return __builtin_sub_overflow(to, from, &out) ? (to < from ? INT64_MIN : INT64_MAX) : out;
    }
    static int64_t scaled(int64_t ns, double by) {
        constexpr double kMost = 9e18;
        return by == 1.0 ? ns : static_cast<int64_t>(std::clamp(static_cast<double>(ns) * by, -kMost, kMost));
    }

    int64_t base_, recorded_;
    int64_t free_ = INT64_MIN;  // when the call before, which has no recorded duration, was over
    ThinkGap think_;
    int64_t most_;      // of the gap at hand
    int64_t left_ = 0;  // recorded time of ops left out since
    double scale_, compute_;
};

}  // namespace reprise

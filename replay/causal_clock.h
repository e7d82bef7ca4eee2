// Owns the arithmetic of pace `causal`: when the next op of a task is due, given when the op before it really ended.
// The task issues by it and the collector computes lateness by it, so both always agree.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "replay/edges_rules.h"
#include "replay/plan.h"
#include "replay/shared.h"

namespace reprise {

/// One task. Times "recorded" are those of the log, the others CLOCK_MONOTONIC; all in nanoseconds.
///
/// Think time is what the recording shows between the end of one op and the begin of the next, ops of kind `compute`
/// included; it counts from where the op before it ended in this run. What this run was late by is carried: an op
/// issued late shortens the think time after it, so that lateness never adds up.
class CausalClock {
public:
    /// The task exists since `base`, which is `recorded` in the log. `scale`: of recorded times; `compute`: of those
    /// that the processor took, think time among them.
    CausalClock(int64_t base, int64_t recorded, double scale, double compute)
        : base_(base), recorded_(recorded), scale_(scale), compute_(compute) {}

    /// When the op that began at `begin` in the recording is due.
    int64_t due(int64_t begin) const { return base_ + scaled(std::max<int64_t>(begin - recorded_, 0), compute_); }

    // An op that is left out leaves its recorded time behind as think time, as nothing here changes.

    /// It was performed.
    void performed(int64_t recorded_end, int64_t due, int64_t begin, int64_t end) {
        base_ = end - std::max<int64_t>(begin - due, 0);
        recorded_ = recorded_end;
    }
    /// It stands for its recorded duration, which the processor took or not. Returns when that is over.
    int64_t stood(int64_t recorded_begin, int64_t recorded_end, int64_t due, bool computed) {
        base_ = due + scaled(recorded_end - recorded_begin, computed ? compute_ : scale_);
        recorded_ = recorded_end;
        return base_;
    }
    /// It was a wait for something else in this run, over at `end`.
    void waited(int64_t recorded_end, int64_t end) {
        base_ = end;
        recorded_ = recorded_end;
    }

private:
    static int64_t scaled(int64_t ns, double by) {
        return by == 1.0 ? ns : static_cast<int64_t>(static_cast<double>(ns) * by);
    }

    int64_t base_, recorded_;
    double scale_, compute_;
};

/// The clock of a task at its start: that of the run, or where its spawner's op began.
inline CausalClock causal_start(const Plan& plan, SharedRun& run, TaskId task, double scale, double cpu_speed,
                                int64_t spawned_ns) {
    if (spawned_ns != 0 && plan.tasks[task].spawner != 0) {
        return {spawned_ns, plan.tasks[task].spawn_begin, scale, scale / cpu_speed};
    }
    return {run.control().start_ns, plan.first_begin, scale, scale / cpu_speed};
}

/// What an op is to pace `causal`.
enum class CausalRole : uint8_t {
    call,         // takes what it takes
    stands,       // takes its recorded time
    waits,        // ends when what it waits for has happened
    accelerator,  // ends when the virtual device says so
};

/// Locks are not causes: they come and go with contention, so that a recorded wait for one takes no time here.
inline bool waits_for_lock(OpKind kind, int64_t arg) {
    constexpr int64_t kLock = 5;  // arg of wait (formats/ops.def)
    return kind == OpKind::wait && arg == kLock;
}

/// `explained`: the log says what the op waited for. `performed`: the engine did what the op asks.
inline CausalRole causal_role(OpKind kind, int64_t arg, bool explained, bool performed) {
    const OpInfo& row = info(kind);
    if (waits_for_lock(kind, arg)) {
        return CausalRole::waits;
    }
    if (row.is(Trait::accelerator)) {
        return CausalRole::accelerator;
    }
    if (explained && (kind == OpKind::wait || kind == OpKind::join || kind == OpKind::receive)) {
        return CausalRole::waits;
    }
    const bool starts_or_ends = kind == OpKind::spawn || kind == OpKind::exit;
    const bool stands = (row.is(Trait::cause) && !starts_or_ends) || !performed;
    return stands ? CausalRole::stands : CausalRole::call;
}

/// Whether op `op` of a task is among those of `explained`, ascending. Asked in the order of the ops.
class ExplainedCursor {
public:
    explicit ExplainedCursor(const std::vector<uint64_t>& explained) : explained_(explained) {}
    bool at(uint64_t op) {
        while (next_ < explained_.size() && explained_[next_] < op) {
            ++next_;
        }
        return next_ < explained_.size() && explained_[next_] == op;
    }

private:
    const std::vector<uint64_t>& explained_;
    size_t next_ = 0;
};

}  // namespace reprise

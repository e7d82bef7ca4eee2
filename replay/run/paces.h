// SPDX-License-Identifier: MIT
// When the ops of a task go, and when they are over: the paces. Everything here runs once per op or less;
// tests/bench/bench_replay.cpp measures it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "calibrate/clock.h"
#include "calibrate/compute.h"
#include "calibrate/delay.h"
#include "formats/oplog/oplog.h"
#include "replay/engine/engine.h"
#include "replay/engine/syscalls.h"
#include "replay/plan/causal_step.h"
#include "replay/plan/left_out.h"
#include "replay/plan/plan.h"
#include "replay/run/shared.h"

namespace reprise {

/// The machine's time. A parameter of the paces, so that a test can own time.
struct MachineClock {
    using Delay = reprise::Delay;
    using Compute = reprise::Compute;
    static uint64_t ticks() { return ticks_now(); }
};

/// Order and edges, no delays. The end of one op is the begin of the next: one clock read per op.
class AfapPace {
public:
    using Clock = MachineClock;
    static constexpr bool kChained = true;
    bool due(const OpBlock&, size_t) { return true; }
    template <class Watch>
    uint64_t after(const OpBlock&, size_t, uint64_t, int64_t, const Watch&) {
        return Clock::ticks();
    }
    void released() {}
    static void there(uint64_t) {}
    int64_t lag_ns() const { return 0; }
};

/// Every op at its recorded time, counted from the common start.
template <class TheClock = MachineClock>
class TimedPace {
public:
    using Clock = TheClock;
    static constexpr bool kChained = false;
    TimedPace(const Plan& plan, SharedRun& run, const Speeds& speeds)
        : plan_(plan),
          run_(run),
          delay_(&run.control().tokens, &run.control().stop, run.control().tick_ns),
          compute_(speeds.computing.policy, &run.control().tokens, &run.control().stop, run.control().tick_ns),
          start_(run.control().start_ns),
          scale_(speeds.time_scale),
          computing_(speeds.computing) {
        use_least_timer_slack();
    }

    /// Waits until the op is due. False where the op is left out and nothing is waited for.
    bool due(const OpBlock& b, size_t i) {
        if (!plan_.selector->keeps_everything() && !keeps(plan_, b, i)) {
            return false;
        }
        due_ = at(b.begin[i]);
        delay_.until(due_);
        issued_ = Clock::ticks();
        lag_ = std::max<int64_t>(delay_.now_ns(issued_) - due_, 0);
        return true;
    }

    /// Ops that stand for time take it; those of accelerators use the virtual device. `watch`: as of CausalPace.
    template <class Watch>
    uint64_t after(const OpBlock& b, size_t i, uint64_t, int64_t, const Watch& watch) {
        const auto kind = static_cast<OpKind>(b.kind[i]);
        if (waits_until(kind, b.arg[i])) {
            watch(at(OpRef::end_of(b.begin[i], b.duration[i])), false);
        }
        if (computing_.takes_processor(kind, b.flags[i])) {
            compute_.fill(at(OpRef::end_of(b.begin[i], b.duration[i])));
        } else if (info(kind).is(Trait::passes_time)) {
            const int64_t until = at(OpRef::end_of(b.begin[i], b.duration[i]));
            watch(until, true);
            delay_.until(until);
        } else if (kind == OpKind::gpu_submit) {
            stream(b, i).submit(delay_.now_ns(), scaled(b.size[i]));
        } else if (kind == OpKind::gpu_wait) {
            delay_.until(stream(b, i).end_ns.load(std::memory_order_relaxed));
        } else if (sys::call_ticks.left != 0) {
            return sys::call_ticks.left;
        }
        return Clock::ticks();
    }
    /// See Engine::glance().
    void glance_at(const Glance& glance) { compute_.glance_at(glance); }
    void released() {}
    static void there(uint64_t) {}
    int64_t lag_ns() const { return lag_; }
    /// The tick at which due() let the op go.
    uint64_t issued() const { return issued_; }

private:
    int64_t scaled(int64_t ns) const {
        return scale_ == 1.0 ? ns : static_cast<int64_t>(static_cast<double>(ns) * scale_);
    }
    int64_t at(int64_t recorded) const { return start_ + scaled(recorded - plan_.first_begin); }
    DeviceSlot& stream(const OpBlock& b, size_t i) { return run_.device(plan_.streams.at({b.arg[i], b.flags[i]})); }

    const Plan& plan_;
    SharedRun& run_;
    typename Clock::Delay delay_;
    typename Clock::Compute compute_;
    int64_t start_;
    double scale_;
    Computing computing_;
    int64_t due_ = 0, lag_ = 0;
    uint64_t issued_ = 0;
};

/// Every op when what it depends on is done and the think time since the op before it has passed. Waits that the log
/// explains take as long as what they wait for takes now.
template <class TheClock = MachineClock>
class CausalPace {
public:
    using Clock = TheClock;
    static constexpr bool kChained = false;
    /// The task begins now, or waits at the start line.
    CausalPace(const Plan& plan, SharedRun& run, TaskId task, const Speeds& speeds)
        : plan_(plan),
          run_(run),
          delay_(&run.control().tokens, &run.control().stop, run.control().tick_ns),
          task_(task),
          process_(run.process(plan.tasks[task].process)),
          step_(plan, task, speeds, run.control().start_ns, spawned_ns(run.task(task))),
          compute_(speeds.computing.policy, &run.control().tokens, &run.control().stop, run.control().tick_ns),
          speeds_(speeds) {
        use_least_timer_slack();
    }

    bool due(const OpBlock& b, size_t i) {
        if (!plan_.selector->keeps_everything() && !keeps(plan_, b, i)) {
            step_.left_out(b, i);
            return false;
        }
        int64_t due = step_.due(b, i, released_);
        issued_ = Clock::ticks();
        int64_t now = delay_.now_ns(issued_);
        if (now < due) {
            pass(due, now);
            issued_ = Clock::ticks();
            now = delay_.now_ns(issued_);
        }
        flags_ = 0;
        if (const uint32_t number = plan_.lock_of(task_, b, i); number != 0) {
            std::atomic<uint32_t>& word = number == Plan::kOwnLock ? process_.lock : run_.control().guard(number);
            const LockTaken lock = take_lock(word, run_.control());
            locked_ = lock.had ? &word : nullptr;
            issued_ = Clock::ticks();
            now = delay_.now_ns(issued_);
            if (!lock.free) {
                flags_ = kWaitedForLock;
                due = step_.due(b, i, now);
            }
        }
        lag_ = std::max<int64_t>(now - due, 0);
        return true;
    }

    /// `begin`: tick at which the op was issued. Returns when it ended. `watch(until, sleeps)`: takes note of requests
    /// that are done while the task waits for the next one of an open loop, or sleeps, and is back before `until`.
    template <class Watch>
    uint64_t after(const OpBlock& b, size_t i, uint64_t begin, int64_t result, const Watch& watch) {
        const uint64_t end = pass_op(b, i, begin, result, watch);
        if (locked_ != nullptr) {
            give_lock(*locked_);
            locked_ = nullptr;
        }
        return end;
    }
    void glance_at(const Glance& glance) { compute_.glance_at(glance); }
    /// Of the op at hand, for its row.
    uint64_t flags() const { return flags_; }
    /// The op at hand waited until now for others: it was not late before.
    void released() { released_ = delay_.ns_at(left()); }
    /// What op `op` waits for is there. It may have come after the op before was over and before the thread woke up.
    void there(uint64_t op) {
        if (over_ != INT64_MAX) {
            const int64_t at = arrived(op);
            released_ = at != CausalStep::kNotKnown && at > over_ ? at : released_;
        }
    }
    int64_t lag_ns() const { return lag_; }
    /// The tick at which due() let the op go.
    uint64_t issued() const { return issued_; }

private:
    template <class Watch>
    uint64_t pass_op(const OpBlock& b, size_t i, uint64_t begin, int64_t result, const Watch& watch) {
        over_ = INT64_MAX;
        switch (step_.issued(b, i, delay_.ns_at(begin), !is_not_performed(result))) {
            case CausalRole::call: {
                const uint64_t end = left();
                step_.ended(delay_.ns_at(puts_in_line(b, i) ? begin : end));
                return end;
            }
            case CausalRole::wait: return waited(b, i, begin);
            case CausalRole::compute: compute_.take(step_.until()); break;
            case CausalRole::delay:
                if (step_.arrival()) {
                    watch(step_.until(), false);
                }
                if (const WaitFor* const by = step_.ended_by()) {
                    until_timer(*by);
                } else if (gives_processor_back(b, i)) {
                    watch(step_.until(), true);
                    delay_.until(step_.until());
                } else {
                    pass(step_.until(), delay_.now_ns());
                }
                break;
            case CausalRole::submit:
                // Not from now on: an accelerator does not stand still because this thread woke up late.
                stream(b, i).submit(step_.due(), speeds_.busy(b.size[i]));
                delay_.until(step_.until());
                break;
            case CausalRole::drain: return drained(b, i, begin);
        }
        const uint64_t end = Clock::ticks();
        step_.ended(delay_.now_ns(end));
        return end;
    }
    uint64_t waited(const OpBlock& b, size_t i, uint64_t begin) {
        const uint64_t end = left();
        int64_t there = CausalStep::kNotKnown;
        if (step_.inside() && (step_.over_on_arrival() || delay_.ns_at(begin) > step_.due())) {
            there = arrived(b.first + i);
        }
        if (there != CausalStep::kNotKnown && step_.over_on_arrival()) {
            return over(std::max(there, step_.due()), begin);
        }
        step_.ended(delay_.ns_at(end), there);
        return end;
    }
    uint64_t drained(const OpBlock& b, size_t i, uint64_t begin) {
        int64_t empty = std::max(stream(b, i).end_ns.load(std::memory_order_relaxed), step_.due());
        if (!waits_of(b.first + i).empty()) {
            empty = std::max(empty, delay_.now_ns());  // it waited for other tasks, too
        }
        delay_.until(empty);
        return over(std::min(empty, delay_.now_ns()), begin);  // before that where the run was stopped
    }
    /// The op was over at `ns`. By how much the thread woke up later, the next op is late.
    uint64_t over(int64_t ns, uint64_t begin) {
        over_ = std::max(ns, delay_.ns_at(begin));
        step_.ended(over_, ns);
        return delay_.tick_at(ns);
    }
    std::span<const WaitFor> waits_of(uint64_t op) const {
        const std::vector<WaitFor>& waits = plan_.tasks[task_].waits;
        const auto before = [](const WaitFor& wait, uint64_t at) { return wait.op < at; };
        const auto first = std::lower_bound(waits.begin(), waits.end(), op, before);
        return {first, std::find_if(first, waits.end(), [&](const WaitFor& wait) { return wait.op != op; })};
    }
    /// When the last op was done that op `op`, a wait for others, waited for; kNotKnown: another rank performs one, or
    /// it is not over.
    int64_t arrived(uint64_t op) const {
        int64_t last = INT64_MIN;
        for (const WaitFor& wait : waits_of(op)) {
            if (!plan_.performs(plan_.tasks[wait.task].process)) {
                return CausalStep::kNotKnown;
            }
            // Who told others when it was issued may not be done.
            if (run_.task(wait.task).done.load(std::memory_order_acquire) <= wait.source) {
                return CausalStep::kNotKnown;
            }
            const SpoolRow& source = run_.spool(plan_.tasks[wait.task].spool_first)[wait.source];
            if (const std::optional<uint64_t> tick = let_go(source)) {
                last = std::max(last, delay_.ns_at(*tick));
            }
        }
        return last == INT64_MIN ? CausalStep::kNotKnown : last;
    }
    /// The wait of an event loop, which its timer ends or what another task sends.
    void until_timer(const WaitFor& by) {
        constexpr int64_t kLook = 500'000;  // ns
        const TaskSlot& source = run_.task(by.task);
        const int64_t until = step_.until();
        while (source.published.load(std::memory_order_acquire) < by.count && delay_.now_ns() < until &&
               !run_.control().stopped()) {
            delay_.until(std::min(until, delay_.now_ns() + kLook));
        }
    }
    /// Whether the recorded thread slept. A call that woke others did not.
    static bool gives_processor_back(const OpBlock& b, size_t i) {
        const auto kind = static_cast<OpKind>(b.kind[i]);
        return kind == OpKind::idle || (kind == OpKind::wait && b.arg[i] != kWaitWokeOthers);
    }
    /// Whether the op at hand put a request in line, which the next call hands over. That was part of what the job
    /// computed before that call, and so is what it takes here.
    static bool puts_in_line(const OpBlock& b, size_t i) {
        return sys::call_ticks.left == 0 && info(static_cast<OpKind>(b.kind[i])).is(Trait::submits);
    }
    /// When the last call or wait of the op at hand was over; now, where it had none.
    uint64_t left() {
        const uint64_t tick = sys::call_ticks.left != 0 ? sys::call_ticks.left : Clock::ticks();
        delay_.now_ns(tick);  // ns_at() must not count from long ago
        return tick;
    }
    /// Think time, and calls that are not made: where it is short the thread was on its processor, and keeps it, as a
    /// thread that computes would not give it back for milliseconds.
    void pass(int64_t until, int64_t now) {
        constexpr int64_t kBrief = 100'000;  // ns
        if (speeds_.computing.policy != DelayPolicy::sleep && until - now < kBrief) {
            compute_.take(until);
        } else {
            delay_.until(until);
        }
    }
    DeviceSlot& stream(const OpBlock& b, size_t i) { return run_.device(plan_.streams.at({b.arg[i], b.flags[i]})); }
    std::optional<int64_t> spawned_ns(const TaskSlot& slot) const {
        const uint64_t tick = slot.spawned_tick.load(std::memory_order_relaxed);
        return tick == 0 ? std::optional<int64_t>{} : delay_.ns_at(tick);
    }

    const Plan& plan_;
    SharedRun& run_;
    typename Clock::Delay delay_;
    TaskId task_;
    ProcessSlot& process_;
    CausalStep step_;
    typename Clock::Compute compute_;
    Speeds speeds_;
    int64_t lag_ = 0, released_ = INT64_MIN;
    int64_t over_ = INT64_MAX;  // when the last op was, as the thread may have woken up later; INT64_MAX: it did not
    uint64_t issued_ = 0, flags_ = 0;
    std::atomic<uint32_t>* locked_ = nullptr;  // the lock that the op at hand holds
};

}  // namespace reprise

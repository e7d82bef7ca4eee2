// SPDX-License-Identifier: MIT
// The path that issues ops: one task, its blocks, its edges, its clock. Everything here runs once per op or less;
// tests/bench/bench_replay_pread.cpp measures it.
#pragma once

#include <algorithm>
#include <array>
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
#include "replay/plan/edges_rules.h"
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
        lag_ = std::max<int64_t>(delay_.now_ns() - due_, 0);
        return true;
    }

    /// Ops that stand for time take it; those of accelerators use the virtual device. `watch`: as of CausalPace.
    template <class Watch>
    uint64_t after(const OpBlock& b, size_t i, uint64_t, int64_t, const Watch& watch) {
        const auto kind = static_cast<OpKind>(b.kind[i]);
        if (waits_until(kind, b.arg[i])) {
            watch(at(OpRef::end_of(b.begin[i], b.duration[i])));
        }
        if (computing_.takes_processor(kind, b.flags[i])) {
            compute_.fill(at(OpRef::end_of(b.begin[i], b.duration[i])));
        } else if (info(kind).is(Trait::passes_time)) {
            delay_.until(at(OpRef::end_of(b.begin[i], b.duration[i])));
        } else if (kind == OpKind::gpu_submit) {
            stream(b, i).submit(delay_.now_ns(), scaled(b.size[i]));
        } else if (kind == OpKind::gpu_wait) {
            delay_.until(stream(b, i).end_ns.load(std::memory_order_relaxed));
        } else if (sys::call_ticks.left != 0) {
            return sys::call_ticks.left;
        }
        return Clock::ticks();
    }
    void released() {}
    int64_t lag_ns() const { return lag_; }

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
        pass(due);
        flags_ = 0;
        if (const uint32_t number = plan_.lock_of(task_, b, i); number != 0) {
            std::atomic<uint32_t>& word = number == Plan::kOwnLock ? process_.lock : run_.control().guard(number);
            const LockTaken lock = take_lock(word, run_.control());
            locked_ = lock.had ? &word : nullptr;
            if (!lock.free) {
                flags_ = kWaitedForLock;
                due = step_.due(b, i, delay_.now_ns());
            }
        }
        lag_ = std::max<int64_t>(delay_.now_ns() - due, 0);
        return true;
    }

    /// `begin`: tick at which the op was issued. Returns when it ended. `watch(until)`: takes note of requests that are
    /// done while the task waits for the next one of an open loop, and is back before `until`.
    template <class Watch>
    uint64_t after(const OpBlock& b, size_t i, uint64_t begin, int64_t result, const Watch& watch) {
        const uint64_t end = pass_op(b, i, begin, result, watch);
        if (locked_ != nullptr) {
            give_lock(*locked_);
            locked_ = nullptr;
        }
        return end;
    }
    /// Of the op at hand, for its row.
    uint64_t flags() const { return flags_; }
    /// The op at hand waited until now for others: it was not late before.
    void released() { released_ = delay_.ns_at(left()); }
    int64_t lag_ns() const { return lag_; }

private:
    template <class Watch>
    uint64_t pass_op(const OpBlock& b, size_t i, uint64_t begin, int64_t result, const Watch& watch) {
        switch (step_.issued(b, i, delay_.ns_at(begin), !is_not_performed(result))) {
            case CausalRole::call:
            case CausalRole::wait: {
                const uint64_t end = left();
                step_.ended(delay_.ns_at(end));
                return end;
            }
            case CausalRole::compute: compute_.take(step_.until()); break;
            case CausalRole::delay:
                if (step_.arrival()) {
                    watch(step_.until());
                }
                if (const WaitFor* const by = step_.ended_by()) {
                    until_timer(*by);
                } else if (gives_processor_back(b, i)) {
                    delay_.until(step_.until());
                } else {
                    pass(step_.until());
                }
                break;
            case CausalRole::submit:
                stream(b, i).submit(delay_.now_ns(), speeds_.busy(b.size[i]));
                delay_.until(step_.until());
                break;
            case CausalRole::drain: delay_.until(stream(b, i).end_ns.load(std::memory_order_relaxed)); break;
        }
        step_.ended(delay_.now_ns());
        return Clock::ticks();
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
    /// When the last call or wait of the op at hand was over; now, where it had none.
    uint64_t left() {
        delay_.now_ns();  // ns_at() must not count from long ago
        return sys::call_ticks.left != 0 ? sys::call_ticks.left : Clock::ticks();
    }
    /// Think time, and calls that are not made: where it is short the thread was on its processor, and keeps it, as a
    /// thread that computes would not give it back for milliseconds.
    void pass(int64_t until) {
        constexpr int64_t kBrief = 100'000;  // ns
        if (speeds_.computing.policy != DelayPolicy::sleep && until - delay_.now_ns() < kBrief) {
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
    uint64_t flags_ = 0;
    std::atomic<uint32_t>* locked_ = nullptr;  // the lock that the op at hand holds
};

/// Wakes who waits for the sources [from, to) of `task`.
inline void wake_listeners(SharedRun& run, const TaskPlan& task, size_t from, size_t to) {
    for (uint32_t i = task.listens[from]; i < task.listens[to]; ++i) {
        wake_from(run.task(task.listeners[i].task), task.listeners[i].wait);
    }
}

/// Publishes the end of the task, and so every op of it that others still wait for.
inline void publish_end(const Plan& plan, SharedRun& run, TaskId id) {
    TaskSlot& slot = run.task(id);
    const TaskPlan& task = plan.tasks[id];
    const uint32_t before = slot.published.exchange(UINT32_MAX, std::memory_order_seq_cst);
    if (!task.sources.empty()) {
        wake_listeners(run, task, std::min<size_t>(before, task.sources.size()), task.sources.size());
    }
}

/// Starts tasks for their spawner. Implemented by the worker.
class Spawner {
public:
    virtual ~Spawner() = default;
    virtual void spawn(TaskId peer) = 0;
};

/// Issues the ops of one task.
template <class Engine, class Pace>
class TaskLoop {
    using Clock = typename Pace::Clock;

public:
    /// `spawner` may be null: spawn ops do nothing. `spin`: turns to spin before sleeping for an edge.
    TaskLoop(const Plan& plan, SharedRun& run, TaskId task, Engine& engine, Pace& pace, Spawner* spawner, int spin)
        : task_(plan.tasks[task]),
          run_(run),
          control_(run.control()),
          slot_(run.task(task)),
          rows_(run.spool(task_.spool_first)),
          engine_(engine),
          pace_(pace),
          spawner_(spawner),
          spin_(spin),
          explained_(task_.explained) {}

    /// False where the run was stopped.
    bool block(const OpBlock& b) {
        const size_t count = b.count();
        size_t i = 0;
        while (i < count) {
            const uint64_t op = b.first + i;
            const bool waits = wait_ < task_.waits.size() && task_.waits[wait_].op <= op;
            const bool blocks = waits && waits_inside(static_cast<OpKind>(b.kind[i]), explained_.at(op));
            if (waits && !blocks) {
                sys::call_ticks.reset();
                const uint64_t before = slot_.edge_waits;
                if (!wait_for_edges(op, spin_)) {
                    return false;
                }
                if (slot_.edge_waits != before) {
                    pace_.released();
                }
            }
            const bool spawns = spawn_ < task_.spawns.size() && task_.spawns[spawn_] == op;
            uint64_t limit = b.first + count;
            if (wait_ < task_.waits.size()) {
                limit = std::min(limit, std::max(task_.waits[wait_].op, op + 1));
            }
            if (spawns || blocks) {
                limit = op + 1;
            } else if (spawn_ < task_.spawns.size()) {
                limit = std::min(limit, task_.spawns[spawn_]);
            }
            if (source_ < task_.sources.size() && task_.sources[source_] < limit) {
                limit = task_.sources[source_] + 1;
            }
            const auto to = static_cast<size_t>(limit - b.first);
            if (!(spawns || blocks ? special(b, i, spawns, blocks) : span(b, i, to))) {
                return false;
            }
            i = to;
            if (source_ < task_.sources.size() && task_.sources[source_] + 1 == limit) {
                if (!settle() || !told(limit - 1)) {
                    return false;
                }
                publish();
            }
        }
        return settle();
    }

    /// After the last block: until all requests have their results. False where the run was stopped.
    bool end() {
        if constexpr (CompletesLater<Engine>) {
            while (!untold_.empty()) {
                if (!take_told(true)) {
                    return false;
                }
            }
        }
        return true;
    }

private:
    /// One more op which others wait for is done.
    void publish() {
        slot_.published.store(static_cast<uint32_t>(source_ + 1), std::memory_order_seq_cst);
        wake_listeners(run_, task_, source_, source_ + 1);
        ++source_;
    }

    bool wait_for_edges(uint64_t op, int spin) {
        for (; wait_ < task_.waits.size() && task_.waits[wait_].op <= op; ++wait_) {
            const WaitFor& edge = task_.waits[wait_];
            const TaskSlot& source = run_.task(edge.task);
            if (source.published.load(std::memory_order_acquire) >= edge.count) {
                continue;
            }
            slot_.waits_edge.store(wait_ + 1);
            slot_.state.store(TaskState::waiting_for_edge, std::memory_order_relaxed);
            ++slot_.edge_waits;
            const bool arrived = wait_published(source, edge.count, slot_, control_, spin);
            sys::call_ticks.left = Clock::ticks();
            slot_.waits_edge.store(0);
            slot_.state.store(TaskState::running, std::memory_order_relaxed);
            if (!arrived) {
                return false;
            }
        }
        return true;
    }

    /// Ops [from, to) of a block: none of them waits or spawns, and none is waited for but the last.
    bool span(const OpBlock& b, size_t from, size_t to) {
        SpoolRow* const rows = rows_ + b.first;
        uint64_t begin = Clock::ticks(), early = 0;
        for (size_t i = from; i < to; ++i) {
            if (__builtin_expect(control_.stopped(), 0)) {
                return false;
            }
            if constexpr (!Pace::kChained) {
                if (!pace_.due(b, i)) {
                    leave_out(b, i);
                    continue;
                }
                if (control_.stopped()) {
                    return false;
                }
                begin = Clock::ticks();
                if (i + 1 == to && source_ < task_.sources.size() && task_.sources[source_] == b.first + i &&
                    tells_others(static_cast<OpKind>(b.kind[i]), b.arg[i])) {
                    publish();
                    early = kReleasedEarly;
                }
            }
            if constexpr (CompletesLater<Engine>) {
                if (__builtin_expect(!untold_.empty(), 0)) {
                    take_told(false);
                }
            }
            if (__builtin_expect(engine_.before(b, i), 0)) {
                begin = Clock::ticks();
            }
            if constexpr (!Pace::kChained) {
                sys::call_ticks.reset();
            }
            const int64_t result = perform(b, i);
            if constexpr (CompletesLater<Engine>) {
                if (__builtin_expect(result == kInFlight, 0) && completes(b, i)) {
                    begin = tell_later(b, i, rows[i], begin);
                    continue;
                }
            }
            if constexpr (kOverlaps) {
                if (result == kInFlight) {
                    in_flight_.push_back({b.first + i, begin});
                    take_completed(false);
                    begin = Clock::ticks();
                    continue;
                }
            }
            begin = finish(b, i, rows[i], begin, result);
        }
        if constexpr (!Pace::kChained) {
            rows[to - 1].begin |= early;
        }
        return true;
    }

    /// One op that starts a task, or that is a wait for others.
    bool special(const OpBlock& b, size_t i, bool spawns, bool blocks) {
        if (!settle()) {
            return false;
        }
        static_cast<void>(pace_.due(b, i));  // true: no filter leaves out what starts others or waits
        if (control_.stopped()) {
            return false;
        }
        const uint64_t begin = Clock::ticks();
        sys::call_ticks.reset();
        // Who slept in the recording sleeps here: that costs the same, and leaves the processor to others as it did
        // there.
        if (blocks && !wait_for_edges(b.first + i, Pace::kChained ? spin_ : 0)) {
            return false;
        }
        if (spawns) {
            ++spawn_;
            if (spawner_ != nullptr) {
                run_.task(b.peer[i]).spawned_tick.store(begin, std::memory_order_relaxed);
                spawner_->spawn(b.peer[i]);
            }
        }
        const int64_t result = perform(b, i);
        if constexpr (kOverlaps) {
            if (result == kInFlight) {
                in_flight_.push_back({b.first + i, begin});
                return settle();
            }
        }
        finish(b, i, rows_[b.first + i], begin, result);
        return true;
    }

    [[gnu::always_inline]] uint64_t finish(const OpBlock& b, size_t i, SpoolRow& row, uint64_t begin, int64_t result) {
        if constexpr (!Pace::kChained) {
            if (sys::call_ticks.entered != 0) {
                begin = sys::call_ticks.entered;
            }
        }
        const uint64_t end = pace_.after(b, i, begin, result, watch());
        uint64_t done = end;
        if constexpr (kOverlaps) {
            // Of a request: when it was done, which may have been before the task got to its result.
            if (__builtin_expect(completes(b, i), 0)) {
                const uint64_t told = std::exchange(sys::call_ticks.left, 0);
                done = told != 0 ? told : end;
            }
        }
        write_row(row, begin, done, result);
        if constexpr (requires { pace_.flags(); }) {
            row.begin |= pace_.flags();
        }
        advance(b.first + i + 1);
        if constexpr (!Pace::kChained) {
            slot_.lag_ns.store(pace_.lag_ns(), std::memory_order_relaxed);
        }
        return end;
    }

    void leave_out(const OpBlock& b, size_t i) {
        rows_[b.first + i] = {kNotPerformed, static_cast<uint64_t>(LeftOut::filter), 0};
        advance(b.first + i + 1);
    }

    static void write_row(SpoolRow& row, uint64_t begin, uint64_t end, int64_t result) {
        if (__builtin_expect(is_not_performed(result), 0)) {
            row = {begin | kNotPerformed, static_cast<uint64_t>(reason_of(result)), 0};
        } else {
            row = {begin, end, result};
        }
    }

    /// All ops before `next` were passed, and are done unless in flight.
    void advance(uint64_t next) {
        if constexpr (kOverlaps) {
            next_ = next;
            next = in_flight_.empty() ? next : in_flight_.front().op;
        }
        slot_.done.store(next, std::memory_order_release);
    }

    // --- engines that complete ops after submit()

    static constexpr bool kOverlaps = CompletesLater<Engine> && Pace::kChained;
    struct InFlight {
        uint64_t op = 0, begin = 0;
    };

    /// The op's result; kInFlight only where ops may overlap.
    int64_t perform(const OpBlock& b, size_t i) {
        const int64_t result = engine_.submit(b, i);
        if constexpr (CompletesLater<Engine> && !Pace::kChained) {
            if (result == kInFlight && !completes(b, i)) {
                Completion one;
                return engine_.complete({&one, 1}, true) == 1 ? one.result : not_performed(LeftOut::stopped);
            }
        }
        return result;
    }

    // --- asynchronous requests whose result the job took note of before they are done here

    auto watch() {
        return [this](int64_t until) {
            if constexpr (requires { engine_.watch(until); }) {
                engine_.watch(until);
            }
        };
    }

    static bool completes(const OpBlock& b, size_t i) {
        return info(static_cast<OpKind>(b.kind[i])).is(Trait::completes);
    }

    /// The task goes on; the row is written when the request is done.
    uint64_t tell_later(const OpBlock& b, size_t i, SpoolRow& row, uint64_t begin) {
        const uint64_t end = pace_.after(b, i, begin, 0, watch());
        row = {begin | kNotPerformed, static_cast<uint64_t>(LeftOut::stopped), 0};
        untold_.push_back({b.first + i, begin});
        advance(b.first + i + 1);
        return end;
    }

    /// `wait`: for one at least. False where the run was stopped.
    bool take_told(bool wait) {
        std::array<Completion, 16> done;
        size_t count = 0;
        do {
            count = engine_.complete(done, wait);
            for (const Completion& each : std::span(done).first(count)) {
                const auto at = std::find_if(untold_.begin(), untold_.end(),
                                             [&](const InFlight& untold) { return untold.op == each.op; });
                if (at != untold_.end()) {
                    write_row(rows_[each.op], at->begin, each.end != 0 ? each.end : Clock::ticks(), each.result);
                    untold_.erase(at);
                }
            }
        } while (count == done.size() && !wait);
        return count != 0 || !wait;
    }

    /// Until op `op` has its result, where it is that of a request.
    bool told(uint64_t op) {
        if constexpr (CompletesLater<Engine>) {
            while (std::any_of(untold_.begin(), untold_.end(), [&](const InFlight& each) { return each.op == op; })) {
                if (!take_told(true)) {
                    return false;
                }
            }
        }
        return true;
    }

    /// Rows of ops that are done. `wait`: at least one. False where the run was stopped.
    bool take_completed(bool wait) {
        std::array<Completion, 16> done;
        const size_t count = engine_.complete(done, wait);
        for (const Completion& each : std::span(done).first(count)) {
            const auto at = std::find_if(in_flight_.begin(), in_flight_.end(),
                                         [&](const InFlight& flying) { return flying.op == each.op; });
            if (at != in_flight_.end()) {
                write_row(rows_[each.op], at->begin, each.end != 0 ? each.end : Clock::ticks(), each.result);
                in_flight_.erase(at);
            }
        }
        advance(next_);
        return count != 0 || !wait;
    }

    /// Waits for all ops in flight. False where the run was stopped.
    bool settle() {
        if constexpr (kOverlaps) {
            next_ = in_flight_.empty() ? next_ : std::max(next_, in_flight_.back().op + 1);
            while (!in_flight_.empty()) {
                if (!take_completed(true)) {
                    return false;
                }
            }
        }
        return true;
    }

    const TaskPlan& task_;
    SharedRun& run_;
    RunControl& control_;
    TaskSlot& slot_;
    SpoolRow* rows_;
    Engine& engine_;
    Pace& pace_;
    Spawner* spawner_;
    const int spin_;
    ExplainedCursor explained_;
    size_t wait_ = 0, source_ = 0, spawn_ = 0;
    std::vector<InFlight> in_flight_;  // in the order of the task
    std::vector<InFlight> untold_;     // results of requests that are not done yet, in the order of the task
    uint64_t next_ = 0;                // the op after the last that was passed; where ops overlap
};

}  // namespace reprise

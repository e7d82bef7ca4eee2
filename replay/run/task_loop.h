// SPDX-License-Identifier: MIT
// The path that issues ops: one task, its blocks, its edges; its clock is a pace (paces.h). Everything here runs once
// per op or less; tests/bench/bench_replay.cpp measures it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"
#include "replay/engine/engine.h"
#include "replay/engine/syscalls.h"
#include "replay/plan/causal_step.h"
#include "replay/plan/edges_rules.h"
#include "replay/plan/left_out.h"
#include "replay/plan/plan.h"
#include "replay/run/fetch_ahead.h"
#include "replay/run/paces.h"
#include "replay/run/shared.h"

namespace reprise {

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
    if (!task.told.empty()) {
        run.control().tell_bridge();
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
          explained_(task_.explained) {
        if constexpr (
            requires { engine_.glance(); } && requires { pace_.glance_at(Glance{}); }) {
            pace_.glance_at({[](void* engine) { static_cast<Engine*>(engine)->glance(); }, &engine_});
        }
    }

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
                } else {
                    pace_.there(op);
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
        if (__builtin_expect(told_ < task_.told.size(), 0) && task_.told[told_] == source_) {
            ++told_;
            control_.tell_bridge();
        }
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
            if (source.elsewhere) {
                control_.waits_elsewhere.fetch_add(1);
                control_.call_bridge();
            }
            const bool arrived = wait_published(source, edge.count, slot_, control_, spin);
            if (source.elsewhere) {
                control_.waits_elsewhere.fetch_sub(1);
            }
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
        uint64_t begin = Clock::ticks();
        for (size_t i = from; i < to; ++i) {
            if (__builtin_expect(control_.stopped(), 0)) {
                return false;
            }
            if (i % kFetchEach == 0) {
                fetch_ahead<!Pace::kChained>(b, i, rows);
            }
            if constexpr (!Pace::kChained) {
                if (!pace_.due(b, i)) {
                    leave_out(b, i);
                    continue;
                }
                if (control_.stopped()) {
                    return false;
                }
                begin = pace_.issued();
                if (i + 1 == to && source_ < task_.sources.size() && task_.sources[source_] == b.first + i &&
                    tells_others(static_cast<OpKind>(b.kind[i]), b.arg[i])) {
                    publish();
                    early_ = kReleasedEarly;
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
        if constexpr (!Pace::kChained) {
            row.begin |= std::exchange(early_, 0);
        }
        advance(b.first + i + 1);  // from here on other tasks read the row
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
        if constexpr (requires { engine_.watch(int64_t{}, true); }) {
            return [this](int64_t until, bool sleeps) { engine_.watch(until, sleeps); };
        } else {
            return [](int64_t, bool) {};
        }
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
    size_t wait_ = 0, source_ = 0, spawn_ = 0, told_ = 0;
    uint64_t early_ = 0;               // of the op at hand: kReleasedEarly, or nothing
    std::vector<InFlight> in_flight_;  // in the order of the task
    std::vector<InFlight> untold_;     // results of requests that are not done yet, in the order of the task
    uint64_t next_ = 0;                // the op after the last that was passed; where ops overlap
};

}  // namespace reprise

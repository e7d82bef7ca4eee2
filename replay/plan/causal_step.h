// SPDX-License-Identifier: MIT
// The decisions of pace `causal`, one op after the other: when an op may go, what decides how long it takes, and from
// when on the op after it counts. The run issues by it, the collector computes lateness by it and the prediction runs
// by it in virtual time, so that all three agree. What differs is only how time passes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "replay/plan/causal_clock.h"
#include "replay/plan/edges_rules.h"
#include "replay/plan/plan.h"
#include "replay/plan/speeds.h"

namespace reprise {

/// The clock of a task at its start: that of the run, or where its spawner's op began.
inline CausalClock causal_start(const Plan& plan, int64_t run_start_ns, TaskId task, const Speeds& speeds,
                                std::optional<int64_t> spawned_ns) {
    // Where computing is slept, waiting for a processor does not come by itself.
    const bool slept = speeds.computing.policy == DelayPolicy::sleep;
    ThinkGap think = think_gap(plan.log->header(), slept);
    const double compute = speeds.time_scale / speeds.cpu;
    if (spawned_ns && plan.tasks[task].spawner != 0) {
        return {*spawned_ns, plan.tasks[task].spawn_begin, speeds.time_scale, compute, think};
    }
    // No op started a thread that the kernel made for a ring, but what its parent did before is known.
    const std::vector<WaitFor>& waits = plan.tasks[task].waits;
    const bool follows = plan.log->header().source == "capture" && !waits.empty() && waits.front().op == 0 &&
                         waits.front().kind == EdgeKind::lifecycle;
    think.first = follows ? -1 : INT64_MAX;
    return {run_start_ns, plan.first_begin, speeds.time_scale, compute, think};
}

/// What decides when an op is over.
enum class CausalRole : uint8_t {
    call,     // it takes what it takes
    delay,    // its recorded time
    compute,  // the processor, for as long as it was had
    wait,     // what it waits for; also computing that looks for it in memory (TaskRequests::looks)
    submit,   // accelerator: work is queued, the host goes on after its recorded time
    drain,    // accelerator: the queue is empty
};

/// `explained`: the log says what the op waited for. `performed`: the engine did what the op asks. Never `compute`,
/// which depends on the run (Computing).
inline CausalRole causal_role(OpKind kind, int64_t arg, bool explained, bool performed) {
    const OpInfo& row = info(kind);
    if (waits_for_lock(kind, arg)) {
        return CausalRole::wait;
    }
    if (row.is(Trait::accelerator)) {
        return kind == OpKind::gpu_submit ? CausalRole::submit : CausalRole::drain;
    }
    if (explained && row.is(Trait::waits)) {
        return CausalRole::wait;
    }
    const bool starts_or_ends = kind == OpKind::spawn || kind == OpKind::exit;
    const bool delays = (row.is(Trait::cause) && !starts_or_ends) || !performed;
    return delays ? CausalRole::delay : CausalRole::call;
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

/// An op that was a wait for its edges begins before they are done, any other op begins after.
inline bool waits_inside(OpKind kind, bool explained) { return explained && blocks_until_edge(kind); }

/// How exactly a machine keeps time, ns. Virtual time does so to the nanosecond: {0, 0}.
struct TimingNoise {
    int64_t late_wakeup = 200'000;  // computing that begins late by as much makes it up
    int64_t overshoot = 20'000;     // computing that ends late by as much does not delay the op after it
};

/// One task under pace causal. For each op, in order: left_out(), or due(), issued(), ended().
class CausalStep {
public:
    /// `run_start_ns`: when the run began. `spawned_ns`: when the op began that starts this task; none: it starts with
    /// the run.
    CausalStep(const Plan& plan, TaskId task, const Speeds& speeds, int64_t run_start_ns,
               std::optional<int64_t> spawned_ns, TimingNoise noise = {})
        : clock_(causal_start(plan, run_start_ns, task, speeds, spawned_ns)),
          warmth_(speeds.waits, speeds.time_scale / speeds.cpu),
          explained_(plan.tasks[task].explained),
          timers_(plan.tasks[task].timers),
          waits_(plan.tasks[task].waits),
          grids_(plan.tasks[task].look_grids),
          ring_waits_(plan.tasks[task].requests.looks),
          speeds_(speeds),
          noise_(noise),
          generated_(plan.log->header().source == "generate"),
          of_run_(plan.log->header().source == "replay"),
          untimed_(plan.untimed_calls != 0),
          serves_ring_(plan.tasks[task].serves_ring),
          loop_begin_(spawned_ns.value_or(run_start_ns)) {}

    /// The filter leaves it out.
    void left_out(const OpBlock& b, size_t i) { clock_.left_out(b.begin[i], OpRef::end_of(b.begin[i], b.duration[i])); }
    /// See waits_inside().
    bool waits_inside(const OpBlock& b, size_t i) {
        return reprise::waits_inside(static_cast<OpKind>(b.kind[i]), explained_.at(b.first + i));
    }
    /// When the op may go. `released`: when the last op was done that it waits for before it is issued; INT64_MIN: it
    /// did not wait.
    int64_t due(const OpBlock& b, size_t i, int64_t released) {
        if (of_run_ && needs_queue(b.first + i)) {
            clock_.waits_for_others(b.begin[i]);
        }
        const int64_t own = clock_.due(b.begin[i]);
        due_ = std::max(own, released);
        part_of_look_ = 0;
        if (next_grid_ < grids_.size()) {
            due_ = next_look(b.first + i, released > own);  // else it waited for an op before, or not at all
        }
        return due_;
    }
    /// How long the recorded task waited for a processor before the op, as far as the log tells.
    int64_t waited_for_cpu(const OpBlock& b, size_t i) const { return clock_.waited_for_cpu(b.begin[i]); }
    /// It was issued at `begin`. `performed`: the engine does what the op asks.
    CausalRole issued(const OpBlock& b, size_t i, int64_t begin, bool performed) {
        ended_by_ = nullptr;
        arrival_.reset();
        const auto kind = static_cast<OpKind>(b.kind[i]);
        begin_ = begin;
        recorded_end_ = OpRef::end_of(b.begin[i], b.duration[i]);
        untimed_call_ = untimed_ && b.duration[i] == 0;
        const bool explained = explained_.at(b.first + i);
        role_ = causal_role(kind, b.arg[i], explained, performed);
        inside_ = reprise::waits_inside(kind, explained);
        // The kernel reports a result at any time, also within a call or while the task computes.
        beside_ = info(kind).is(Trait::completes) && (kind == OpKind::uring_complete || b.duration[i] == 0);
        if (next_timer_ < timers_.size() && timers_[next_timer_].armed == b.first + i) {
            armed_ = begin;
        }
        if (kind == OpKind::compute) {
            compute(b, i);
        } else if (role_ == CausalRole::delay || role_ == CausalRole::submit) {
            until_ = clock_.stood(b.begin[i], recorded_end_, due_, role_ == CausalRole::submit, timer(b, i));
        }
        return role_;
    }
    /// It was over at `end`. wait, drain: what it waited for was there at `arrived`; kNotKnown: not known. Where that
    /// was before the op was issued, the op would have been over as much earlier as it was issued late.
    static constexpr int64_t kNotKnown = INT64_MAX;
    void ended(int64_t end, int64_t arrived = kNotKnown) {
        switch (role_) {
            case CausalRole::call:
                if (beside_) {
                    clock_.held(std::max<int64_t>(end - begin_, 0));  // it may have been done before
                } else if (untimed_call_) {
                    clock_.performed_untimed(recorded_end_, due_, begin_, end);
                } else {
                    clock_.performed(recorded_end_, due_, begin_, end);
                }
                return;
            case CausalRole::wait:
            case CausalRole::drain: clock_.waited(recorded_end_, end - carried(arrived)); break;
            case CausalRole::submit: return;
            case CausalRole::compute:
                clock_.waited(recorded_end_, compute_passed(until_, end, noise_.overshoot));
                break;
            case CausalRole::delay:
                if (ended_by_ != nullptr) {
                    // The timer stays where it was: what comes after it comes by as much later.
                    timer_ahead_ = std::max<int64_t>(until_ - end, 0);
                    if (timer_ahead_ != 0) {
                        clock_.waited(recorded_end_, end);
                        until_ = end;
                    }
                }
                break;
        }
        if (computes_) {
            clock_.computed();
            computes_ = false;
        }
        if (warms_) {
            warmth_.computed(recorded_end_, end);
            warms_ = false;
        }
    }

    // Of the op that was issued last:

    /// When it was due.
    int64_t due() const { return due_; }
    /// Whether it was a wait for others, see waits_inside().
    bool inside() const { return inside_; }
    /// Whether it is over when what it waits for is there, and not only when its thread woke up from that, which is
    /// late by no more than that. A recorded wait is as long as the thread slept; in a generated job, and of an
    /// accelerator, waking up takes no time.
    bool over_on_arrival() const { return role_ == CausalRole::drain || (inside_ && generated_); }
    /// wait, drain: what it was issued late by and what it waited for was there for, which delays nothing.
    int64_t carried(int64_t arrived) const {
        return arrived == kNotKnown ? 0 : std::max<int64_t>(begin_ - std::max(due_, arrived), 0);
    }
    /// The result of a request, which is no time of the task.
    bool beside() const { return beside_; }
    /// delay, submit: when it is over. compute: when it is over where the thread has the processor all the time.
    int64_t until() const { return until_; }
    /// delay: a source that ends it at once where it is done before, as what it sends ends the wait of an event loop;
    /// null: none does.
    const WaitFor* ended_by() const { return ended_by_; }
    /// A wait for the next request of an open loop: when that is due, however late the task is.
    const std::optional<int64_t>& arrival() const { return arrival_; }
    /// Of kind compute: processor time that it takes.
    int64_t compute_ns() const { return compute_ns_; }
    /// Of it: more than recorded, as the wait before it was longer or shorter.
    int64_t after_wait_ns() const { return after_wait_ns_; }

private:
    /// In a run, a task waits before the op for what a queue has for it. In a recording there is an op for the wait, or
    /// there was none.
    bool needs_queue(uint64_t op) {
        while (next_wait_ < waits_.size() && waits_[next_wait_].op < op) {
            ++next_wait_;
        }
        bool needs = false;
        for (size_t at = next_wait_; at < waits_.size() && waits_[at].op == op; ++at) {
            needs = needs || waits_[at].kind == EdgeKind::queue;
        }
        return needs;
    }

    static constexpr int64_t kOfSleep = 50;  // longer computing beside a sleep is work of its own

    /// When a look that had to wait for a change sees it: after so many sleeps, of which the plan has made one wait.
    int64_t next_look(uint64_t op, bool waited) {
        while (next_grid_ < grids_.size() && grids_[next_grid_].last < op) {
            ++next_grid_;
            looking_ = false;
        }
        if (next_grid_ == grids_.size() || op < grids_[next_grid_].since) {
            return due_;
        }
        const LookGrid& grid = grids_[next_grid_];
        if (!std::exchange(looking_, true)) {
            looks_since_ = due_;
        }
        if (op < grid.first && grid.children == 0 && !grid.sleeps.empty()) {
            part_of_look_ = grid.sleeps.front() / kOfSleep;
        }
        // Where children sleep, the task waits for those, and what it looks for may come meanwhile.
        if (op < grid.first || !(waited || (op == grid.first && (grid.children != 0 || grid.results)))) {
            return due_;
        }
        constexpr double kOfChild = 5e6;    // ns, to start and to end
        constexpr double kFirstLook = 2e3;  // ns: before the first sleep
        constexpr double kNearly = 0.01;    // of a sleep
        constexpr double kGrows = 1.2;      // sleeps that back off
        const double at_once = grid.results ? kFirstLook : kOfChild * static_cast<double>(grid.children);
        const double since = static_cast<double>(due_) - static_cast<double>(looks_since_);
        double point = 0, sleep = 0, growth = 1;
        for (size_t k = 0; since > point + (k == 0 ? at_once : kNearly * sleep); ++k) {
            const double before = sleep;
            if (k < grid.sleeps.size()) {
                sleep = static_cast<double>(grid.sleeps[k]) * speeds_.time_scale;
                growth = before > 0 && sleep >= kGrows * before ? sleep / before : 1;
            } else if (growth == 1 && sleep >= 1) {
                point += sleep * std::ceil((since - point) / sleep - kNearly);
                break;
            } else {
                sleep *= growth;
            }
            if (sleep < 1) {
                return due_;
            }
            point += sleep;
        }
        constexpr double kMost = 4e18;
        return std::max(due_, looks_since_ + static_cast<int64_t>(std::min(point, kMost)));
    }

    /// By how much a wait that ends with a timer is longer than recorded.
    int64_t timer(const OpBlock& b, size_t i) {
        if (waits_until(static_cast<OpKind>(b.kind[i]), b.arg[i])) {
            return until_point(b.duration[i], until_ns(b.arg[i]));
        }
        if (next_timer_ == timers_.size() || timers_[next_timer_].op != b.first + i) {
            return 0;
        }
        const double scale = speeds_.time_scale;
        const auto scaled = [&](int64_t ns) { return static_cast<int64_t>(static_cast<double>(ns) * scale); };
        const int64_t ends = armed_ + timer_ahead_ + scaled(timers_[next_timer_].after_ns);
        if (timers_[next_timer_].loop) {
            ended_by_ = next_message(b.first + i);
        }
        timer_ahead_ = 0;
        ++next_timer_;
        return std::max(ends, due_) - due_ - scaled(b.duration[i]);
    }

    /// The same of a wait for the next request of an open loop, due so long after the loop began. The deadline is
    /// absolute: a task that is late for one request is not therefore late for the next.
    int64_t until_point(int64_t duration, int64_t since) {
        constexpr double kMost = 4e18;
        const auto scaled = [&](int64_t ns) {
            return static_cast<int64_t>(std::clamp(static_cast<double>(ns) * speeds_.time_scale, 0.0, kMost));
        };
        if (since == 0) {
            loop_begin_ = due_;
            return -scaled(duration);
        }
        arrival_ = loop_begin_ + scaled(since);
        int64_t waits = 0;
        if (__builtin_sub_overflow(*arrival_, due_, &waits)) {
            waits = INT64_MAX;
        }
        return std::max(waits, int64_t{0}) - scaled(duration);
    }

    /// The next that others have for the task, where it is what an event loop waits for.
    const WaitFor* next_message(uint64_t op) const {
        const auto next = std::upper_bound(waits_.begin(), waits_.end(), op,
                                           [](uint64_t at, const WaitFor& wait) { return at < wait.op; });
        const bool is = next != waits_.end() && (next->kind == EdgeKind::message || next->kind == EdgeKind::wake);
        return is ? &*next : nullptr;
    }

    void compute(const OpBlock& b, size_t i) {
        computes_ = true;
        warms_ = Computing::surely(OpKind::compute, b.flags[i]);
        const RingWait* const look = ring_wait(b.first + i);
        const bool counts = look == nullptr && b.duration[i] > part_of_look_;
        const int64_t own = look != nullptr ? std::min(look->own_ns, b.duration[i]) : counts ? b.duration[i] : 0;
        after_wait_ns_ = warms_ && counts ? warmth_.change(b.begin[i], own, begin_) : 0;
        compute_ns_ = speeds_.computed(own) + after_wait_ns_;
        if (!counts && own == 0) {
            // Of a wait for requests, what it waited for has been waited for before it. Of looks between sleeps that
            // are one wait, there are as many as that takes here.
            role_ = CausalRole::wait;
        } else if (!serves_ring_ && speeds_.computing.takes_processor(OpKind::compute, b.flags[i])) {
            role_ = CausalRole::compute;
            until_ = compute_deadline(due_, begin_, compute_ns_, noise_.late_wakeup);
        } else {
            until_ = clock_.stood(b.begin[i], OpRef::end_of(b.begin[i], own), due_, true, after_wait_ns_);
            if (look != nullptr) {
                clock_.waited(recorded_end_, until_);
            }
        }
    }
    /// The wait for requests that the computing at hand was; null: none.
    const RingWait* ring_wait(uint64_t op) {
        while (next_ring_wait_ < ring_waits_.size() && ring_waits_[next_ring_wait_].op < op) {
            ++next_ring_wait_;
        }
        const bool is = next_ring_wait_ < ring_waits_.size() && ring_waits_[next_ring_wait_].op == op;
        return is ? &ring_waits_[next_ring_wait_] : nullptr;
    }

    CausalClock clock_;
    Warmth warmth_;
    ExplainedCursor explained_;
    const std::vector<Timer>& timers_;
    const std::vector<WaitFor>& waits_;
    const std::vector<LookGrid>& grids_;
    const std::vector<RingWait>& ring_waits_;
    Speeds speeds_;
    TimingNoise noise_;
    bool generated_, of_run_, untimed_, serves_ring_;
    bool untimed_call_ = false;
    size_t next_grid_ = 0, next_ring_wait_ = 0;
    bool looking_ = false;      // it is among the ops of that grid
    int64_t looks_since_ = 0;   // since then
    int64_t part_of_look_ = 0;  // ns: computing up to that is
    size_t next_wait_ = 0;      // of a run's log
    CausalRole role_ = CausalRole::call;
    bool computes_ = false, warms_ = false, beside_ = false, inside_ = false;
    int64_t due_ = 0, begin_ = 0, recorded_end_ = 0;
    int64_t until_ = 0, compute_ns_ = 0, after_wait_ns_ = 0;
    size_t next_timer_ = 0;
    int64_t armed_ = 0;        // when the first wait of the next timer began
    int64_t timer_ahead_ = 0;  // by how much the timer before would have ended later than its wait did
    const WaitFor* ended_by_ = nullptr;
    int64_t loop_begin_;  // of an open loop
    std::optional<int64_t> arrival_;
};

}  // namespace reprise

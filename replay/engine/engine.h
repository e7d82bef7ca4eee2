// SPDX-License-Identifier: MIT
// What an engine is. One object per task, made and used by the task's thread; the hot loop is a template over its type,
// so that no op costs a virtual call.
//
// An engine class has
//
//   static constexpr bool kUsesRoot;
//       It performs calls below the replay root: the run then needs --root, and each worker process has a WorkerState
//       (descriptors, mappings) that its engines share and that follows fork.
//   explicit E(const EngineContext&);
//       Throws Error where the machine refuses what it needs.
//   bool before(const OpBlock&, size_t);
//       Prepares op i; none of it counts as time inside the op. True where it took any time.
//   int64_t submit(const OpBlock&, size_t);
//       Performs op i, and returns its result, -errno or not_performed(). Ops that only explain time return their
//       recorded result.
//
// That is all where submit() completes the op, as system calls do. An engine that works asynchronously may return
// kInFlight from submit() instead, and has
//
//   size_t complete(std::span<Completion> out, bool wait);
//       Ops that are done since the last call, in any order; each op once. `wait`: blocks until there is one, or until
//       the run is stopped. 0 with `wait`: the run is stopped.
//
// An op that reports the result of an asynchronous request (Trait::completes) may return kInFlight under every pace:
// the task goes on, and the op's row is written when complete() tells it. What needs the request waits inside submit().
//
// It may have
//
//   void watch(int64_t until_ns, bool sleeps);
//       Nothing is to be done before `until_ns`, CLOCK_MONOTONIC: it takes note of requests that are done meanwhile.
//       `sleeps`: the job slept, and did not wait for the next one of an open loop.
//   void glance();
//       The same while the task computes, about once a microsecond: it does not wait.
//
// Other ops are submitted in the order of the task. Under pace afap several may be in flight; an engine for which the
// order of two ops matters completes the first before it submits the second. The loop waits for all ops in flight
// before others may rely on one of them, before it starts a task or a process (fork sees none in flight) and at the end
// of each block, which is gone afterwards. Under the paces that keep time the loop waits for each op, as the job did. A
// stopped run leaves ops in flight to the destructor.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/oplog/oplog.h"
#include "replay/plan/left_out.h"
#include "replay/plan/plan.h"

namespace reprise {

struct WorkerState;

/// What an engine is made from.
struct EngineContext {
    const Plan& plan;
    const TaskPlan& task;
    WorkerState* process = nullptr;  // of the worker process; null for engines that do not use the root
    bool spins = true;               // who looked for results in memory does so here: there are processors for it
};

/// What submit() returns for an op that complete() will report.
inline constexpr int64_t kInFlight = INT64_MIN + 255;
static_assert(is_not_performed(kInFlight) && kLeftOutReasons < 255);

/// An op that is done.
struct Completion {
    uint64_t op = 0;     // number within the task
    int64_t result = 0;  // as of submit()
    uint64_t end = 0;    // tick; 0: now
};

template <class E>
concept Engine = std::constructible_from<E, const EngineContext&> &&
    requires(E& engine, const OpBlock& block, size_t i) {
    { E::kUsesRoot } -> std::convertible_to<bool>;
    { engine.before(block, i) } -> std::same_as<bool>;
    { engine.submit(block, i) } -> std::same_as<int64_t>;
};

/// Engines that may complete ops after submit().
template <class E>
concept CompletesLater = requires(E& engine, std::span<Completion> out, bool wait) {
    { engine.complete(out, wait) } -> std::same_as<size_t>;
};

}  // namespace reprise

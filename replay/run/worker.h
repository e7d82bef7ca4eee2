// SPDX-License-Identifier: MIT
// One worker process of a run: the process that stands for a recorded process, with a thread per recorded thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "replay/engine/engines.h"
#include "replay/engine/process_state.h"
#include "replay/plan/plan.h"
#include "replay/run/shared.h"

namespace reprise {

class EpochWatch;
class LimitedRun;
class LiveRun;

/// timed: at recorded times. causal: after what it depends on and the think time. afap: as fast as order allows.
enum class Pace : uint8_t { timed, causal, afap };

/// What all worker processes of a run know.
struct WorkerSetup {
    const Plan* plan = nullptr;
    SharedRun* run = nullptr;
    const WritePattern* pattern = nullptr;
    Pace pace = Pace::afap;
    EngineKind engine = EngineKind::null;
    Speeds speeds;
    int root = -1;  // descriptor of the root; -1 for an engine that does not use it
    bool read_only = false;
    EpochWatch* epochs = nullptr;                       // none: nobody watches
    LimitedRun* limited = nullptr;                      // workers run in its group; none: where this process is
    LiveRun* live = nullptr;                            // none: nobody looks
    std::vector<std::pair<HandleId, int>> instances{};  // InheritedUse::shared, and their descriptors
};

/// The body of a worker process that the supervisor forked: waits for `go`, runs every task of the process, and what
/// they spawn. Never returns.
[[noreturn]] void run_worker(const WorkerSetup& setup, ProcessId process);

/// Tasks that begin with a root process, and so wait at the start line.
uint32_t tasks_at_start(const Plan& plan);

/// Runs up to `ops` ops of the longest task through the hot loop with the null engine, without its edges and spawns.
/// Nanoseconds per op; 0 where the log has no op.
double measure_harness_ns(const Plan& plan, uint64_t ops, int64_t most_ns);

}  // namespace reprise

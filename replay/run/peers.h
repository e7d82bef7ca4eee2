// SPDX-License-Identifier: MIT
// What a run needs of the other ranks that perform parts of the same job (hosts/). A run of one rank has none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/plan/plan.h"
#include "replay/run/shared.h"

namespace reprise {

/// The clock of a rank beside that of rank 0.
struct PeerClock {
    int64_t offset_ns = 0;       // CLOCK_MONOTONIC of rank 0 less that of the rank, at the start
    int64_t uncertainty_ns = 0;  // half of the shortest round trip
    double drift_ppm = 0.0;      // between start and end
    bool drift_known = false;
};

/// A rank of a run, for its result.
struct PeerRow {
    uint32_t rank = 0;
    std::string host;
    std::string recorded;  // the recorded ranks that it performed: "0", "0 4"
    PeerClock clock;
    int64_t late_ns = 0;  // when its first task left the start line, after the agreed start, by rank 0's clock
    uint64_t ops = 0, bytes_read = 0, bytes_written = 0;
    int64_t elapsed_ns = 0;
    int64_t waited_ns = 0;   // for ops of other ranks (ReplayResult::rank_wait_ns)
    int64_t held_up_ns = 0;  // what the others waited for this rank; on rank 0 only
    std::string ended;
    int code = 0;     // what this rank's part alone would exit with
    std::string why;  // what speaks against it, a sentence; empty: nothing
};

struct PeersReport {
    std::vector<PeerRow> rows;  // by rank; on rank 0 only
    int64_t skew_ns = 0;        // between the first and the last rank that left the start line
    int64_t uncertainty_ns = 0;
};

/// The calls of a rank, on one thread. Those that wait for others throw Error (machine), which names the rank and its
/// host, where one failed, stopped or is cut off.
class Peers {
public:
    Peers() = default;
    virtual ~Peers() = default;
    Peers(const Peers&) = delete;
    Peers& operator=(const Peers&) = delete;

    virtual uint32_t rank() const = 0;
    virtual uint32_t size() const = 0;
    /// Ranks on this host.
    virtual uint32_t ranks_here() const = 0;
    /// The first of the ranks that share this root: it takes the lock and writes the marker for all of them.
    virtual bool leads_root() const = 0;
    /// By process of the log, which the plan is of.
    virtual const std::vector<uint32_t>& rank_of() const = 0;

    /// Waits until all ranks are here.
    virtual void gate() = 0;
    /// From now on what the tasks of others publish is published in `run`, and what they wait for is told them.
    virtual void attach(const Plan& plan, SharedRun& run) = 0;
    /// All tasks of this rank stand at the start line. Never waits.
    virtual void ready() = 0;
    /// When the run starts, CLOCK_MONOTONIC of this host; none: not agreed yet.
    virtual std::optional<int64_t> start_ns() const = 0;
    /// Tells all that the run ends here and why. Never waits.
    virtual void stop(const std::string& why) = 0;
    /// Why another rank ended the run: "rank 3 on host b: worker 2 died of signal 9"; empty: none did.
    virtual std::string stopped() const = 0;
    /// Ops that this rank has done, for those who look at the whole. Whether one of its tasks runs.
    virtual void progress(uint64_t ops, bool runs) = 0;
    virtual uint64_t ops_elsewhere() const = 0;
    virtual bool others_run() const = 0;
    /// All workers of this rank have ended. Never waits.
    virtual void ended() = 0;
    /// Those of all ranks have, or one that has not is lost.
    virtual bool all_ended() const = 0;
    /// From now on waits for nobody longer than a moment. Never waits.
    virtual void hurry() = 0;
    /// Neither reads nor writes what was attached any more. Never waits.
    virtual void forget() = 0;
    /// The opposite of attach(); what came of the clocks. Waits for the others unless the run was stopped.
    virtual PeerRow detach(SharedRun& run) = 0;
};

}  // namespace reprise

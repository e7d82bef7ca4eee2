// SPDX-License-Identifier: MIT
// What the time of a run went to along its critical path: from its start to the op that ended last, each stretch in the
// task that the end had to wait for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "replay/plan/causal_step.h"

namespace reprise {

enum class PathPart : uint8_t {
    compute,      // a processor computed
    call,         // calls that memory served, hand-overs, and what no op covers
    device,       // I/O calls that took long enough to have waited for a device
    accelerator,  // waits for one
    asleep,       // sleeps that the job asked for, idle
    unexplained,  // waits whose cause the recording does not know
    ranks,        // waits for what other ranks perform; their own time is theirs
};
inline constexpr size_t kPathParts = 7;

/// "compute", "calls", ...; keys in JSON.
const char* path_part_name(PathPart part);

/// I/O calls as long as this count as waits for a device, ns.
inline constexpr int64_t kDeviceWait = 100'000;

/// Part of an op that took `duration` ns under `role`.
PathPart path_part(OpKind kind, int64_t arg, int64_t result, CausalRole role, int64_t duration);

/// ns. The parts add up to the run's elapsed time.
struct PathTimes {
    std::array<int64_t, kPathParts> ns{};  // by PathPart
    /// For which inferred edges held tasks up on the path, each by how little it is certain (1 - confidence).
    double doubtful_ns = 0;
    /// Of the parts, in tasks that worked until a signal ended them (replay/plan/helpers.h).
    int64_t cut_ns = 0;

    int64_t& of(PathPart part) { return ns[static_cast<size_t>(part)]; }
    int64_t of(PathPart part) const { return ns[static_cast<size_t>(part)]; }
    int64_t sum() const;
};

/// "3.16 s of the 3.17 s are recorded waits of unknown cause", where that is more than a share of `elapsed_ns`; else
/// empty.
std::string unknown_waits(const PathTimes& path, int64_t elapsed_ns, double share);
/// The same of most of the time, with what it means: the time says little about the storage.
std::string mostly_unknown_waits(const PathTimes& path, int64_t elapsed_ns);

/// What waits of other lengths than recorded make of compute (`after_waits_ns` of all `computing_ns`), as far as it
/// lies on the path, ns.
double after_waits_on_path(const PathTimes& path, double after_waits_ns, double computing_ns);
/// "assumed 33.6 ms less compute after shorter waits ...", where that is more than a share; else empty.
std::string guessed_after_waits(double on_path_ns, int64_t elapsed_ns, double share);

}  // namespace reprise

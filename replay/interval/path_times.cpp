// SPDX-License-Identifier: MIT
#include "replay/interval/path_times.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "formats/support/quantity.h"
#include "replay/plan/recorded_doubts.h"

namespace reprise {

const char* path_part_name(PathPart part) {
    switch (part) {
        case PathPart::compute: return "compute";
        case PathPart::call: return "calls";
        case PathPart::device: return "device";
        case PathPart::accelerator: return "accelerator";
        case PathPart::asleep: return "asleep";
        case PathPart::unexplained: return "unexplained";
        case PathPart::ranks: return "ranks";
    }
    return "";
}

PathPart path_part(OpKind kind, int64_t arg, int64_t result, CausalRole role, int64_t duration) {
    switch (role) {
        case CausalRole::compute: return PathPart::compute;
        case CausalRole::submit:
        case CausalRole::drain: return PathPart::accelerator;
        case CausalRole::wait:
            // The waker's time counts in its own task; where the task looks for results in memory, it is the device's.
            return kind == OpKind::compute ? PathPart::device : PathPart::call;
        case CausalRole::call: {
            const bool io = info(kind).is(Trait::io);
            return io && duration >= kDeviceWait ? PathPart::device : PathPart::call;
        }
        case CausalRole::delay: break;
    }
    if (kind == OpKind::compute) {
        return PathPart::compute;
    }
    if (kind == OpKind::idle || (kind == OpKind::wait && ended_by_time(arg, result))) {
        return PathPart::asleep;
    }
    return info(kind).is(Trait::waits) ? PathPart::unexplained : PathPart::call;
}

int64_t PathTimes::sum() const { return std::accumulate(ns.begin(), ns.end(), int64_t{0}); }

std::string unknown_waits(const PathTimes& path, int64_t elapsed_ns, double share) {
    constexpr int64_t kLittle = 10'000'000;
    const int64_t waits = path.of(PathPart::unexplained);
    if (waits <= kLittle || static_cast<double>(waits) <= share * static_cast<double>(elapsed_ns)) {
        return {};
    }
    return format_duration(waits) + " of the " + format_duration(elapsed_ns) + " are recorded waits of unknown cause";
}

std::string mostly_unknown_waits(const PathTimes& path, int64_t elapsed_ns) {
    const std::string waits = unknown_waits(path, elapsed_ns, kMostShare);
    return waits.empty() ? waits : waits + ", as long on any storage";
}

double after_waits_on_path(const PathTimes& path, double after_waits_ns, double computing_ns) {
    const auto on_path = static_cast<double>(path.of(PathPart::compute));
    return computing_ns <= 0 ? 0.0 : after_waits_ns * std::min(on_path / computing_ns, 1.0);
}

std::string guessed_after_waits(double on_path_ns, int64_t elapsed_ns, double share) {
    const double size = std::abs(on_path_ns);
    if (size <= share * static_cast<double>(elapsed_ns)) {
        return {};
    }
    return "assumed " + format_duration(std::llround(size)) +
           (on_path_ns < 0 ? " less compute after shorter" : " more compute after longer") +
           " waits (this machine's cache costs; the job's may be lower)";
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// How the times of a run relate to those of its recording. Asked for as in replay/plan/what_if.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "replay/plan/computing.h"
#include "replay/plan/warmth.h"

namespace reprise {

/// How this run's times relate to the recorded ones; 1: the same.
struct Speeds {
    double time_scale = 1.0;   // of recorded times
    double cpu = 1.0;          // causal: the processor is so many times as fast
    double gpu = 1.0;          // causal: accelerators work so many times as fast
    Computing computing = {};  // timed, causal: how computing passes
    WaitCosts waits = {};      // causal: what they cost the computing after them

    /// Busy time here of accelerator work that took `ns` there.
    int64_t busy(int64_t ns) const {
        constexpr double kMost = 1e18;
        return static_cast<int64_t>(std::clamp(static_cast<double>(ns) * (time_scale / gpu), 0.0, kMost));
    }
    /// Processor time here of what took `ns` there.
    int64_t computed(int64_t ns) const {
        return time_scale == cpu ? ns : static_cast<int64_t>(static_cast<double>(ns) * time_scale / cpu);
    }
};

}  // namespace reprise

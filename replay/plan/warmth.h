// SPDX-License-Identifier: MIT
// How warm the caches of a task are, in the recording and in this run: computing after a wait takes longer the
// longer the wait was, and a replay may wait for a shorter or longer time than the recording did.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "calibrate/wait_cost.h"

namespace reprise {

/// What waits cost on the recording's machine and on this one. Both measured and stable, or computing stays as
/// recorded.
struct WaitCosts {
    WaitCost there, here;
    bool known() const { return there.stable() && here.stable(); }
};

/// One task, in the order of its ops `compute`. Both the task and the collector keep one, so that they agree.
///
/// After a wait the task owes what the wait costs (WaitCost::after); computing for t pays 1 - exp(-t / over_ns) of it.
/// Another wait before all is paid goes on where the caches are by then: two waits of 2.5 ms with little computing
/// between cost what one of 5 ms does. What the task paid in the recording is taken off the recorded time, what it
/// owes here is added.
class Warmth {
public:
    /// `scale`: of what computing took in the recording.
    Warmth(const WaitCosts& costs, double scale) : costs_(costs), scale_(scale), known_(costs.known()) {}

    /// By how much (ns) computing that took `ns` in the recording and begins at `begin` in this run takes longer.
    int64_t change(int64_t recorded_begin, int64_t ns, int64_t begin) {
        if (!known_ || ns <= 0) {
            return 0;
        }
        const double there = pay(owed_there_, costs_.there, recorded_begin, recorded_end_, ns);
        const double here = pay(owed_here_, costs_.here, begin, end_, ns);
        return std::llround(here - there * scale_);
    }
    /// That computing has ended.
    void computed(int64_t recorded_end, int64_t end) {
        recorded_end_ = recorded_end;
        end_ = end;
    }

private:
    /// Cold caches make computing at most so slow: three quarters of the time is what they cost (80 % were measured).
    static constexpr double kMost = 0.75;
    /// Calls that are shorter keep the caches as they are.
    static constexpr int64_t kShortestWait = 100'000;
    static constexpr double kLongest = 1e18;
    static constexpr int64_t kNone = INT64_MIN;

    /// What a task owes, and for how long its caches have been left alone since all was paid.
    struct Debt {
        double ns = 0, waited_ns = 0;
    };

    static double pay(Debt& debt, const WaitCost& cost, int64_t begin, int64_t last_end, int64_t ns) {
        // A task is new where it computes first; what was before is not known, so it is taken as the same.
        int64_t waited = 0;
        if (last_end != kNone && !__builtin_sub_overflow(begin, last_end, &waited) && waited >= kShortestWait) {
            debt.waited_ns = std::min(debt.waited_ns + static_cast<double>(waited), kLongest);
            debt.ns = std::max(debt.ns, cost.after(static_cast<int64_t>(debt.waited_ns)));
        }
        const auto length = static_cast<double>(ns);
        double share = -std::expm1(-length / cost.over_ns);
        if (debt.ns * share > kMost * length) {
            share = kMost * length / debt.ns;
        }
        const double paid = debt.ns * share;
        debt.ns -= paid;
        debt.waited_ns *= 1 - share;
        return paid;
    }

    WaitCosts costs_;
    double scale_;
    bool known_;
    Debt owed_there_, owed_here_;
    int64_t recorded_end_ = kNone, end_ = kNone;
};

}  // namespace reprise

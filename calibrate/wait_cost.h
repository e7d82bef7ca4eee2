// SPDX-License-Identifier: MIT
// What a wait costs the compute after it: other threads use the CPU and its caches in the meantime.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise {

/// By how much computing takes longer after a wait than without one, measured with a working set of 256 KiB: in all,
/// once the thread computes long enough. Not measured: all 0.
struct WaitCost {
    static constexpr std::array<int64_t, 5> kWaits{1'000'000, 2'500'000, 5'000'000, 10'000'000, 20'000'000};  // ns
    std::array<double, kWaits.size()> extra_ns{};   // after waits of kWaits; never falls
    double over_ns = 0;                             // within so much computing 63 % (1 - 1/e) of it have been paid
    std::array<double, kWaits.size()> spread_ns{};  // by how much repeated measurements differ at most, up or down

    bool measured() const { return over_ns > 0; }
    /// Whether repeated measurements agree: within a fifth, or 10 us.
    bool stable() const;
    /// After a wait of `wait_ns`: between the points in proportion, from nothing at 0 on; as the last beyond it.
    double after(int64_t wait_ns) const;
    bool operator==(const WaitCost&) const = default;
};

/// Measures again and again until two measurements in a row agree, at most kMostMeasurements times; each takes about
/// 50 ms a round, and of its rounds the medians count. Ends early, not measured, once `stop` is set.
inline constexpr int kMostMeasurements = 5;
WaitCost measure_wait_cost(int rounds = 9, const std::atomic<bool>* stop = nullptr);
/// The mean of several measurements, each point with its spread.
WaitCost combine(const std::vector<WaitCost>& measurements);

/// Of medians: `without` a wait and `after` each of kWaits, the times that stretches of computing took one after the
/// other, ns. They are of equal work.
using Stretches = std::array<double, 12>;
WaitCost wait_cost_of(const Stretches& without, const std::array<Stretches, WaitCost::kWaits.size()>& after);

}  // namespace reprise

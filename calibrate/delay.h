// SPDX-License-Identifier: MIT
// Waits until an absolute time: sleep close to it, then spin, within a budget of spinning threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "calibrate/clock.h"

namespace reprise {

/// How many threads may spin at once: processors of this machine less one, and none where threads that compute have all
/// of them. Lives in memory that all of them share.
struct SpinTokens {
    std::atomic<int32_t> free{0};
    std::atomic<int32_t> computing{0};  // threads (Compute)
    std::atomic<int32_t> processors{INT32_MAX};
    bool available() const {
        return free.load(std::memory_order_relaxed) > 0 &&
               computing.load(std::memory_order_relaxed) < processors.load(std::memory_order_relaxed);
    }
};

/// Processors this process may run on, at least 1.
int usable_cpus();

/// Waits until absolute times on behalf of one thread.
///
/// Sleeps (TIMER_ABSTIME, timer slack 1 ns) to the deadline less a margin and spins the rest. The margin is the 97th
/// percentile of this thread's recent wake-up lateness, within 3..200 us. Without a spin token it sleeps to the
/// deadline less the median lateness instead, and spins the little that is left. Not thread-safe.
class Delay {
public:
    /// `tokens` may be null: never spins. `stop`, where given, ends every wait within about 50 ms once it is not 0.
    /// `tick_ns`: length of a tick.
    Delay(SpinTokens* tokens, const std::atomic<uint32_t>* stop, double tick_ns);

    /// CLOCK_MONOTONIC in nanoseconds, from ticks.
    int64_t now_ns() { return now_ns(ticks_now()); }
    /// The same, where `tick` was read just now.
    int64_t now_ns(uint64_t tick) {
        if (__builtin_expect(static_cast<int64_t>(tick - anchor_.tick) > longest_ticks_, 0)) {
            anchor_ = take_tick_point();
            return anchor_.ns;
        }
        return ns_at(tick);
    }
    /// The same without a look at how long ago the two clocks were compared.
    int64_t ns_at(uint64_t tick) const {
        return anchor_.ns +
               static_cast<int64_t>(static_cast<double>(static_cast<int64_t>(tick - anchor_.tick)) * tick_ns_);
    }
    /// The tick at a time that is not long ago.
    uint64_t tick_at(int64_t ns) const {
        return anchor_.tick +
               static_cast<uint64_t>(static_cast<int64_t>(static_cast<double>(ns - anchor_.ns) / tick_ns_));
    }
    /// Returns at or after `deadline_ns` (CLOCK_MONOTONIC), or earlier where stopped.
    void until(int64_t deadline_ns);
    /// For tests: the present margin in nanoseconds.
    int64_t margin_ns() const { return margin_; }

private:
    void sleep_until(int64_t ns);
    void learn(int64_t late_ns);
    bool stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed) != 0; }

    SpinTokens* tokens_;
    const std::atomic<uint32_t>* stop_;
    double tick_ns_;
    int64_t longest_ticks_;  // after the anchor
    TickPoint anchor_;
    std::array<int64_t, 64> late_{};
    size_t samples_ = 0;
    int64_t margin_ = 60'000;
    int64_t median_ = 50'000;
};

/// Sets the calling thread's timer slack to 1 ns. Once per thread.
void use_least_timer_slack();

/// For a thread whose turns take microseconds and on which whole chains of waits depend: asks the scheduler for little
/// at a time, so that it is let in at once where others compute (kernel 6.12 and later; before, it means nothing).
void ask_for_short_turns();

}  // namespace reprise

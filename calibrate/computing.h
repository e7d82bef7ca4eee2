// Owns standing in for a computation: occupying a processor for as long as the recorded thread was on one.
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "calibrate/clock.h"

namespace reprise {

/// Takes processor time, not time: a thread that has to share its processor takes longer, as the recorded one would
/// have. That is why run-queue time need not be replayed. Not thread-safe.
///
/// Needs no system call: the time stamp counter is read without pause, and a step of more than kAway between two
/// readings means that the thread was not running. (CLOCK_THREAD_CPUTIME_ID tells the same at 0.3 us a reading, and
/// most computations between two calls are shorter than 10 us.) Steps below that are interrupts; the recorded time
/// has them, too.
class Computing {
public:
    /// `stop`, where given, ends it once it is not 0. `tick_ns`: length of a tick.
    Computing(const std::atomic<uint32_t>* stop, double tick_ns)
        : stop_(stop), tick_ns_(tick_ns), away_(static_cast<int64_t>(kAway / tick_ns)) {}

    /// Computes for `ns` nanoseconds. What it took too much is carried into the next.
    void take(int64_t ns) {
        owed_ += static_cast<int64_t>(static_cast<double>(ns) / tick_ns_);
        uint64_t last = ticks_now();
        while (owed_ > 0) {
            const uint64_t now = ticks_now();
            const auto step = static_cast<int64_t>(now - last);
            owed_ -= step > away_ ? 0 : step;
            last = now;
            if (stop_ != nullptr && stop_->load(std::memory_order_relaxed) != 0) {
                owed_ = 0;
            }
        }
    }

private:
    static constexpr double kAway = 20'000;  // ns

    const std::atomic<uint32_t>* stop_;
    double tick_ns_;
    int64_t away_;      // ticks
    int64_t owed_ = 0;  // ticks; below 0: took too much
};

}  // namespace reprise

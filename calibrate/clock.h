// SPDX-License-Identifier: MIT
// The replay's clock: ticks that cost a few nanoseconds to read, and their conversion to CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <ctime>
#include <mutex>
#include <vector>

namespace reprise {

/// CLOCK_MONOTONIC in nanoseconds.
inline int64_t monotonic_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

namespace detail {
extern const bool ticks_are_tsc;
}

/// True where ticks are the processor's time stamp counter: the kernel uses it as its own clock source, so it is
/// constant, synchronised over the cores and never stops. Otherwise a tick is a nanosecond of CLOCK_MONOTONIC.
inline bool ticks_are_tsc() { return detail::ticks_are_tsc; }

/// Now, in ticks. Comparable between threads and processes of this machine.
inline uint64_t ticks_now() {
#if defined(__x86_64__)
    if (__builtin_expect(detail::ticks_are_tsc, 1)) {
        return __builtin_ia32_rdtsc();
    }
#endif
    return static_cast<uint64_t>(monotonic_ns());
}

/// Tells the processor that this thread spins.
inline void spin_pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// One instant on both clocks.
struct TickPoint {
    uint64_t tick = 0;
    int64_t ns = 0;  // CLOCK_MONOTONIC
};
/// Reads both clocks as closely together as a few tries allow (error: about one clock read).
TickPoint take_tick_point();

/// Nanoseconds per tick, measured between two instants; 1 where they are the same.
double tick_length_ns(const TickPoint& from, const TickPoint& to);
/// The same over at least `ns` nanoseconds from `from` on; sleeps where that has not passed yet.
double measure_tick_length_ns(const TickPoint& from, int64_t ns);

/// Converts ticks to nanoseconds between and beyond known instants, so that neither a wrong tick length nor the slewing
/// of CLOCK_MONOTONIC accumulates.
class TickTimeline {
public:
    /// Later points have later ticks; others are ignored.
    void add(const TickPoint& point);
    /// 0 where no point is known.
    int64_t ns(uint64_t tick) const;
    /// Adds what `longer` has more: this one is its beginning.
    void catch_up(const TickTimeline& longer);

private:
    std::vector<TickPoint> points_;
    mutable size_t last_ = 0;  // the segment of the latest question
};

/// A timeline that several threads add to. Ticks before its latest point are the same nanosecond for all of them, and
/// stay so.
class SharedTimeline {
public:
    void add(const TickPoint& point);
    void add_now();
    void catch_up(TickTimeline& copy) const;

private:
    mutable std::mutex mutex_;
    TickTimeline points_;
};

}  // namespace reprise

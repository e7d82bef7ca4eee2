// SPDX-License-Identifier: MIT
#include "calibrate/delay.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace reprise {
namespace {

constexpr int64_t kLeastMargin = 3'000, kGreatestMargin = 200'000;
// Sleeps are cut into pieces of this length, so that a stop is seen.
constexpr int64_t kLongestSleep = 50'000'000;
// After this the anchor between ticks and CLOCK_MONOTONIC is taken anew; bounds the error of a slewed clock.
constexpr int64_t kAnchorAge = 20'000'000;

}  // namespace

int usable_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
        return CPU_COUNT(&set);
    }
    return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

void use_least_timer_slack() { prctl(PR_SET_TIMERSLACK, 1); }

void ask_for_short_turns() {
    constexpr uint64_t kLeast = 100'000;  // ns
    struct {                              // sched_attr, whose header cannot be included beside the library's
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } own{};
    if (::syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) == 0 && own.policy == SCHED_OTHER) {
        own.runtime = kLeast;
        ::syscall(SYS_sched_setattr, 0, &own, 0);
    }
}

Delay::Delay(SpinTokens* tokens, const std::atomic<uint32_t>* stop, double tick_ns)
    : tokens_(tokens),
      stop_(stop),
      tick_ns_(tick_ns),
      longest_ticks_(static_cast<int64_t>(static_cast<double>(kAnchorAge) / tick_ns)),
      anchor_(take_tick_point()) {}

void Delay::sleep_until(int64_t ns) {
    const timespec until{ns / 1'000'000'000, ns % 1'000'000'000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR && !stopped()) {
    }
}

void Delay::learn(int64_t late_ns) {
    late_[samples_++ % late_.size()] = std::max<int64_t>(late_ns, 0);
    // Early on every sample counts; later only now and then, as sorting costs about a microsecond.
    if (samples_ > late_.size() && samples_ % 16 != 0) {
        return;
    }
    std::array<int64_t, 64> sorted = late_;
    const size_t count = std::min(samples_, sorted.size());
    std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count));
    const size_t p97 = count >= 34 ? (count * 97) / 100 : count - 1;
    margin_ = std::clamp(sorted[std::min(p97, count - 1)], kLeastMargin, kGreatestMargin);
    median_ = std::clamp(sorted[count / 2], int64_t{1'000}, kGreatestMargin);
}

void Delay::until(int64_t deadline_ns) {
    int64_t now = now_ns();
    if (now >= deadline_ns) {
        return;
    }
    const bool may_spin = tokens_ != nullptr && tokens_->available();
    const int64_t target = deadline_ns - (may_spin ? margin_ : median_);
    while (now < target && !stopped()) {
        const bool last = target - now <= kLongestSleep;
        const int64_t wake = last ? target : now + kLongestSleep;
        sleep_until(wake);
        anchor_ = take_tick_point();
        now = anchor_.ns;
        if (last) {
            learn(now - wake);
        }
    }
    if (now >= deadline_ns || stopped()) {
        return;
    }
    bool token = false;
    if (tokens_ != nullptr && tokens_->available()) {
        token = tokens_->free.fetch_sub(1, std::memory_order_relaxed) > 0;
        if (!token) {
            tokens_->free.fetch_add(1, std::memory_order_relaxed);
        }
    }
    for (int turns = 0; now_ns() < deadline_ns; ++turns) {
        // Without a token the rest is some 10 us. Giving the processor away for it costs a time slice of milliseconds
        // where others compute; who slept would have been let in at once.
        spin_pause();
        if (turns % 64 == 0 && stopped()) {
            break;
        }
    }
    if (token) {
        tokens_->free.fetch_add(1, std::memory_order_relaxed);
    }
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "calibrate/compute.h"

#include <algorithm>
#include <ctime>
#include <vector>

namespace reprise {
namespace {

// Asking the kernel for this thread's processor time costs 0.2 to 0.8 us, twice per op: only where that is little. A
// shorter op takes a hole in its own time for time of others.
constexpr int64_t kLongEnough = 50'000;
constexpr int64_t kHole = 5'000;
// From here on others see that this thread computes; it costs two accesses to shared memory.
constexpr int64_t kTellFrom = 100'000;
constexpr int64_t kAnchorAge = 20'000'000;
constexpr size_t kMemory = size_t{256} << 10;

int64_t processor_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

/// About a microsecond of work a turn.
class Compute::Memory {
public:
    Memory() : words_(kMemory / sizeof(uint64_t), 1) {}
    void turn() {
        uint64_t value = seed_;
        for (int i = 0; i < 256; ++i) {
            value = value * 0x9e3779b97f4a7c15ULL + words_[at_];
            words_[at_] = value;
            at_ = (at_ + 9) % words_.size();  // a little more than a cache line on
        }
        seed_ = value;
    }

private:
    std::vector<uint64_t> words_;
    size_t at_ = 0;
    uint64_t seed_ = 7;
};

std::string_view policy_name(DelayPolicy policy) {
    switch (policy) {
        case DelayPolicy::automatic: return "auto";
        case DelayPolicy::sleep: return "sleep";
        case DelayPolicy::spin: return "spin";
        case DelayPolicy::work: return "work";
    }
    return "auto";
}

DelayPolicy policy_of(std::string_view word) {
    for (const DelayPolicy policy : {DelayPolicy::sleep, DelayPolicy::spin, DelayPolicy::work}) {
        if (word == policy_name(policy)) {
            return policy;
        }
    }
    return DelayPolicy::automatic;
}

Compute::Compute(DelayPolicy policy, SpinTokens* tokens, const std::atomic<uint32_t>* stop, double tick_ns)
    : policy_(policy),
      tokens_(tokens),
      stop_(stop),
      tick_ns_(tick_ns),
      anchor_ticks_limit_(static_cast<uint64_t>(static_cast<double>(kAnchorAge) / tick_ns)),
      anchor_(take_tick_point()) {}

Compute::~Compute() = default;

int64_t Compute::now_ns() {
    const uint64_t age = ticks_now() - anchor_.tick;
    if (age > anchor_ticks_limit_) {
        anchor_ = take_tick_point();
        return anchor_.ns;
    }
    return anchor_.ns + static_cast<int64_t>(static_cast<double>(age) * tick_ns_);
}

/// From `now` on. Returns the sum of the holes: times at which this thread did not run.
int64_t Compute::burn_until(int64_t deadline_ns, int64_t now) {
    constexpr int64_t kTail = 3'000;  // a turn of work is too coarse for it
    int64_t holes = 0;
    int64_t before = now;
    for (int turns = 0; before < deadline_ns; ++turns) {
        if (memory_ && deadline_ns - before > kTail) {
            memory_->turn();
        } else {
            spin_pause();
        }
        if (glance_.call != nullptr) {
            glance_.call(glance_.of);
        }
        now = now_ns();
        if (now - before > kHole) {
            holes += now - before;
        }
        before = now;
        if (turns % 64 == 0 && stopped()) {
            break;
        }
    }
    return holes;
}

void Compute::fill(int64_t deadline_ns) {
    if (policy_ == DelayPolicy::work && !memory_) {
        memory_ = std::make_unique<Memory>();
    }
    burn_until(deadline_ns, now_ns());
}

void Compute::take(int64_t deadline_ns) {
    if (policy_ == DelayPolicy::work && !memory_) {
        memory_ = std::make_unique<Memory>();
    }
    const int64_t begin = now_ns();
    const int64_t wanted = deadline_ns - begin;
    if (wanted < kLongEnough) {
        // Else it never ends where every turn takes as long as a hole, as in a sanitizer's build.
        constexpr int kMostAgain = 16;
        int64_t holes = burn_until(deadline_ns, begin);
        for (int again = 0; holes > 0 && again < kMostAgain && !stopped(); ++again) {
            const int64_t now = now_ns();
            holes = burn_until(now + std::min(holes, wanted), now);
        }
        return;
    }
    const int64_t before = processor_ns();
    const bool tell = tokens_ != nullptr && wanted >= kTellFrom;
    if (tell) {
        tokens_->computing.fetch_add(1, std::memory_order_relaxed);
    }
    // The two clocks may run apart by what the kernel slews one of them.
    const int64_t close = std::max<int64_t>(1'000, wanted / 1'000);
    int64_t until = deadline_ns;
    for (;;) {
        burn_until(until, now_ns());
        const int64_t missing = wanted - (processor_ns() - before);
        if (missing <= close || stopped()) {
            break;
        }
        until = now_ns() + missing;
    }
    if (tell) {
        tokens_->computing.fetch_sub(1, std::memory_order_relaxed);
    }
}

}  // namespace reprise

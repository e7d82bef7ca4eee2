// SPDX-License-Identifier: MIT
// Recorded computing in a replay: it takes the processor for as long as it did when recorded, or sleeps instead.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "calibrate/delay.h"

namespace reprise {

/// How recorded computing passes. `sleep`: nobody has the processor meanwhile, so it takes its recorded time however
/// many threads compute. `spin`: the thread has the processor and does nothing with it. `work`: it multiplies, and
/// walks over as much memory as a second-level cache holds. Under the last two, threads that compute share the
/// processors as those of the job would, and each op lasts until its thread has had as much processor time as recorded.
enum class DelayPolicy : uint8_t { automatic, sleep, spin, work };

std::string_view policy_name(DelayPolicy policy);
/// Of the word as on the command line; `automatic` for any other than sleep, spin, work.
DelayPolicy policy_of(std::string_view word);

/// What is called about once a microsecond while a thread computes; none where `call` is null.
struct Glance {
    void (*call)(void* of) = nullptr;
    void* of = nullptr;
};

/// Computing on behalf of one thread. Not thread-safe.
class Compute {
public:
    /// `tokens`: counts every thread that computes, so that delays leave the processors to them; may be null. `stop`,
    /// where given, ends computing within about a millisecond once it is not 0. `tick_ns`: length of a tick.
    Compute(DelayPolicy policy, SpinTokens* tokens, const std::atomic<uint32_t>* stop, double tick_ns);
    ~Compute();
    Compute(const Compute&) = delete;
    Compute& operator=(const Compute&) = delete;

    DelayPolicy policy() const { return policy_; }
    void glance_at(const Glance& glance) { glance_ = glance; }

    /// Computes until `deadline_ns` (CLOCK_MONOTONIC), and beyond it for as long as others had the processor meanwhile.
    /// Only where the policy is spin or work.
    void take(int64_t deadline_ns);
    /// The same, but not beyond the deadline.
    void fill(int64_t deadline_ns);

private:
    class Memory;
    int64_t burn_until(int64_t deadline_ns, int64_t now);
    int64_t now_ns();
    bool stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed) != 0; }

    const DelayPolicy policy_;
    SpinTokens* tokens_;
    const std::atomic<uint32_t>* stop_;
    double tick_ns_;
    uint64_t anchor_ticks_limit_;
    TickPoint anchor_;
    std::unique_ptr<Memory> memory_;
    Glance glance_;
};

}  // namespace reprise

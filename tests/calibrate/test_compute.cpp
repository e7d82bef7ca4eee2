// SPDX-License-Identifier: MIT
// Recorded computing takes the processor for as long as recorded, also where threads compete for it.
#include <doctest/doctest.h>

#include <atomic>
#include <ctime>
#include <thread>
#include <vector>

#include "calibrate/compute.h"
#include "tests/units.h"

using namespace reprise;

namespace {

int64_t processor_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double tick_length() { return measure_tick_length_ns(take_tick_point(), 20 * kMs); }

}  // namespace

TEST_CASE("names of the policies") {
    for (const char* const name : {"auto", "sleep", "spin", "work"}) {
        CHECK(policy_name(policy_of(name)) == name);
    }
}

TEST_CASE("computing is never too short, and has the processor all the time") {
    const double tick = tick_length();
    for (const DelayPolicy policy : {DelayPolicy::spin, DelayPolicy::work}) {
        CAPTURE(policy_name(policy));
        Compute compute(policy, nullptr, nullptr, tick);
        for (const int64_t length : {int64_t{5'000}, int64_t{60'000}, 3 * kMs}) {
            const int64_t begin = monotonic_ns(), before = processor_ns();
            compute.take(begin + length);
            CHECK(monotonic_ns() - begin >= length * 999 / 1000);
            if (length >= kMs) {
                CHECK(processor_ns() - before >= length * 9 / 10);
            }
        }
    }
}

TEST_CASE("what happens beside computing is looked at all the time, of short computing too") {
    const double tick = tick_length();
    for (const DelayPolicy policy : {DelayPolicy::spin, DelayPolicy::work}) {
        CAPTURE(policy_name(policy));
        Compute compute(policy, nullptr, nullptr, tick);
        uint64_t glances = 0;
        compute.glance_at({[](void* count) { ++*static_cast<uint64_t*>(count); }, &glances});
        compute.take(monotonic_ns() + kMs);  // its memory is there from now on
        glances = 0;
        compute.take(monotonic_ns() + 20'000);
        CHECK(glances > 0);
        const uint64_t before = glances;
        compute.fill(monotonic_ns() + 10 * kMs);
        CHECK(glances > before + 100);
    }
}

TEST_CASE("short computing ends, also where every turn takes longer than it may to count as computing") {
    uint64_t glances = 0;
    Compute compute(DelayPolicy::spin, nullptr, nullptr, tick_length());
    compute.glance_at({[](void* count) {
                           ++*static_cast<uint64_t*>(count);
                           const int64_t until = monotonic_ns() + 10'000;
                           while (monotonic_ns() < until) {
                           }
                       },
                       &glances});
    compute.take(monotonic_ns() + 20'000);
    CHECK(glances > 0);
    CHECK(glances < 100);  // 16 times anew, two or three turns each
}

TEST_CASE("more computing threads than processors: each has its own time, and is counted meanwhile") {
    const double tick = tick_length();
    SpinTokens tokens;
    std::vector<std::thread> threads;
    std::atomic<int> fair{0}, seen{0};
    const int count = 2 * usable_cpus() + 1;
    for (int i = 0; i < count; ++i) {
        threads.emplace_back([&] {
            Compute compute(DelayPolicy::spin, &tokens, nullptr, tick);
            for (int turn = 0; turn < 3; ++turn) {
                const int64_t before = processor_ns();
                compute.take(monotonic_ns() + 15 * kMs);
                fair += processor_ns() - before >= 14 * kMs ? 1 : 0;
            }
            seen += 1;
        });
    }
    int most = 0;
    while (seen.load() < count) {
        most = std::max(most, tokens.computing.load());
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    // One may lose its processor after it has read the time and before it computes; two in a row are no chance.
    CHECK(fair.load() >= 3 * count - 1);
    CHECK(most > 1);
    CHECK(tokens.computing.load() == 0);
}

TEST_CASE("computing ends with the run, and what is due before now takes no time") {
    std::atomic<uint32_t> stop{1};
    Compute compute(DelayPolicy::work, nullptr, &stop, tick_length());
    const int64_t begin = monotonic_ns();
    compute.take(begin + 60'000 * kMs);
    compute.fill(begin + 60'000 * kMs);
    CHECK(monotonic_ns() - begin < 30'000 * kMs);
    Compute other(DelayPolicy::spin, nullptr, nullptr, tick_length());
    const int64_t before = processor_ns();
    other.take(begin);
    other.fill(begin);
    CHECK(processor_ns() - before < 5 * kMs);
}

TEST_CASE("a delay leaves the processors to threads that compute") {
    SpinTokens tokens;
    tokens.free = 1;
    tokens.processors = 2;
    CHECK(tokens.available());
    tokens.computing = 2;
    CHECK(!tokens.available());
}

TEST_CASE("the clock of computing is anchored anew every 20 ms by its own reckoning") {
    const double tick = tick_length();
    Compute compute(DelayPolicy::spin, nullptr, nullptr, tick * 1'000);
    const int64_t begin = monotonic_ns();
    compute.fill(begin + 60 * kMs);  // by ticks alone over within 60 us
    CHECK(monotonic_ns() - begin >= 39 * kMs);
}

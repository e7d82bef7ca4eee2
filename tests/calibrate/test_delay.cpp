// SPDX-License-Identifier: MIT
// Waits for absolute times, and the clock that they are told by.
#include "calibrate/delay.h"

#include <doctest/doctest.h>

#include <atomic>

#include "calibrate/clock.h"
#include "tests/units.h"

using namespace reprise;

namespace {

double tick_length() { return measure_tick_length_ns(take_tick_point(), 5 * kMs); }

}  // namespace

TEST_CASE("delays are never early, whatever the tokens") {
    for (const int tokens : {0, 1}) {
        SpinTokens spin;
        spin.free = tokens;
        const TickPoint start = take_tick_point();
        Delay delay(&spin, nullptr, measure_tick_length_ns(start, 5'000'000));
        for (int i = 0; i < 200; ++i) {
            const int64_t due = delay.now_ns() + 20'000 + i * 1'000;
            delay.until(due);
            CHECK(delay.now_ns() >= due);
        }
        CHECK(spin.free == tokens);
    }
}

TEST_CASE("a delay ends where the run is stopped") {
    std::atomic<uint32_t> stop{1};
    const TickPoint start = take_tick_point();
    Delay delay(nullptr, &stop, measure_tick_length_ns(start, 5'000'000));
    const int64_t begin = monotonic_ns();
    delay.until(delay.now_ns() + 3'600'000'000'000);
    CHECK(monotonic_ns() - begin < 60'000'000'000);
}

TEST_CASE("a delay's clock is anchored anew once it is 20 ms old by its own reckoning, and not before") {
    const double tick = tick_length();
    SUBCASE("the ticks are told to be a thousand times as long") {
        Delay delay(nullptr, nullptr, tick * 1'000);
        const int64_t begin = monotonic_ns();
        while (monotonic_ns() - begin < kMs) {  // a second by its reckoning
        }
        const int64_t before = monotonic_ns();
        const int64_t now = delay.now_ns();
        CHECK(now >= before);
        CHECK(now <= monotonic_ns());
    }
    SUBCASE("the ticks are told to be a millionth as long") {
        Delay delay(nullptr, nullptr, tick / 1'000'000);
        const int64_t first = delay.now_ns(), begin = monotonic_ns();
        while (monotonic_ns() - begin < kMs) {  // a nanosecond by its reckoning
        }
        const TickPoint now = take_tick_point();
        CHECK(delay.now_ns() - first < kMs / 100);
        CHECK(delay.ns_at(now.tick) - first < kMs / 100);
    }
}

TEST_CASE("a delay's clock tells the time of ticks before and after its anchor") {
    const double tick = tick_length();
    const TickPoint before = take_tick_point();
    Delay delay(nullptr, nullptr, tick);
    const int64_t now = delay.now_ns();
    const auto ticks = static_cast<uint64_t>(static_cast<double>(10 * kMs) / tick);
    const int64_t there = delay.ns_at(before.tick);
    CHECK(there <= now);
    CHECK(delay.ns_at(before.tick + ticks) - there == doctest::Approx(10 * kMs).epsilon(0.001));
    CHECK(there - delay.ns_at(before.tick - ticks) == doctest::Approx(10 * kMs).epsilon(0.001));
}

TEST_CASE("a delay counts on no less than 3 us and no more than 200 us of lateness") {
    Delay delay(nullptr, nullptr, tick_length());
    CHECK(delay.margin_ns() == 60'000);  // nothing is known yet
    delay.until(delay.now_ns() - 1);     // over: neither slept nor learned
    CHECK(delay.margin_ns() == 60'000);
    for (int i = 0; i < 40; ++i) {
        delay.until(delay.now_ns() + 300'000);
        CHECK(delay.margin_ns() >= 3'000);
        CHECK(delay.margin_ns() <= 200'000);
    }
}

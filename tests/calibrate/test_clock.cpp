// SPDX-License-Identifier: MIT
// Ticks and nanoseconds, one made of the other.
#include "calibrate/clock.h"

#include <doctest/doctest.h>

using namespace reprise;

TEST_CASE("the length of a tick, between two instants; 1 where they are none") {
    CHECK(tick_length_ns({100, 1'000}, {300, 1'500}) == 2.5);
    CHECK(tick_length_ns({100, 1'000}, {101, 1'001}) == 1.0);
    CHECK(tick_length_ns({100, 1'000}, {104, 1'001}) == 0.25);
    CHECK(tick_length_ns({100, 1'000}, {100, 5'000}) == 1.0);
    CHECK(tick_length_ns({100, 1'000}, {99, 5'000}) == 1.0);
    CHECK(tick_length_ns({100, 1'000}, {5'000, 1'000}) == 1.0);
    CHECK(tick_length_ns({100, 1'000}, {5'000, 999}) == 1.0);
}

TEST_CASE("a timeline without points, and with one") {
    TickTimeline line;
    CHECK(line.ns(5) == 0);
    line.add({1'000, 70});
    CHECK(line.ns(1'000) == 70);
    CHECK(line.ns(1'005) == 75);
    CHECK(line.ns(990) == 60);
}

TEST_CASE("a timeline tells the time of any tick, whatever was asked before") {
    TickTimeline line;
    line.add({1'000, 0});
    line.add({2'000, 1'000});   // 1 ns a tick
    line.add({3'000, 3'000});   // 2
    line.add({4'000, 7'000});   // 4
    line.add({3'999, 50'000});  // not later than what is known
    line.add({4'000, 60'000});
    struct {
        uint64_t tick;
        int64_t ns;
    } const points[] = {{900, -100},    {1'000, 0},     {1'999, 999},   {2'000, 1'000}, {2'001, 1'002}, {2'500, 2'000},
                        {2'999, 2'998}, {3'000, 3'000}, {3'500, 5'000}, {4'000, 7'000}, {4'500, 9'000}};
    for (const auto& before : points) {
        for (const auto& point : points) {
            CAPTURE(before.tick);
            CAPTURE(point.tick);
            CHECK(line.ns(before.tick) == before.ns);
            CHECK(line.ns(point.tick) == point.ns);
        }
    }
    line.add({5'000, 7'500});  // half a nanosecond a tick
    CHECK(line.ns(4'500) == 7'250);
    CHECK(line.ns(6'000) == 8'000);
    CHECK(line.ns(900) == -100);
}

TEST_CASE("ticks go on with the clock, and are measured over at least the time asked for") {
    const TickPoint from = take_tick_point();
    const int64_t asked = 3'000'000;
    const double length = measure_tick_length_ns(from, asked);
    const TickPoint to = take_tick_point();
    CHECK(to.ns - from.ns >= asked);
    CHECK(static_cast<double>(to.tick - from.tick) * length ==
          doctest::Approx(static_cast<double>(to.ns - from.ns)).epsilon(0.05));
    CHECK((ticks_are_tsc() || length == 1.0));
    const int64_t before = monotonic_ns();
    const int64_t ns = take_tick_point().ns;
    CHECK(ns >= before);
    CHECK(ns <= monotonic_ns());
}

TEST_CASE("a shared timeline: what a copy told of ticks before its latest point stays so") {
    SharedTimeline shared;
    TickTimeline early, late;
    shared.add({1000, 50});
    shared.add({2000, 351});
    shared.catch_up(early);
    shared.add({3000, 1051});
    shared.add({2500, 9});  // not later: ignored
    shared.catch_up(late);
    CHECK(early.ns(1500) == late.ns(1500));
    CHECK(early.ns(1999) == late.ns(1999));
    CHECK(early.ns(2500) == 501);
    CHECK(late.ns(2500) == 701);
    shared.catch_up(early);
    CHECK(early.ns(2500) == 701);
    shared.add_now();
    shared.catch_up(early);
    CHECK(early.ns(2500) == 701);
}

// SPDX-License-Identifier: MIT
// What a wait costs the computing after it.
#include <doctest/doctest.h>

#include <atomic>

#include "calibrate/wait_cost.h"

using namespace reprise;

TEST_CASE("what waits cost lies between the measured points, nothing at 0, no more beyond the last") {
    const WaitCost cost{.extra_ns = {0, 60'000, 190'000, 560'000, 630'000}, .over_ns = 470'000};
    CHECK(cost.after(0) == 0);
    CHECK(cost.after(-5) == 0);
    CHECK(cost.after(500'000) == 0);
    CHECK(cost.after(1'750'000) == doctest::Approx(30'000));
    CHECK(cost.after(5'000'000) == doctest::Approx(190'000));
    CHECK(cost.after(15'000'000) == doctest::Approx(595'000));
    CHECK(cost.after(INT64_MAX) == doctest::Approx(630'000));
    CHECK(WaitCost{}.after(10'000'000) == 0);
}

TEST_CASE("what waits cost, of what was measured") {
    Stretches warm;
    warm.fill(100'000);
    std::array<Stretches, WaitCost::kWaits.size()> after;
    after.fill(warm);
    SUBCASE("nothing") {
        const WaitCost cost = wait_cost_of(warm, after);
        CHECK(cost.measured());
        CHECK(cost.extra_ns.back() == 0);
    }
    SUBCASE("faster after a wait than without: nothing, too; and no longer wait costs less than a shorter one") {
        after[0][0] = 50'000;
        after[1][0] = 150'000;
        after[2][0] = 140'000;
        const WaitCost cost = wait_cost_of(warm, after);
        CHECK(cost.extra_ns[0] == 0);
        CHECK(cost.extra_ns[1] == doctest::Approx(50'000));
        CHECK(cost.extra_ns[4] == doctest::Approx(50'000));
    }
    SUBCASE("how soon it is paid") {
        after[4][0] = 400'000;  // 300 of 400 us within the first 400 us of computing
        after[4][1] = 200'000;
        const WaitCost cost = wait_cost_of(warm, after);
        CHECK(cost.extra_ns[4] == doctest::Approx(400'000));
        CHECK(cost.over_ns == doctest::Approx(400'000 * 0.632 * 400 / 300).epsilon(0.01));
    }
}

TEST_CASE("measurements of what waits cost that agree, and that scatter") {
    WaitCost one{.extra_ns = {0, 60'000, 190'000, 560'000, 630'000}, .over_ns = 400'000};
    WaitCost other{.extra_ns = {19'000, 64'000, 200'000, 560'000, 700'000}, .over_ns = 500'000};
    const WaitCost both = combine({one, other});
    CHECK(both.extra_ns[0] == doctest::Approx(9'500));
    CHECK(both.spread_ns[0] == doctest::Approx(9'500));
    CHECK(both.spread_ns[3] == 0);
    CHECK(both.extra_ns[4] == doctest::Approx(665'000));
    CHECK(both.over_ns == doctest::Approx(450'000));
    CHECK(both.stable());  // within 10 us, and within a fifth
    other.extra_ns[0] = 21'000;
    CHECK_FALSE(combine({one, other}).stable());
    other.extra_ns[0] = 0;
    other.extra_ns[4] = 980'000;  // +-175 of 805
    CHECK_FALSE(combine({one, other}).stable());
    other.extra_ns[4] = 930'000;  // +-150 of 780
    CHECK(combine({one, other}).stable());
    CHECK(combine({one}).spread_ns == WaitCost{}.spread_ns);
    CHECK_FALSE(WaitCost{}.stable());
    one.spread_ns[1] = 50'000;
    CHECK_FALSE(one.stable());
}

TEST_CASE("what waits cost here is measured, and the measurement can be stopped") {
    const WaitCost cost = measure_wait_cost(1);
    CHECK(cost.measured());
    double before = 0;
    for (const double extra : cost.extra_ns) {
        CHECK(extra >= before);
        before = extra;
    }
    const std::atomic<bool> stop{true};
    CHECK(!measure_wait_cost(15, &stop).measured());
}

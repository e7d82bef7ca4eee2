// SPDX-License-Identifier: MIT
// What several runs say together.
#include "experiment/repeated.h"

#include <doctest/doctest.h>

#include <random>

using namespace reprise;

TEST_CASE("the interval of a median: between two of the values, and honest about few") {
    CHECK(median_interval({}).level == 0);
    const MedianInterval one = median_interval({7});
    CHECK(one.median == 7);
    CHECK(one.low == 7);
    CHECK(one.level == 0);  // nothing is known
    const MedianInterval three = median_interval({3, 1, 2});
    CHECK(three.median == 2);
    CHECK(three.low == 1);
    CHECK(three.high == 3);
    CHECK(three.level == doctest::Approx(0.75));
    CHECK(three.half_width() == doctest::Approx(0.5));
    CHECK(median_interval({1, 2, 3, 4, 5}).level == doctest::Approx(0.9375));
    const MedianInterval six = median_interval({6, 5, 4, 3, 2, 1});
    CHECK(six.median == 3.5);
    CHECK(six.low == 1);
    CHECK(six.high == 6);
    CHECK(six.level == doctest::Approx(0.96875));
    // From tables of the sign test: n = 9 gives the 2nd to the 8th, n = 20 the 6th to the 15th.
    const MedianInterval nine = median_interval({1, 2, 3, 4, 5, 6, 7, 8, 9});
    CHECK(nine.low == 2);
    CHECK(nine.high == 8);
    CHECK(nine.level == doctest::Approx(0.9609).epsilon(0.0001));
    std::vector<double> twenty;
    for (int i = 1; i <= 20; ++i) {
        twenty.push_back(i);
    }
    CHECK(median_interval(twenty).low == 6);
    CHECK(median_interval(twenty).high == 15);
    CHECK(median_interval(twenty).level == doctest::Approx(0.9586).epsilon(0.0001));
}

TEST_CASE("the interval of a median holds the true one as often as it says") {
    std::mt19937 random(4711);
    std::exponential_distribution<double> skewed(1.0);
    const double truth = 0.6931471805599453;
    for (const int n : {5, 8, 15}) {
        int held = 0;
        double level = 0;
        constexpr int kTries = 4'000;
        for (int i = 0; i < kTries; ++i) {
            std::vector<double> values;
            for (int k = 0; k < n; ++k) {
                values.push_back(skewed(random));
            }
            const MedianInterval interval = median_interval(values);
            held += interval.low <= truth && truth <= interval.high ? 1 : 0;
            level = interval.level;
        }
        CHECK(static_cast<double>(held) / kTries == doctest::Approx(level).epsilon(0.015));
    }
}

TEST_CASE("drift: a trend, and not what chance does") {
    CHECK_FALSE(drift({}));
    CHECK_FALSE(drift({1}));
    CHECK_FALSE(drift({1, 2, 3, 4}));  // 2 of 24 orders: too few to say
    const auto up = drift({100, 101, 102, 103, 104});
    REQUIRE(up);
    CHECK(*up == doctest::Approx(1.0 / 102));
    CHECK(*drift({50, 40, 30, 20, 10}) == doctest::Approx(-1.0 / 3));
    CHECK_FALSE(drift({100, 103, 101, 104, 102}));
    CHECK_FALSE(drift({5, 5, 5, 5, 5, 5}));
    CHECK(drift({10, 12, 11, 13, 14, 15, 17, 16}));
    std::mt19937 random(1);
    std::normal_distribution<double> noise(100, 3);
    int found = 0;
    for (int i = 0; i < 2'000; ++i) {
        std::vector<double> values;
        for (int k = 0; k < 10; ++k) {
            values.push_back(noise(random));
        }
        found += drift(values) ? 1 : 0;
    }
    CHECK(found > 0);
    CHECK(found < 2'000 * 0.06);
}

TEST_CASE("what disturbed a run: each source, and its limit") {
    Surroundings run{.cpus = 4, .elapsed_ns = 10'000'000'000};
    CHECK(disturbances(run).empty());  // nothing is known
    run.stolen_cpus = 0.2;
    run.other_cpus = 0.2;
    run.throttled_s = 0.1;
    run.overheated = 0;
    run.own_bytes = 1e9;
    run.device_bytes = 1.04e9;
    CHECK(disturbances(run).empty());
    const auto only = [](const Surroundings& one) {
        const std::vector<std::string> all = disturbances(one);
        REQUIRE(all.size() == 1);
        return all[0];
    };
    Surroundings other = run;
    other.stolen_cpus = 0.21;
    CHECK(only(other) == "steal time: 0.21 of 4 CPUs");
    other = run;
    other.other_cpus = 1.5;
    CHECK(only(other) == "other programs used 1.50 of 4 CPUs");
    other = run;
    other.throttled_s = 0.5;
    CHECK(only(other) == "held up 0.50 s by the CPU quota of its cgroup");
    other = run;
    other.overheated = 3;
    CHECK(only(other) == "CPUs throttled 3 times (heat)");
    other = run;
    other.device_bytes = 1e9 + 100 * (1 << 20);
    CHECK(only(other) == "the device moved 100 MiB for others");
    other.own_bytes = -1;
    CHECK(disturbances(other).empty());
    run = {.cpus = 1, .stolen_cpus = 0.5};
    run.elapsed_ns = 60'000'000;
    CHECK(only(run) == "steal time: 0.50 of 1 CPU");
    run.elapsed_ns = 50'000'000;  // less than three ticks of the kernel's clock
    CHECK(disturbances(run).empty());
}

TEST_CASE("runs that are far off the others") {
    CHECK(outliers({}).empty());
    CHECK(outliers({1, 1, 50}).empty());  // which one is off?
    CHECK(outliers({10, 10, 10, 20}) == std::vector<size_t>{3});
    CHECK(outliers({5, 10, 10.1, 9.9, 10, 20}) == std::vector<size_t>{0, 5});
    CHECK(outliers({10, 10, 10, 10.1}).empty());  // within 2 %
    CHECK(outliers({8, 9, 10, 11, 12}).empty());
}

TEST_CASE("the throttle counters of this machine can be read or are not known") {
    const ThrottleCounters counters = read_throttle_counters();
    CHECK((counters.quota_s == -1 || counters.quota_s >= 0));
    CHECK((counters.overheated == -1 || counters.overheated >= 0));
}

// SPDX-License-Identifier: MIT
// How evenly a device served, from its counter at certain times.
#include "replay/run/device_rate.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace reprise;

namespace {

constexpr int64_t kTick = 50'000'000;  // ns
constexpr uint64_t kEach = 1'000'000;  // bytes between two looks

/// Looks so many times; `more(i)` bytes beside the usual ones before look i.
template <class More>
DeviceRate looked(int64_t times, const More& more) {
    DeviceRate rate({});
    uint64_t bytes = 0;
    for (int64_t i = 0; i <= times; ++i) {
        rate.add(i * kTick, bytes);
        bytes += kEach + more(i);
    }
    return rate;
}

}  // namespace

TEST_CASE("device rate: what a limit serves hardly varies") {
    const DeviceRate rate = looked(60, [](int64_t) { return 0; });
    REQUIRE(rate.deviation(0, 60 * kTick));
    CHECK(*rate.deviation(0, 60 * kTick) < 1e-6);
    CHECK(*rate.deviation(3, 60 * kTick) < 1e-6);  // between two looks
}

TEST_CASE("device rate: a device that is twice as fast now and then") {
    // Every other half second: 0.75 or 1.5 times the mean of 4/3, so a deviation of a third of it.
    const DeviceRate rate = looked(80, [](int64_t i) { return i / 10 % 2 * kEach; });
    REQUIRE(rate.deviation(0, 80 * kTick));
    CHECK(std::abs(*rate.deviation(0, 80 * kTick) - 1.0 / 3 / std::sqrt(16.0)) < 0.005);
}

TEST_CASE("device rate: too short, nothing moved, nobody looked") {
    CHECK(!looked(30, [](int64_t) { return 0; }).deviation(0, 30 * kTick));
    CHECK(!looked(60, [](int64_t) { return 0; }).deviation(0, 30 * kTick));
    CHECK(!looked(60, [](int64_t) { return -kEach; }).deviation(0, 60 * kTick));
    DeviceRate rate({});
    rate.look(0);
    CHECK(!rate.deviation(0, 60 * kTick));
}

TEST_CASE("device rate: of a long run fewer looks are kept, over all of it") {
    const DeviceRate rate = looked(50'000, [](int64_t i) { return i < 25'000 ? 0 : kEach; });
    CHECK(*rate.deviation(0, 24'000 * kTick) < 1e-3);
    CHECK(*rate.deviation(0, 50'000 * kTick) > 0.04);
}

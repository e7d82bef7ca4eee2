// SPDX-License-Identifier: MIT
// What a storage allows in the long run, from counts of reads.
#include "calibrate/steady_rate.h"
#include "tests/units.h"

#include <doctest/doctest.h>

#include <vector>

namespace reprise {
namespace {

constexpr int64_t kWidth = 5'000'000;

TEST_CASE("a steady rate: no burst where reads are even, whatever a stall") {
    std::vector<int64_t> done(400, 10);
    for (size_t i = 200; i < 210; ++i) {
        done[i] = 0;
    }
    const SteadyRate even = steady_rate(done, kWidth);
    CHECK(even.per_second == doctest::Approx(2'000).epsilon(0.05));
    CHECK(even.burst_ns == 0);
    CHECK(even.step_ns == 0);
}

TEST_CASE("a steady rate: what is saved up in a pause comes at once, and then evenly") {
    std::vector<int64_t> done(400, 10);
    done[0] = 10 + 2'000 / 10;  // a tenth of a second
    const SteadyRate found = steady_rate(done, kWidth);
    CHECK(found.per_second == doctest::Approx(2'000).epsilon(0.01));
    CHECK(found.burst_ns == doctest::Approx(100 * kMs).epsilon(0.05));
    CHECK(found.step_ns == 0);
}

TEST_CASE(
    "a steady rate: a limit in steps lets a whole step through at once, not the half that it is ahead in the mean") {
    for (const size_t widths : {size_t{1}, size_t{2}}) {  // that it takes to read a step
        for (const int64_t step : {100, 60}) {
            std::vector<int64_t> done(400);
            for (size_t at = 0; at < done.size(); at += static_cast<size_t>(step) / 5) {
                for (size_t i = 0; i < widths; ++i) {
                    done[at + i] = 2 * step / static_cast<int64_t>(widths);
                }
            }
            CAPTURE(widths);
            CAPTURE(step);
            const SteadyRate found = steady_rate(done, kWidth);
            CHECK(found.per_second == doctest::Approx(2'000).epsilon(0.02));
            CHECK(found.step_ns == step * kMs);
            CHECK(found.burst_ns == step * kMs);
        }
    }
}

}  // namespace
}  // namespace reprise

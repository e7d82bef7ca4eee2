// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "generate/distribution.h"
#include "generate/sample_order.h"

using namespace reprise;

namespace {

struct Moments {
    double mean = 0, deviation = 0;
};

Moments moments_of(const Distribution& what) {
    constexpr int kDraws = 200'000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
        const auto value = static_cast<double>(what.draw(7, static_cast<uint64_t>(i)));
        sum += value;
        squares += value * value;
    }
    const double mean = sum / kDraws;
    return {mean, std::sqrt(squares / kDraws - mean * mean)};
}

}  // namespace

TEST_CASE("distributions have the mean and the deviation that were asked for") {
    struct Case {
        const char* text;
        double mean, deviation;
    };
    for (const Case& each :
         {Case{"1MiB", 1 << 20, 0}, Case{"normal(1000000,50000)", 1e6, 5e4},
          Case{"lognormal(1000000,500000)", 1e6, 5e5}, Case{"uniform(0,1000000)", 5e5, 1e6 / std::sqrt(12)}}) {
        CAPTURE(each.text);
        const auto what = Distribution::parse(each.text, Distribution::Unit::bytes);
        REQUIRE(what);
        const Moments seen = moments_of(*what);
        CHECK(seen.mean == doctest::Approx(each.mean).epsilon(0.01));
        CHECK(seen.deviation == doctest::Approx(each.deviation).epsilon(0.02));
        CHECK(what->draw(7, 3) == what->draw(7, 3));
    }
}

TEST_CASE("what is drawn is never less than the least") {
    auto what = *Distribution::parse("normal(10,100)", Distribution::Unit::bytes);
    what.least = 1;
    for (uint64_t i = 0; i < 1000; ++i) {
        CHECK(what.draw(1, i) >= 1);
    }
}

TEST_CASE("draws below the least are counted, about as many as are expected") {
    for (const char* text : {"normal(10k,6k)", "uniform(0,20k)", "lognormal(4k,4k)", "normal(100k,1k)", "3k"}) {
        CAPTURE(text);
        auto what = *Distribution::parse(text, Distribution::Unit::bytes);
        what.least = 1000;
        uint64_t below = 0;
        for (uint64_t i = 0; i < 10'000; ++i) {
            what.draw(1, i, &below);
        }
        CHECK(static_cast<double>(below) / 1e4 == doctest::Approx(what.share_below()).epsilon(0.1));
    }
    auto constant = *Distribution::parse("3", Distribution::Unit::bytes);
    constant.least = 4;
    CHECK(constant.share_below() == 1);
    CHECK(Distribution::parse("normal(0,0)", Distribution::Unit::bytes)->share_below() == 0);
}

TEST_CASE("times and sizes are read with their units") {
    CHECK(Distribution::parse("250us", Distribution::Unit::seconds)->a == 250e3);
    CHECK(Distribution::parse("0.25", Distribution::Unit::seconds)->a == 250e6);
    CHECK(Distribution::parse(" normal( 4k , 1KiB ) ", Distribution::Unit::bytes)->b == 1024);
    CHECK(read_time("10", 1e3) == 10'000);
    CHECK(read_bytes("2GB") == 2'000'000'000);
    for (const char* wrong : {"", "x", "-1", "normal(1)", "normal(1,2", "gauss(1,2)", "uniform(2,1)", "lognormal(0,1)",
                              "9e30", "1,2", "normal(1,2)x", "1e400", "99999999999999999999"}) {
        CAPTURE(wrong);
        CHECK(!Distribution::parse(wrong, Distribution::Unit::bytes));
    }
}

TEST_CASE("permutations reach every number once, and differ from key to key") {
    for (const uint64_t count : {1u, 2u, 3u, 7u, 64u, 1000u, 4097u}) {
        CAPTURE(count);
        const Permutation one(count, 1), other(count, 2);
        std::set<uint64_t> seen;
        uint64_t same = 0;
        for (uint64_t i = 0; i < count; ++i) {
            CHECK(one(i) < count);
            seen.insert(one(i));
            same += one(i) == other(i) ? 1 : 0;
        }
        CHECK(seen.size() == count);
        if (count >= 64) {
            CHECK(same < count / 8);
        }
    }
}

TEST_CASE("an epoch reads every sample once: in order, drawn from all, out of a buffer") {
    constexpr uint64_t kCount = 500;
    struct Case {
        bool shuffled;
        uint64_t buffer;
    };
    for (const Case& each : {Case{false, 0}, Case{true, 0}, Case{true, 16}, Case{true, 499}, Case{true, 1000}}) {
        CAPTURE(each.buffer);
        EpochOrder order(kCount, each.shuffled, each.buffer, 5);
        std::vector<uint64_t> samples;
        for (uint64_t i = 0; i < kCount; ++i) {
            samples.push_back(order.next());
        }
        const std::set<uint64_t> seen(samples.begin(), samples.end());
        CHECK(seen.size() == kCount);
        CHECK(*seen.rbegin() == kCount - 1);
        CHECK(std::is_sorted(samples.begin(), samples.end()) == !each.shuffled);
        if (each.buffer == 16) {
            for (uint64_t i = 0; i < kCount; ++i) {
                CHECK(samples[i] < i + 16);  // it was in the buffer by then
            }
        }
    }
}

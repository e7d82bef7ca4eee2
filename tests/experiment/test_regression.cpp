// SPDX-License-Identifier: MIT
// Runs of A against runs of B: made-up samples whose truth is known.
#include "experiment/regression.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace reprise;

namespace {

/// Runs of a shared machine: 1.5 % from run to run, one in sixteen held up by something else for up to a fifth,
/// and a machine that gets slower or faster by up to 2 % in the course of the comparison, in turn for both sides.
class Machine {
public:
    explicit Machine(uint64_t seed) : random_(seed) {}

    MetricRuns metric(const char* name, double truth, double slower, double noise, size_t runs) {
        MetricRuns out{name, false, false, 0.02, {}, {}};
        const double drift = std::uniform_real_distribution(-0.02, 0.02)(random_);
        for (size_t i = 0; i < runs; ++i) {
            const double now = 1 + drift * static_cast<double>(i) / static_cast<double>(runs);
            out.a.push_back(truth * now * one(noise));
            out.b.push_back(truth * now * one(noise) * slower);
        }
        return out;
    }

    /// What a comparison looks at: the time, the rate, which is the same again, and percentiles, which vary more.
    std::vector<MetricRuns> comparison(double slower, size_t runs) {
        std::vector<MetricRuns> out{metric("elapsed", 12, slower, 0.015, runs)};
        out[0].headline = true;
        MetricRuns rate{"throughput", true, true, 0.02, {}, {}};
        for (const double seconds : out[0].a) {
            rate.a.push_back(1e9 / seconds);
        }
        for (const double seconds : out[0].b) {
            rate.b.push_back(1e9 / seconds);
        }
        out.push_back(rate);
        for (const char* name : {"read.p50", "open.p50", "fstat.p50", "close.p50", "write.p50", "fsync.p50"}) {
            out.push_back(metric(name, 1e-4, 1, 0.03, runs));
            out.back().threshold = 0.05;
        }
        for (const char* name : {"read.p99", "open.p99", "fstat.p99", "close.p99", "write.p99", "fsync.p99"}) {
            out.push_back(metric(name, 1e-2, 1, 0.1, runs));
            out.back().threshold = 0.1;
        }
        return out;
    }

private:
    double one(double noise) {
        const double usual = std::exp(std::normal_distribution(0.0, noise)(random_));
        const bool held_up = random_() % 16 == 0;
        return usual * (held_up ? 1 + std::uniform_real_distribution(0.0, 0.2)(random_) : 1.0);
    }
    std::mt19937_64 random_;
};

constexpr size_t kTrials = 20, kWanted = 19;

MetricRuns metric(std::vector<double> a, std::vector<double> b, double threshold = 0.02) {
    return {"elapsed", false, false, threshold, std::move(a), std::move(b)};
}
MetricFinding judged(std::vector<double> a, std::vector<double> b, double threshold = 0.02) {
    return judge_metrics({metric(std::move(a), std::move(b), threshold)}).front();
}

}  // namespace

TEST_CASE("regression: 5 % less throughput, 10 runs per side, is found in at least 19 of 20 trials") {
    size_t found = 0;
    for (uint64_t trial = 0; trial < kTrials; ++trial) {
        const auto findings = judge_metrics(Machine(1000 + trial).comparison(1 / 0.95, 10));
        found += findings[1].finding == Finding::worse ? 1 : 0;
        CHECK(findings[1].finding != Finding::better);
    }
    MESSAGE("found in " << found << " of " << kTrials);
    CHECK(found >= kWanted);
}

TEST_CASE("regression: of sides that are alike no metric is flagged in at least 19 of 20 trials") {
    size_t clean = 0;
    for (uint64_t trial = 0; trial < kTrials; ++trial) {
        const auto findings = judge_metrics(Machine(2000 + trial).comparison(1, 10));
        clean += std::none_of(findings.begin(), findings.end(), [](const MetricFinding& one) {
            return one.finding == Finding::worse || one.finding == Finding::better;
        });
    }
    MESSAGE("clean in " << clean << " of " << kTrials);
    CHECK(clean >= kWanted);
}

TEST_CASE("regression: the intervals hold the truth about as often as they say") {
    size_t held = 0;
    constexpr size_t kMany = 200;
    for (uint64_t trial = 0; trial < kMany; ++trial) {
        std::mt19937_64 random(trial);
        std::normal_distribution normal(100.0, 2.0);
        std::vector<double> a, b;
        for (int i = 0; i < 10; ++i) {
            a.push_back(normal(random));
            b.push_back(normal(random) * 1.1);
        }
        const MetricFinding one = judged(a, b);
        held += one.change->low <= 0.1 && 0.1 <= one.change->high ? 1 : 0;
    }
    CHECK(held >= kMany * 90 / 100);
    CHECK(held < kMany);
}

TEST_CASE("regression: what is found, and what is not") {
    const std::vector<double> ten{10, 10.1, 9.9, 10.05, 9.95, 10.02, 9.98, 10.01, 9.99, 10};
    const auto times = [&](double factor) {
        std::vector<double> out = ten;
        std::for_each(out.begin(), out.end(), [&](double& value) { value *= factor; });
        return out;
    };
    MetricFinding one = judged(ten, times(1.05));
    CHECK(one.finding == Finding::worse);
    CHECK(one.change->median == doctest::Approx(0.05));
    CHECK(one.change->low < 0.05);
    CHECK(one.change->high > 0.05);
    CHECK(one.p < 1e-4);
    CHECK(judged(ten, times(0.9)).finding == Finding::better);
    CHECK(judge_metrics({{"rate", true, false, 0.02, ten, times(0.9)}}).front().finding == Finding::worse);
    // A change that is certain, and smaller than what matters.
    one = judged(ten, times(1.012));
    CHECK(one.p_adjusted < 0.05);
    CHECK(one.finding == Finding::same);
    // As far as it can tell.
    CHECK(judged(ten, ten).finding == Finding::same);
    CHECK(judged(ten, ten).p == 1);
    const std::vector<double> wild{5, 15, 8, 12, 10, 20, 4, 9, 11, 10};
    one = judged(wild, ten);
    CHECK(one.finding == Finding::noisy);
    CHECK(*one.detectable > 0.2);
}

TEST_CASE("regression: one odd run does not hide a change, and makes none") {
    std::vector<double> a{10, 10.1, 9.9, 10.05, 9.95, 10.02, 9.98, 10.01, 9.99, 30}, b;
    for (const double value : a) {
        b.push_back(value == 30 ? 10.5 : value * 1.05);
    }
    CHECK(judged(a, b).finding == Finding::worse);
    std::vector<double> same = a;
    same.back() = 10;
    CHECK(judged(same, a).finding == Finding::same);
}

TEST_CASE("regression: too few runs give no verdict, and how many would") {
    CHECK(judged({10}, {20}).finding == Finding::few);
    CHECK_FALSE(judged({10}, {20}).detectable);
    CHECK(judged({10, 11, 12}, {20, 21, 22}).finding == Finding::few);
    CHECK(least_runs(1, 0.05) == 4);
    CHECK(judged({10, 10, 10, 10.1}, {20, 20, 20, 21}).finding == Finding::worse);
    CHECK(least_runs(20, 0.05) == 6);
    CHECK(least_runs(0, 0.05) == 4);
    CHECK(worst_of({}) == Finding::few);
}

TEST_CASE("regression: metrics that have nothing in common cost, those that say the same do not") {
    const std::vector<double> a{1, 2, 3, 4, 5, 6}, far{11, 12, 13, 14, 15, 16}, mixed{6, 1, 4, 3, 5, 2};
    const auto one_of = [](const char* name, const std::vector<double>& x, const std::vector<double>& y) {
        return MetricRuns{name, false, false, 0.02, x, y};
    };
    auto findings = judge_metrics({one_of("x", a, far)});
    CHECK(findings[0].p == doctest::Approx(2.0 / 924));
    CHECK(findings[0].p_adjusted == doctest::Approx(2.0 / 924));
    findings = judge_metrics({one_of("x", a, far), one_of("again", a, far)});
    CHECK(findings[0].p_adjusted == doctest::Approx(2.0 / 924));
    CHECK(findings[1].p_adjusted == doctest::Approx(2.0 / 924));
    findings = judge_metrics({one_of("x", a, far), one_of("y", a, mixed), one_of("z", mixed, a)});
    CHECK(findings[0].p == doctest::Approx(2.0 / 924));
    CHECK(findings[0].p_adjusted >= findings[0].p);
    CHECK(findings[0].p_adjusted <= 3 * findings[0].p + 1e-12);  // never more than by Holm
    CHECK(findings[1].p_adjusted > 0.05);
    CHECK(worst_of(findings) == Finding::worse);
    // A headline has half of the chance to itself.
    std::vector<MetricRuns> two{one_of("x", a, far), one_of("y", a, mixed)};
    two[0].headline = true;
    CHECK(judge_metrics(two)[0].p_adjusted == doctest::Approx(4.0 / 924));
}

TEST_CASE("regression: metrics of zeros") {
    const std::vector<double> none(8, 0.0), some{1, 1, 1, 1, 1, 1, 1, 2};
    CHECK(judged(none, none).finding == Finding::same);
    CHECK_FALSE(judged(none, none).change);
    CHECK(judged(none, some).finding == Finding::worse);
    CHECK(judged(some, none).finding == Finding::better);
}

TEST_CASE("regression: many runs are shuffled, not enumerated, and always alike") {
    std::mt19937_64 random(7);
    std::normal_distribution normal(100.0, 2.0);
    std::vector<double> a, b;
    for (int i = 0; i < 40; ++i) {
        a.push_back(normal(random));
        b.push_back(normal(random) + 3);
    }
    const MetricFinding one = judged(a, b), again = judged(a, b);
    CHECK(one.p < 1e-4);
    CHECK(one.p == again.p);
    CHECK(one.finding == Finding::worse);
}

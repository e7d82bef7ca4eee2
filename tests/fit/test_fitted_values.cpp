// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fit/fitted_values.h"

using namespace reprise;

namespace {

using Kind = Distribution::Kind;

std::vector<double> drawn(const std::string& text, size_t count, double least = 0) {
    auto from = Distribution::parse(text, Distribution::Unit::seconds);
    REQUIRE(from);
    from->least = least;
    std::vector<double> out;
    for (size_t i = 0; i < count; ++i) {
        out.push_back(static_cast<double>(from->draw(7, i)));
    }
    return out;
}

FittedValues fitted(const std::string& text, size_t count) {
    return fit_values(drawn(text, count), 0, Distribution::Unit::seconds);
}

}  // namespace

TEST_CASE("each kind of distribution is found again") {
    struct Case {
        const char* text;
        Kind kind;
        double a, b;
    };
    for (const Case& each :
         {Case{"normal(80ms,10ms)", Kind::normal, 80e6, 10e6}, Case{"lognormal(3ms,1ms)", Kind::lognormal, 3e6, 1e6},
          Case{"uniform(1ms,4ms)", Kind::uniform, 1e6, 4e6}}) {
        const FittedValues found = fitted(each.text, 4000);
        CHECK_MESSAGE(found.distribution.kind == each.kind, each.text);
        CHECK_MESSAGE(found.distribution.a == doctest::Approx(each.a).epsilon(0.03), each.text);
        CHECK_MESSAGE(found.distribution.b == doctest::Approx(each.b).epsilon(0.05), each.text);
        CHECK(found.kind_sure);
        CHECK(found.fits);
        CHECK(found.ks < 0.03);
        CHECK(found.mean_error < 0.02);
        CHECK(found.deviation_error < 0.05);
        const auto again = Distribution::parse(found.distribution.text, Distribution::Unit::seconds);
        REQUIRE(again);
        CHECK(again->a == doctest::Approx(found.distribution.a).epsilon(1e-4));
    }
}

TEST_CASE("one value, or nearly one, is constant") {
    CHECK(fit_values({5e6, 5e6, 5e6}, 0, Distribution::Unit::seconds).distribution.text == "5ms");
    CHECK(fit_values({1000000, 1000100, 999900}, 0, Distribution::Unit::seconds).distribution.kind == Kind::constant);
    CHECK(fit_values({}, 0, Distribution::Unit::seconds).distribution.text == "0ns");
    CHECK(fit_values({153600, 153600}, 1, Distribution::Unit::bytes).distribution.text == "150KiB");
}

TEST_CASE("draws that became the least value count as all that lies below it") {
    // One of thirty is below 0.
    const FittedValues found = fitted("normal(2ms,1.1ms)", 6000);
    CHECK(found.distribution.kind == Kind::normal);
    CHECK(found.distribution.a == doctest::Approx(2e6).epsilon(0.05));
    CHECK(found.distribution.b == doctest::Approx(1.1e6).epsilon(0.05));
}

TEST_CASE("what a job file may not draw, as much is below the least value, has mean and deviation right") {
    const std::vector<double> values = drawn("normal(2ms,2ms)", 6000);  // one of six
    double mean = 0;
    for (const double value : values) {
        mean += value / 6000;
    }
    const FittedValues found = fit_values(values, 0, Distribution::Unit::seconds);
    CHECK(found.distribution.kind == Kind::lognormal);
    CHECK(found.distribution.a == doctest::Approx(mean).epsilon(0.001));
    CHECK(found.distribution.share_below() == 0);
    CHECK_FALSE(found.fits);
}

TEST_CASE("few values do not tell the kind") {
    CHECK(!fitted("normal(80ms,10ms)", 20).kind_sure);
    CHECK(fitted("normal(80ms,10ms)", 20).deviation_error > 0.2);
}

TEST_CASE("where no kind fits, mean and deviation are right") {
    std::vector<double> values = drawn("uniform(20ms,21ms)", 300);
    for (int i = 0; i < 6; ++i) {
        values.push_back(200e6);
    }
    double mean = 0;
    for (const double value : values) {
        mean += value / static_cast<double>(values.size());
    }
    const FittedValues found = fit_values(values, 0, Distribution::Unit::seconds);
    CHECK(!found.fits);
    CHECK(found.distribution.mean() == doctest::Approx(mean).epsilon(0.01));
}

TEST_CASE("quantities are those of job files") {
    CHECK(job_quantity(1 << 20, Distribution::Unit::bytes, true) == "1MiB");
    CHECK(job_quantity((1 << 20) + 1, Distribution::Unit::bytes, true) == "1048577");
    CHECK(job_quantity(1536, Distribution::Unit::bytes, false) == "1.5KiB");
    CHECK(job_quantity(323e6, Distribution::Unit::seconds, true) == "323ms");
    CHECK(job_quantity(323000001, Distribution::Unit::seconds, true) == "323000001ns");
    CHECK(job_quantity(1.23456789e6, Distribution::Unit::seconds, false) == "1.2346ms");
    CHECK(job_quantity(0, Distribution::Unit::seconds, true) == "0ns");
    CHECK(job_quantity(7.6, Distribution::Unit::seconds, false) == "8ns");
}

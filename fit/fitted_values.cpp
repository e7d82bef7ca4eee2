// SPDX-License-Identifier: MIT
#include "fit/fitted_values.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <optional>

namespace reprise {
namespace {

using Kind = Distribution::Kind;

constexpr double kConstant = 0.002;  // deviation over mean, below which values are one
constexpr double kClearly = 5;       // of the logarithm of a likelihood
constexpr double k95 = 1.96;         // standard errors

double density(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi); }
double below(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

struct Moments {
    double mean = 0, deviation = 0;
};

template <class Of>
Moments moments(const std::vector<double>& values, Of&& of) {
    Moments out;
    for (const double value : values) {
        out.mean += of(value);
    }
    out.mean /= static_cast<double>(values.size());
    for (const double value : values) {
        out.deviation += (of(value) - out.mean) * (of(value) - out.mean);
    }
    out.deviation = std::sqrt(out.deviation / std::max<double>(1, static_cast<double>(values.size()) - 1));
    return out;
}

struct Candidate {
    Kind kind = Kind::constant;
    double a = 0, b = 0;       // as of Distribution
    double mu = 0, sigma = 0;  // of the normal, or of the logarithm
    double likelihood = 0;     // its logarithm

    double cumulative(double value) const {
        switch (kind) {
            case Kind::constant: return value < a ? 0 : 1;
            case Kind::uniform: return std::clamp((value - a) / (b - a), 0.0, 1.0);
            case Kind::normal: return below((value - mu) / sigma);
            case Kind::lognormal: return value <= 0 ? 0 : below((std::log(value) - mu) / sigma);
        }
        return 0;
    }
};

/// Values at `least` were anything below it: expectation and maximisation.
Candidate normal_of(const std::vector<double>& values, double least) {
    const auto at_least =
        static_cast<double>(std::count_if(values.begin(), values.end(), [&](double value) { return value <= least; }));
    Moments found = moments(values, [](double value) { return value; });
    const auto count = static_cast<double>(values.size());
    for (int round = 0; at_least > 0 && round < 60 && found.deviation > 0; ++round) {
        const double z = (least - found.mean) / found.deviation;
        const double share = std::max(below(z), 1e-12), ratio = density(z) / share;
        const double mean = found.mean - found.deviation * ratio;
        const double square = found.deviation * found.deviation * (1 - z * ratio - ratio * ratio) + mean * mean;
        double sum = at_least * mean, squares = at_least * square;
        for (const double value : values) {
            sum += value > least ? value : 0;
            squares += value > least ? value * value : 0;
        }
        found.mean = sum / count;
        found.deviation = std::sqrt(std::max(squares / count - found.mean * found.mean, 0.0));
    }
    Candidate out{Kind::normal, found.mean, found.deviation, found.mean, std::max(found.deviation, 1e-9)};
    for (const double value : values) {
        const double z = (value - out.mu) / out.sigma;
        out.likelihood += value <= least ? std::log(std::max(below(z), 1e-300)) : -z * z / 2 - std::log(out.sigma);
    }
    return out;
}

std::optional<Candidate> lognormal_of(const std::vector<double>& values, double least) {
    if (values.front() <= std::max(least, 0.0)) {
        return std::nullopt;
    }
    const Moments logs = moments(values, [](double value) { return std::log(value); });
    Candidate out{Kind::lognormal, 0, 0, logs.mean, std::max(logs.deviation, 1e-9)};
    const double square = out.sigma * out.sigma;
    out.a = std::exp(out.mu + square / 2);
    out.b = out.a * std::sqrt(std::expm1(square));
    for (const double value : values) {
        const double z = (std::log(value) - out.mu) / out.sigma;
        out.likelihood += -z * z / 2 - std::log(out.sigma) - std::log(value);
    }
    return out;
}

std::optional<Candidate> uniform_candidate(const std::vector<double>& values, double least) {
    const auto count = static_cast<double>(values.size());
    const double further = (values.back() - values.front()) / std::max(count - 1, 1.0);
    Candidate out{Kind::uniform, std::max(values.front() - further, least), values.back() + further};
    if (out.b <= out.a) {
        return std::nullopt;
    }
    // Less what a normal's density has in common, so that the two compare.
    out.likelihood = count * (std::log(std::sqrt(2 * std::numbers::pi)) - std::log(out.b - out.a));
    return out;
}

double distance(const std::vector<double>& values, const Candidate& candidate, double least) {
    double most = 0;
    const auto count = static_cast<double>(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
        if (values[i] <= least) {
            continue;  // a lump of all that is below
        }
        const double expected = candidate.cumulative(values[i]);
        most = std::max({most, std::abs(expected - static_cast<double>(i) / count),
                         std::abs(static_cast<double>(i + 1) / count - expected)});
    }
    return most;
}

double error_of_deviation(const Candidate& found, double count) {
    switch (found.kind) {
        case Kind::constant: return 0;
        case Kind::uniform: return 4.74 / count;  // of what the ends are short together
        case Kind::normal: return k95 / std::sqrt(2 * count);
        case Kind::lognormal: {
            const double square = found.sigma * found.sigma;
            return k95 / std::sqrt(2 * count) * square * (1 + std::exp(square) / std::expm1(square));
        }
    }
    return 0;
}

}  // namespace

std::string job_quantity(double value, Distribution::Unit unit, bool exact) {
    struct Step {
        double size;
        const char* name;
    };
    constexpr Step kTimes[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    constexpr Step kBytes[] = {{0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, ""}};
    const Step* const steps = unit == Distribution::Unit::bytes ? kBytes : kTimes;
    char text[64];
    for (size_t i = 0; i < std::size(kTimes); ++i) {
        if (exact && i + 1 < std::size(kTimes)) {
            const double many = value / steps[i].size;
            if (value >= steps[i].size && many == std::floor(many)) {
                std::snprintf(text, sizeof text, "%.0f%s", many, steps[i].name);
                return text;
            }
        } else if (exact || value >= steps[i].size || i + 1 == std::size(kTimes)) {
            // Of bytes and nanoseconds there are whole ones only.
            const bool whole = exact || steps[i].size == 1;
            std::snprintf(text, sizeof text, whole ? "%.0f%s" : "%.5g%s", value / steps[i].size, steps[i].name);
            return text;
        }
    }
    return "0";
}

std::string distribution_text(const Distribution& distribution, Distribution::Unit unit, bool exact) {
    constexpr const char* kNames[] = {"", "uniform", "normal", "lognormal"};
    std::string a = job_quantity(distribution.a, unit, exact);
    if (distribution.kind == Kind::constant) {
        return a;
    }
    return std::string(kNames[static_cast<size_t>(distribution.kind)]) + "(" + a + "," +
           job_quantity(distribution.b, unit, exact) + ")";
}

FittedValues fit_values(std::vector<double> values, double least, Distribution::Unit unit) {
    FittedValues out;
    out.values = values.size();
    out.distribution.least = least;
    std::sort(values.begin(), values.end());
    const bool same = values.empty() || values.front() == values.back();
    const Moments plain = values.empty() ? Moments{} : moments(values, [](double value) { return value; });
    if (same || plain.deviation < kConstant * plain.mean) {
        out.distribution.a = values.empty() ? 0 : same ? values.front() : std::round(plain.mean);
        out.distribution.text = distribution_text(out.distribution, unit, same);
        return out;
    }
    std::vector<Candidate> candidates = {normal_of(values, least)};
    for (const auto& each : {lognormal_of(values, least), uniform_candidate(values, least)}) {
        if (each) {
            candidates.push_back(*each);
        }
    }
    std::sort(candidates.begin(), candidates.end(),
              [](const Candidate& x, const Candidate& y) { return x.likelihood > y.likelihood; });
    const auto count = static_cast<double>(values.size());
    constexpr double kSeldom = 2;
    Candidate best = candidates.front();
    out.fits = distance(values, best, least) <= kSeldom / std::sqrt(count);
    if (!out.fits) {  // outliers, or several kinds of steps: at least mean and deviation shall be right
        const auto drawn = std::find_if(candidates.begin(), candidates.end(),
                                        [](const Candidate& each) { return each.kind != Kind::uniform; });
        best = *drawn;
        if (best.kind == Kind::lognormal) {
            best.a = plain.mean;
            best.b = plain.deviation;
        }
    }
    Distribution chosen;
    chosen.kind = best.kind;
    chosen.a = std::max(best.a, least);
    chosen.b = best.b;
    chosen.least = least;
    if (chosen.share_below() > Distribution::kMostBelow && plain.mean > least) {
        // No job file may say it: at least mean and deviation shall be right.
        out.fits = false;
        const double variance = std::log1p(plain.deviation * plain.deviation / (plain.mean * plain.mean));
        best.kind = Kind::lognormal;
        best.a = plain.mean;
        best.b = plain.deviation;
        best.mu = std::log(plain.mean) - variance / 2;
        best.sigma = std::max(std::sqrt(variance), 1e-9);
    }
    constexpr double kFew = 50;
    out.kind_sure = candidates.size() < 2 || (count >= kFew && best.likelihood - candidates[1].likelihood >= kClearly);
    out.distribution.kind = best.kind;
    out.distribution.a = std::max(best.a, least);
    out.distribution.b = best.b;
    out.ks = distance(values, best, least);
    out.mean_error = best.a > 0 ? k95 * best.b / best.a / std::sqrt(count) : 0;
    if (best.kind == Kind::uniform) {
        out.mean_error = k95 * plain.deviation / plain.mean / std::sqrt(count);
    }
    out.deviation_error = error_of_deviation(best, count);
    out.distribution.text = distribution_text(out.distribution, unit, false);
    return out;
}

}  // namespace reprise

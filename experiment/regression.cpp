// SPDX-License-Identifier: MIT
//
// Permutation test: Fisher, "The Design of Experiments", 1935. Correction: Westfall and Young, "Resampling-Based
// Multiple Testing", 1993, algorithm 4.1. Bootstrap: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993,
// chapter 13.
#include "experiment/regression.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <random>

namespace reprise {
namespace {

using Values = std::vector<double>;

constexpr size_t kMostExact = 20'000, kShuffles = 20'000, kResamples = 2'000;
constexpr uint64_t kSeed = 20'260'101;
constexpr double kPower = 0.9;

double middle(Values values) {
    const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), half, values.end());
    if (values.size() % 2 != 0) {
        return *half;
    }
    return (*half + *std::max_element(values.begin(), half)) / 2;
}

/// Median absolute deviation, scaled to the standard deviation of a normal distribution.
double scatter(const Values& values, double center) {
    constexpr double kNormal = 1.4826;
    Values apart;
    apart.reserve(values.size());
    for (const double value : values) {
        apart.push_back(std::abs(value - center));
    }
    return kNormal * middle(std::move(apart));
}

/// Ways to choose `k` of `n`, or more than any limit here.
double choices(size_t n, size_t k) {
    double out = 1;
    for (size_t i = 1; i <= k; ++i) {
        out *= static_cast<double>(n - k + i) / static_cast<double>(i);
    }
    return std::round(out);
}

/// The least p that so many runs can give.
double least_p(size_t a, size_t b) { return (a == b ? 2.0 : 1.0) / choices(a + b, a); }

/// How far the sums of A's values are from what they would be in the mean, over all metrics, for every way to deal the
/// runs to the sides, or for many of them: counts how often they are as far as they really were.
class Deals {
public:
    /// `values`: per metric those of A's `n` runs, then those of B's.
    Deals(const std::vector<Values>& values, size_t n) : n_(n), runs_(values.front().size()), count_(values.size()) {
        by_run_.assign(runs_, Values(values.size()));
        for (size_t metric = 0; metric < values.size(); ++metric) {
            const Values& of_runs = values[metric];
            const double mean = std::accumulate(of_runs.begin(), of_runs.end(), 0.0) / static_cast<double>(runs_);
            double square = 0;
            for (const double value : of_runs) {
                square += (value - mean) * (value - mean);
            }
            for (size_t run = 0; run < runs_; ++run) {
                by_run_[run][metric] = square > 0 ? (of_runs[run] - mean) / std::sqrt(square) : 0;
            }
        }
        observe();
    }

    void deal_all() {
        if (choices(runs_, n_) <= static_cast<double>(kMostExact)) {
            deal(0, n_, Values(count_, 0.0));
            return;
        }
        std::vector<size_t> order(runs_);
        std::iota(order.begin(), order.end(), size_t{0});
        std::mt19937_64 random(kSeed);
        take(observed_);
        for (size_t i = 0; i < kShuffles; ++i) {
            Values sums(count_, 0.0);
            for (size_t k = 0; k < n_; ++k) {
                std::swap(order[k], order[k + random() % (runs_ - k)]);
                add(sums, order[k]);
            }
            take(sums);
        }
    }

    double p(size_t metric) const { return alone_[metric] / all_; }
    double p_of_any(size_t metric) const { return any_[metric] / all_; }

private:
    void observe() {
        observed_.assign(count_, 0.0);
        for (size_t run = 0; run < n_; ++run) {
            add(observed_, run);
        }
        order_.resize(count_);
        std::iota(order_.begin(), order_.end(), size_t{0});
        std::stable_sort(order_.begin(), order_.end(),
                         [&](size_t x, size_t y) { return std::abs(observed_[x]) < std::abs(observed_[y]); });
        alone_.assign(count_, 0.0);
        any_.assign(count_, 0.0);
    }
    void add(Values& sums, size_t run) const {
        for (size_t metric = 0; metric < sums.size(); ++metric) {
            sums[metric] += by_run_[run][metric];
        }
    }
    void deal(size_t from, size_t left, const Values& sums) {  // NOLINT(misc-no-recursion): as deep as there are runs
        if (left == 0) {
            take(sums);
            return;
        }
        for (size_t run = from; run + left <= runs_; ++run) {
            Values more = sums;
            add(more, run);
            deal(run + 1, left - 1, more);
        }
    }
    /// Step down: the least metric competes with itself, the next one with both, and so on.
    void take(const Values& sums) {
        constexpr double kRounding = 1e-9;  // sums in another order differ in their last digits
        double largest = 0;
        for (const size_t metric : order_) {
            const double apart = std::abs(sums[metric]) + kRounding, observed = std::abs(observed_[metric]);
            largest = std::max(largest, apart);
            alone_[metric] += apart >= observed ? 1 : 0;
            any_[metric] += largest >= observed ? 1 : 0;
        }
        ++all_;
    }

    size_t n_, runs_, count_;
    std::vector<Values> by_run_;  // standardised
    Values observed_;
    std::vector<size_t> order_;  // of metrics, by how far the sides are apart
    Values alone_, any_;
    double all_ = 0;
};

double resampled_median(const Values& values, Values& space, std::mt19937_64& random) {
    space.clear();
    for (size_t i = 0; i < values.size(); ++i) {
        space.push_back(values[random() % values.size()]);
    }
    return middle(space);
}

Estimate interval_of(double center, Values resampled) {
    std::sort(resampled.begin(), resampled.end());
    const auto at = [&](double share) {
        return resampled[static_cast<size_t>(share * static_cast<double>(resampled.size() - 1))];
    };
    return {center, at(0.025), at(0.975)};
}

std::optional<Estimate> change_of(const Values& a, const Values& b) {
    const double before = middle(a);
    if (before == 0) {
        return std::nullopt;
    }
    std::mt19937_64 random(kSeed);
    Values space, resampled;
    for (size_t i = 0; i < kResamples; ++i) {
        const double one = resampled_median(a, space, random);
        const double other = resampled_median(b, space, random);
        resampled.push_back(one != 0 ? other / one - 1 : 0);
    }
    return interval_of(middle(b) / before - 1, std::move(resampled));
}

/// Both sides as shares of the median of all runs, drawn in.
Values drawn_in(const MetricRuns& metric) {
    Values all = metric.a;
    all.insert(all.end(), metric.b.begin(), metric.b.end());
    const double center = middle(all), apart = scatter(all, center);
    for (double& value : all) {
        if (apart > 0) {
            value = std::clamp(value, center - apart, center + apart);
        }
        value = center != 0 ? value / center : value;
    }
    return all;
}

/// Standard deviation within the sides, as a share of the median: of values drawn in to three deviations of their side.
double deviation_within(const MetricRuns& metric, double center) {
    constexpr double kDeviations = 3;
    double sum = 0;
    for (const Values& side : {metric.a, metric.b}) {
        const double own = middle(side), apart = kDeviations * scatter(side, own);
        for (const double value : side) {
            const double difference = apart > 0 ? std::clamp(value - own, -apart, apart) : value - own;
            sum += difference * difference;
        }
    }
    return std::sqrt(sum / static_cast<double>(metric.a.size() + metric.b.size() - 2)) / std::abs(center);
}

std::optional<double> detectable_change(const MetricRuns& metric, double chance) {
    const size_t a = metric.a.size(), b = metric.b.size();
    if (a < 2 || b < 2 || least_p(a, b) > chance) {
        return std::nullopt;
    }
    Values all = metric.a;
    all.insert(all.end(), metric.b.begin(), metric.b.end());
    const double center = middle(all);
    if (center == 0) {
        return metric.threshold;
    }
    const boost::math::students_t student(static_cast<double>(a + b - 2));
    const double error =
        deviation_within(metric, center) * std::sqrt(1 / static_cast<double>(a) + 1 / static_cast<double>(b));
    const double shows = boost::math::quantile(boost::math::complement(student, chance / 2)) * error;
    const double more = boost::math::quantile(student, kPower) * error;
    return std::max(shows, metric.threshold) + more;
}

Finding finding_of(const MetricFinding& metric) {
    if (!metric.detectable) {
        return Finding::few;
    }
    const double change = metric.change ? metric.change->median : metric.b.median != 0 ? HUGE_VAL : 0;
    if (metric.p_adjusted <= kChance && std::abs(change) >= metric.threshold) {
        return (change > 0) == metric.more_is_better ? Finding::better : Finding::worse;
    }
    const bool within =
        metric.change && metric.change->low > -metric.threshold && metric.change->high < metric.threshold;
    return within || (!metric.change && change == 0) ? Finding::same : Finding::noisy;
}

/// Metrics that share a part of the chance.
void judge_family(const std::vector<MetricRuns>& metrics, const std::vector<size_t>& family, double share,
                  std::vector<MetricFinding>& out) {
    if (family.empty()) {
        return;
    }
    std::vector<Values> values;
    values.reserve(family.size());
    for (const size_t metric : family) {
        values.push_back(drawn_in(metrics[metric]));
    }
    Deals deals(values, metrics[family.front()].a.size());
    deals.deal_all();
    double before = 0;
    std::vector<size_t> order(family.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t x, size_t y) { return deals.p_of_any(x) < deals.p_of_any(y); });
    for (const size_t i : order) {
        MetricFinding& one = out[family[i]];
        one.p = deals.p(i);
        before = std::max(before, deals.p_of_any(i));  // never less than that of a clearer metric
        one.p_adjusted = std::min(before / share, 1.0);
        one.detectable = detectable_change(metrics[family[i]], kChance * share / static_cast<double>(family.size()));
        one.finding = finding_of(one);
    }
}

}  // namespace

std::string_view finding_name(Finding finding) {
    switch (finding) {
        case Finding::same: return "same";
        case Finding::better: return "better";
        case Finding::worse: return "worse";
        case Finding::noisy: return "too noisy";
        case Finding::few: return "too few runs";
    }
    return "?";
}

Estimate bootstrap_median(const Values& values) {
    std::mt19937_64 random(kSeed);
    Values space, resampled;
    for (size_t i = 0; i < kResamples; ++i) {
        resampled.push_back(resampled_median(values, space, random));
    }
    return interval_of(middle(values), std::move(resampled));
}

size_t least_runs(size_t metrics, double chance) {
    size_t runs = 2;
    while (least_p(runs, runs) > chance / static_cast<double>(std::max<size_t>(metrics, 1))) {
        ++runs;
    }
    return runs;
}

std::vector<MetricFinding> judge_metrics(const std::vector<MetricRuns>& metrics) {
    std::vector<MetricFinding> out;
    std::vector<size_t> headline, others;
    for (const MetricRuns& metric : metrics) {
        (metric.headline ? headline : others).push_back(out.size());
        MetricFinding one;
        one.name = metric.name;
        one.more_is_better = metric.more_is_better;
        one.threshold = metric.threshold;
        one.runs_a = metric.a.size();
        one.runs_b = metric.b.size();
        one.a = bootstrap_median(metric.a);
        one.b = bootstrap_median(metric.b);
        one.change = change_of(metric.a, metric.b);
        out.push_back(std::move(one));
    }
    const double share = headline.empty() || others.empty() ? 1.0 : 0.5;
    judge_family(metrics, headline, share, out);
    judge_family(metrics, others, share, out);
    return out;
}

Finding worst_of(const std::vector<MetricFinding>& findings) {
    const auto any = [&](Finding wanted) {
        return std::any_of(findings.begin(), findings.end(),
                           [&](const MetricFinding& one) { return one.finding == wanted; });
    };
    for (const Finding finding : {Finding::worse, Finding::better, Finding::noisy, Finding::same}) {
        if (any(finding)) {
            return finding;
        }
    }
    return Finding::few;
}

}  // namespace reprise

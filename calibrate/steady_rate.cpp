// SPDX-License-Identifier: MIT
#include "calibrate/steady_rate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace reprise {
namespace {

// A device without a limit scatters, but is neither that far ahead of its rate nor twice as fast at first.
constexpr double kLeast = 0.02;  // s

/// How far, in s, the reads of the first `first` widths got ahead of the rate; 0 where they were not fast.
double ahead_at_first(std::span<const double> sums, size_t first, double per_second, double width_s) {
    bool fast = false;
    double most = 0;
    for (size_t i = 0; i < first; ++i) {
        const double slow = per_second * width_s * static_cast<double>(i + 1);
        fast = fast || (sums[i] > 2 * slow && sums[i] > slow + kLeast * per_second);
        most = std::max(most, sums[i] / per_second - width_s * static_cast<double>(i));
    }
    return fast ? most : 0;
}

/// After how many widths, about `near` of them, the reads come again.
size_t period(std::span<const int64_t> done, double near) {
    const auto least = static_cast<size_t>(std::max(0.75 * near, 1.0));
    const auto most = std::min(static_cast<size_t>(std::ceil(1.25 * near)), done.size() / 2);
    size_t best = least;
    double best_sum = 0;
    for (size_t lag = least; lag <= most; ++lag) {
        double sum = 0;
        for (size_t i = 0; i + lag < done.size(); ++i) {
            sum += static_cast<double>(done[i]) * static_cast<double>(done[i + lag]);
        }
        sum /= static_cast<double>(done.size() - lag);
        if (sum > best_sum) {
            best = lag;
            best_sum = sum;
        }
    }
    return best;
}

}  // namespace

SteadyRate steady_rate(std::span<const int64_t> done, int64_t width_ns) {
    const double width_s = static_cast<double>(width_ns) / 1e9;
    const size_t first = done.size() / 5;
    double n = 0, x = 0, y = 0, xx = 0, xy = 0, total = 0;
    std::vector<double> sums;
    for (const int64_t one : done) {
        total += static_cast<double>(one);
        sums.push_back(total);
        if (sums.size() > first) {
            const double at = width_s * static_cast<double>(sums.size());
            n += 1, x += at, y += total, xx += at * at, xy += at * total;
        }
    }
    SteadyRate out;
    out.per_second = std::max((n * xy - x * y) / (n * xx - x * x), 1.0);
    const double ahead = ahead_at_first(sums, first, out.per_second, width_s);
    if (ahead < kLeast) {
        return out;
    }
    // What the line has at time 0. A limit that gives back time as it passes keeps that lead. One that lets through so
    // much every tenth of a second, as those of Linux's control groups do, is that far ahead each time it has just done
    // so, and not at all before: half of it in the mean.
    const double lead = (y / n - out.per_second * x / n) / out.per_second;
    if (lead > 0.25 * ahead && lead < 0.7 * ahead) {
        out.step_ns = static_cast<int64_t>(period(done, ahead / width_s)) * width_ns;
        out.burst_ns = out.step_ns;
    } else if (lead >= kLeast) {
        out.burst_ns = static_cast<int64_t>(lead * 1e9);
    }
    return out;
}

}  // namespace reprise

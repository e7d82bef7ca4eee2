// SPDX-License-Identifier: MIT
#include "replay/plan/paced.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "formats/support/percentile.h"

namespace reprise {
namespace {

constexpr size_t kLeast = 8, kMost = size_t{1} << 20;  // sleeps of a series, of a task
constexpr int64_t kMissed = 16;                        // points of the grid that a late program may miss
constexpr int64_t kLongest = INT64_C(1) << 50;         // ns; longer ones are malformed
/// The grid scatters as sleeps do that end late: much less than the sleeps' own lengths.
constexpr double kScatter = 0.5;

/// How far values lie from their median, in the median.
int64_t scatter(std::vector<int64_t> values) {
    const int64_t middle = median(values);
    for (int64_t& value : values) {
        value = std::abs(value - middle);
    }
    return median(std::move(values));
}

}  // namespace

void PacedSleeps::see(uint64_t op, OpKind kind, int64_t arg, int64_t begin, int64_t duration) {
    if (kind == OpKind::wait && arg == kWaitSleep && sleeps_.size() < kMost && begin >= 0 && begin < kLongest &&
        duration >= 0 && duration < kLongest) {
        sleeps_.push_back({op, begin, duration});
    }
}

void PacedSleeps::series(size_t from, size_t to, std::vector<Timer>& out) const {
    if (to - from < kLeast) {
        return;
    }
    const int64_t period = sleeps_[from + 1].end() - sleeps_[from].end();
    std::vector<int64_t> lengths, off;  // off: from a whole number of periods
    for (size_t i = from + 1; i < to; ++i) {
        const int64_t between = sleeps_[i].end() - sleeps_[i - 1].end();
        lengths.push_back(sleeps_[i].duration);
        off.push_back(between - (between + period / 2) / period * period);
    }
    if (static_cast<double>(scatter(std::move(off))) >= kScatter * static_cast<double>(scatter(std::move(lengths)))) {
        return;
    }
    for (size_t i = from + 1; i < to; ++i) {
        out.push_back({sleeps_[from].op, sleeps_[i].op, sleeps_[i].end() - sleeps_[from].begin});
    }
}

std::vector<Timer> PacedSleeps::take() {
    std::vector<Timer> out;
    const std::vector<Sleep>& all = sleeps_;
    for (size_t from = 0; from + 1 < all.size();) {
        const int64_t period = all[from + 1].end() - all[from].end();
        const int64_t some = std::max<int64_t>(period / 50, 1'000'000);  // a thread wakes up late
        size_t to = from + 1;
        while (to < all.size() && period > some) {
            const int64_t between = all[to].end() - all[to - 1].end();
            const int64_t points = (between + period / 2) / period;
            if (points < 1 || points > kMissed || std::abs(between - points * period) > some) {
                break;
            }
            ++to;
        }
        series(from, to, out);
        from = std::max(from + 1, to - 1);
    }
    sleeps_.clear();
    return out;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "calibrate/wait_cost.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numbers>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "calibrate/clock.h"
#include "formats/support/percentile.h"

namespace reprise {
namespace {

constexpr size_t kWorkingSet = size_t{256} << 10;
constexpr int64_t kStretch = 100'000;  // ns, with warm caches

/// Follows links through the working set in an order that no prefetcher knows, and computes a little at each.
class Walk {
public:
    Walk() : lines_(kWorkingSet / sizeof(Line)) {
        std::vector<uint32_t> order(lines_.size());
        std::iota(order.begin(), order.end(), 0U);
        std::shuffle(order.begin(), order.end(), std::minstd_rand(1));
        for (size_t i = 0; i < order.size(); ++i) {
            lines_[order[i]].next = order[(i + 1) % order.size()];
            lines_[order[i]].value = order[i] * 0x9e3779b97f4a7c15ULL;
        }
        constexpr int kTry = 50'000;
        turns_ = kTry;
        stretch();
        const int64_t begin = monotonic_ns();
        stretch();
        const int64_t took = std::max<int64_t>(monotonic_ns() - begin, 1);
        turns_ = static_cast<int>(std::clamp<int64_t>(kTry * kStretch / took, 100, kTry));
    }

    void stretch() {
        for (int turn = 0; turn < turns_; ++turn) {
            Line& line = lines_[at_];
            state_ = (line.value & 1) != 0 ? state_ + line.value * 7 : state_ ^ (line.value >> 3);
            line.value += state_ & 2;
            for (int i = 0; i < 12; ++i) {
                state_ = state_ * 6364136223846793005ULL + 1;
            }
            at_ = line.next;
        }
    }

    Stretches stretches() {
        Stretches took{};
        for (double& one : took) {
            const int64_t begin = monotonic_ns();
            stretch();
            one = static_cast<double>(monotonic_ns() - begin);
        }
        return took;
    }

private:
    struct Line {
        uint64_t next = 0, value = 0;
        std::array<uint64_t, 6> rest{};  // a cache line in all
    };
    std::vector<Line> lines_;
    uint64_t at_ = 0, state_ = 7;
    int turns_ = 0;
};

Stretches medians(const std::vector<Stretches>& rounds) {
    Stretches out{};
    for (size_t i = 0; i < out.size(); ++i) {
        std::vector<double> values;
        values.reserve(rounds.size());
        for (const Stretches& one : rounds) {
            values.push_back(one[i]);
        }
        out[i] = median(std::move(values));
    }
    return out;
}

}  // namespace

double WaitCost::after(int64_t wait_ns) const {
    int64_t from = 0;
    double before = 0;
    for (size_t i = 0; i < kWaits.size(); ++i) {
        if (wait_ns <= kWaits[i]) {
            const double share =
                static_cast<double>(std::max<int64_t>(wait_ns, 0) - from) / static_cast<double>(kWaits[i] - from);
            return before + (extra_ns[i] - before) * share;
        }
        from = kWaits[i];
        before = extra_ns[i];
    }
    return before;
}

WaitCost wait_cost_of(const Stretches& without, const std::array<Stretches, WaitCost::kWaits.size()>& after) {
    constexpr double kLost = 1.0 - 1.0 / std::numbers::e;
    WaitCost out;
    const double warm = std::accumulate(without.begin(), without.end(), 0.0);
    double before = 0;
    for (size_t i = 0; i < after.size(); ++i) {
        before = std::max(before, std::accumulate(after[i].begin(), after[i].end(), -warm));
        out.extra_ns[i] = before;
    }
    // The longest wait shows how soon the cost is paid: its cost is the largest and so the clearest.
    double paid = 0, computed = 0;
    for (size_t i = 0; i < without.size(); ++i) {
        const double extra = std::max(after.back()[i] - without[i], 0.0);
        if (paid + extra >= kLost * before) {
            const double share = extra > 0 ? (kLost * before - paid) / extra : 1.0;
            computed += std::clamp(share, 0.0, 1.0) * after.back()[i];
            break;
        }
        paid += extra;
        computed += after.back()[i];
    }
    out.over_ns = std::max(computed, 1'000.0);
    return out;
}

bool WaitCost::stable() const {
    constexpr double kShare = 0.2, kLeast = 10'000;  // ns
    for (size_t i = 0; i < kWaits.size(); ++i) {
        if (spread_ns[i] > std::max(kLeast, kShare * extra_ns[i])) {
            return false;
        }
    }
    return measured();
}

WaitCost combine(const std::vector<WaitCost>& measurements) {
    WaitCost out;
    const auto count = static_cast<double>(measurements.size());
    for (const WaitCost& one : measurements) {
        out.over_ns += one.over_ns / count;
    }
    for (size_t i = 0; i < WaitCost::kWaits.size(); ++i) {
        double least = INFINITY, most = 0;
        for (const WaitCost& one : measurements) {
            out.extra_ns[i] += one.extra_ns[i] / count;
            least = std::min(least, one.extra_ns[i]);
            most = std::max(most, one.extra_ns[i]);
        }
        out.spread_ns[i] = measurements.empty() ? 0.0 : (most - least) / 2;
    }
    return out;
}

namespace {

/// One measurement; not measured where it was stopped.
WaitCost measure_once(Walk& walk, int rounds, const std::atomic<bool>* stop) {
    std::array<std::vector<Stretches>, WaitCost::kWaits.size() + 1> found;
    for (int round = 0; round < std::max(rounds, 1); ++round) {
        if (stop != nullptr && stop->load()) {
            return {};
        }
        for (size_t i = 0; i < WaitCost::kWaits.size(); ++i) {
            const timespec wait{0, WaitCost::kWaits[i]};
            nanosleep(&wait, nullptr);
            found[i].push_back(walk.stretches());
        }
        found.back().push_back(walk.stretches());
    }
    std::array<Stretches, WaitCost::kWaits.size()> after{};
    for (size_t i = 0; i < after.size(); ++i) {
        after[i] = medians(found[i]);
    }
    return wait_cost_of(medians(found.back()), after);
}

}  // namespace

WaitCost measure_wait_cost(int rounds, const std::atomic<bool>* stop) {
    Walk walk;
    std::vector<WaitCost> all;
    while (all.size() < kMostMeasurements) {
        all.push_back(measure_once(walk, rounds, stop));
        if (!all.back().measured()) {
            return {};
        }
        if (all.size() >= 2) {
            if (const WaitCost last = combine({all[all.size() - 2], all.back()}); last.stable()) {
                return last;
            }
        }
    }
    return combine(all);
}

}  // namespace reprise

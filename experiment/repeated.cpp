// SPDX-License-Identifier: MIT
#include "experiment/repeated.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "calibrate/own_groups.h"
#include "formats/support/percentile.h"

namespace reprise {
namespace {

constexpr double kLevel = 0.95;

double middle(const std::vector<double>& sorted) {
    const size_t half = sorted.size() / 2;
    return sorted.size() % 2 != 0 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
double middle_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return middle(values);
}

/// Probability of at most `most` heads in `n` throws of a coin.
double at_most(size_t n, size_t most) {
    double term = std::pow(0.5, static_cast<double>(n)), sum = 0;
    for (size_t k = 0; k <= most; ++k) {
        sum += term;
        term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    }
    return sum;
}

/// Probability that a random order of `n` different values has at most `most` pairs in the wrong order.
double at_most_inversions(size_t n, size_t most) {
    std::vector<double> share{1.0};  // by the number of inversions
    for (size_t i = 2; i <= n; ++i) {
        std::vector<double> next(share.size() + i - 1, 0.0);
        for (size_t k = 0; k < share.size(); ++k) {
            for (size_t more = 0; more < i; ++more) {
                next[k + more] += share[k] / static_cast<double>(i);
            }
        }
        share = std::move(next);
    }
    const auto end = share.begin() + static_cast<std::ptrdiff_t>(std::min(most + 1, share.size()));
    return std::accumulate(share.begin(), end, 0.0);
}

std::string decimals(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

/// Where the control group of this process has its counters: those of the cpu controller, version 1 or 2.
std::filesystem::path cpu_group() {
    const GroupTexts texts = read_group_texts();
    const auto own = own_group_of("cpu", texts);
    return own ? own->folder : own_unified_group(texts).value_or(OwnGroup()).folder;
}

}  // namespace

MedianInterval median_interval(std::vector<double> values) {
    MedianInterval out;
    if (values.empty()) {
        return out;
    }
    std::sort(values.begin(), values.end());
    const size_t n = values.size();
    // As far in from both ends as the level allows.
    size_t left = 0;
    while (2 * (left + 1) < n && 1 - 2 * at_most(n, left + 1) >= kLevel) {
        ++left;
    }
    out.median = middle(values);
    out.low = values[left];
    out.high = values[n - 1 - left];
    out.level = std::max(1 - 2 * at_most(n, left), 0.0);
    return out;
}

std::optional<double> drift(const std::vector<double>& values) {
    constexpr double kChance = 0.05;
    const size_t n = values.size();
    size_t up = 0, down = 0;
    std::vector<double> slopes;
    for (size_t i = 0; i < n; ++i) {
        for (size_t k = i + 1; k < n; ++k) {
            up += values[k] > values[i] ? 1 : 0;
            down += values[k] < values[i] ? 1 : 0;
            slopes.push_back((values[k] - values[i]) / static_cast<double>(k - i));
        }
    }
    // Of a pair of equal values half is in the wrong order.
    const size_t apart = up > down ? up - down : down - up;
    if (slopes.empty() || 2 * at_most_inversions(n, (slopes.size() - apart) / 2) > kChance) {
        return std::nullopt;
    }
    const double center = middle_of(values);
    return center > 0 ? std::optional(middle_of(std::move(slopes)) / center) : std::nullopt;
}

std::vector<std::string> disturbances(const Surroundings& run) {
    constexpr double kOfCpus = 0.05, kOfElapsed = 0.01;
    constexpr double kLeastShown = 3e7;                          // ns of CPU time
    constexpr double kForeign = 0.05, kLeastForeign = 16 << 20;  // bytes
    std::vector<std::string> out;
    const auto of_cpus = [&](double used) {
        return decimals(used, 2) + " of " + std::to_string(run.cpus) + (run.cpus == 1 ? " CPU" : " CPUs");
    };
    // The kernel counts in hundredths of a second: in a short run one or two of them are no share. More would keep the
    // shorter runs of a steady load and mark the longer ones.
    const auto shows = [&](double cpus) {
        return cpus > kOfCpus * run.cpus && cpus * static_cast<double>(run.elapsed_ns) >= kLeastShown;
    };
    if (shows(run.stolen_cpus)) {
        out.push_back("steal time: " + of_cpus(run.stolen_cpus));
    }
    if (shows(run.other_cpus)) {
        out.push_back("other programs used " + of_cpus(run.other_cpus));
    }
    if (run.throttled_s > kOfElapsed * static_cast<double>(run.elapsed_ns) / 1e9) {
        out.push_back("held up " + decimals(run.throttled_s, 2) + " s by the CPU quota of its cgroup");
    }
    if (run.overheated > 0) {
        out.push_back("CPUs throttled " + decimals(run.overheated, 0) + " times (heat)");
    }
    const double foreign = run.device_bytes - run.own_bytes;
    if (run.device_bytes >= 0 && run.own_bytes >= 0 && foreign > std::max(kLeastForeign, kForeign * run.own_bytes)) {
        out.push_back("the device moved " + decimals(foreign / (1 << 20), 0) + " MiB for others");
    }
    return out;
}

std::vector<size_t> outliers(const std::vector<double>& values) {
    constexpr double kDeviations = 5, kLeast = 0.02, kNormal = 1.4826;
    std::vector<size_t> out;
    if (values.size() < 4) {
        return out;
    }
    const double center = middle_of(values);
    std::vector<double> apart;
    apart.reserve(values.size());
    for (const double value : values) {
        apart.push_back(std::abs(value - center));
    }
    const double limit = std::max(kDeviations * kNormal * middle_of(apart), kLeast * center);
    for (size_t i = 0; i < values.size(); ++i) {
        if (apart[i] > limit) {
            out.push_back(i);
        }
    }
    return out;
}

ThrottleCounters read_throttle_counters() {
    ThrottleCounters out;
    const std::filesystem::path stat = cpu_group() / "cpu.stat";
    if (const auto us = number_in(stat, "throttled_usec")) {
        out.quota_s = static_cast<double>(*us) / 1e6;
    } else if (const auto ns = number_in(stat, "throttled_time")) {
        out.quota_s = static_cast<double>(*ns) / 1e9;
    }
    std::error_code ignored;
    for (const auto& cpu : std::filesystem::directory_iterator("/sys/devices/system/cpu", ignored)) {
        std::ifstream in(cpu.path() / "thermal_throttle/core_throttle_count");
        if (double count = 0; in >> count) {
            out.overheated = std::max(out.overheated, 0.0) + count;
        }
    }
    return out;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// What several runs of one thing say together: median and its interval, drift from run to run, and which runs something
// else on the machine disturbed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reprise {

/// The median of some values, and an interval that holds the true median with a probability of `level`: between two of
/// the values, whatever their distribution. `level` is at least 0.95 from 6 values on; fewer cannot give that.
struct MedianInterval {
    double median = 0, low = 0, high = 0;
    double level = 0;
    /// Half the width as a share of the median.
    double half_width() const { return median > 0 ? (high - low) / 2 / median : 0.0; }
};
/// Of none: all 0.
MedianInterval median_interval(std::vector<double> values);

/// Whether later values are larger or smaller than earlier ones, by Kendall's test at 5 %, which 5 values can pass at
/// the earliest. By how much from one to the next, as a share of the median (Theil-Sen). None: no such trend.
std::optional<double> drift(const std::vector<double>& values);

/// What is known of the machine during one run. Negative: not known.
struct Surroundings {
    int cpus = 1;              // that the run may use
    double stolen_cpus = -1;   // steal time, in CPUs
    double other_cpus = -1;    // that other programs used
    double throttled_s = -1;   // for which a CPU quota held the run's control group up
    double overheated = -1;    // times that the processors throttled themselves
    double device_bytes = -1;  // that the run's device moved
    double own_bytes = -1;     // of these, for the run
    int64_t elapsed_ns = 0;
};
/// Sentences without a full stop: what disturbed a run; none: nothing that shows.
std::vector<std::string> disturbances(const Surroundings& run);

/// Runs that took much longer or shorter than the others: more than 5 scaled median absolute deviations and 2 % from
/// the median. Of fewer than 4 none. Ascending.
std::vector<size_t> outliers(const std::vector<double>& values);

/// Counters of the whole machine and of this process's control group, to tell what happened between two readings.
struct ThrottleCounters {
    double quota_s = -1;     // cpu.stat
    double overheated = -1;  // thermal_throttle
};
ThrottleCounters read_throttle_counters();

}  // namespace reprise

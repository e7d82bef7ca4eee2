// SPDX-License-Identifier: MIT
#include "replay/interval/interval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace reprise {
namespace {

constexpr double kNormal = 1.96;  // standard deviations of 95 %

/// By PathPart: standard deviation of that time from one run of a job to the next, as a share. What other ranks took
/// is mostly compute and calls, too.
constexpr std::array<double, kPathParts> kVaries{0.03, 0.03, 0.01, 0.005, 0.001, 0.1, 0.03};
/// Of TimeInterval::Part, in the order of interval_of().
constexpr const char* kSources[] = {"the job's own variation", "the runs' variation", "CPU speed",
                                    "compute after waits",     "storage model",       "inodes around",
                                    "inferred edges",          "order of reads",      "helpers that went on",
                                    "added by the replay",     "other load",          "start and end"};
/// How far a storage model may be off, of the time in calls, as a standard deviation.
constexpr double kModelOff = 0.05;
/// How far another order of an event loop's or a pool's reads may lead, as a share of the time.
constexpr double kReordered = 0.25;
/// Of reads whose number and order are a guess.
constexpr double kGuessed = 0.2;
/// Start and end of a job, and clocks, ns.
constexpr double kEdges = 1e6;
/// A scatter that is measured counts by itself from so many values on; of two, only where it is the larger one.
constexpr size_t kEnough = 3;

/// Factor to a standard deviation of `count` values that gives 95 % (Student's t, two-sided).
double student(size_t count) {
    constexpr std::array<double, 9> kFactors{4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
    const size_t at = count - kEnough;
    return at < kFactors.size() ? kFactors[at] : kNormal + 2.4 / static_cast<double>(count - 1);
}

/// Half width of what one more, and the median of those that were measured, vary by, ns. `guess`: where too few were.
double measured(const Scatter& of, double elapsed, bool one_more, double guess) {
    constexpr double kMedian = 1.57;  // variance of a median over that of a mean
    const double variance = (one_more ? 1.0 : 0.0) + kMedian / static_cast<double>(of.count);
    const double deviation = of.deviation * std::sqrt(variance) * elapsed;
    return of.count < kEnough ? std::max(guess, kNormal * deviation) : student(of.count) * deviation;
}

}  // namespace

Scatter scatter_of(const std::vector<double>& values) {
    if (values.size() < 2) {
        return {values.size(), 0};
    }
    const auto count = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
    double squares = 0;
    for (const double value : values) {
        squares += (value - mean) * (value - mean);
    }
    return {values.size(), mean > 0 ? std::sqrt(squares / (count - 1)) / mean : 0.0};
}

const char* error_source_name(std::string_view text) {
    const auto found = std::find(std::begin(kSources), std::end(kSources), text);
    return found == std::end(kSources) ? nullptr : *found;
}

std::optional<TimeInterval> interval_of(const ErrorSources& sources) {
    const auto elapsed = static_cast<double>(sources.elapsed_ns);
    if (sources.elapsed_ns <= 0) {
        return std::nullopt;
    }
    double varies = 0;
    for (size_t part = 0; part < kPathParts; ++part) {
        const double one = kNormal * kVaries[part] * static_cast<double>(sources.path.ns[part]);
        varies += one * one;
    }
    varies = std::sqrt(varies);
    const auto part_ns = [&](PathPart part) { return static_cast<double>(sources.path.of(part)); };
    const double computed = part_ns(PathPart::compute), calls = part_ns(PathPart::call) + part_ns(PathPart::device);
    // The recording is one run of the job, what is asked for another.
    const double job = measured(sources.recordings, elapsed, true, varies * std::sqrt(2.0));
    const double runs = sources.predicted ? 0.0 : measured(sources.runs, elapsed, false, varies);
    const double speed = kNormal / 2 * sources.speed_uncertainty * computed;
    const double model = sources.predicted ? kNormal * kModelOff * calls : 0.0;
    const double order = sources.order_open ? kReordered * elapsed : 0.0;
    const double taken = std::max(sources.taken_share, 0.0) * (computed + part_ns(PathPart::call));
    const double guessed = kGuessed * std::max(sources.guessed_reads_ns, 0.0);
    TimeInterval out;
    out.parts = {{kSources[0], job, job},
                 {kSources[1], runs, runs},
                 {kSources[2], speed, speed},
                 // What caches make of waits was measured of this machine, not of the job: it may be nothing.
                 {kSources[3], std::max(sources.after_waits_ns, 0.0), std::max(-sources.after_waits_ns, 0.0)},
                 {kSources[4], model, model},
                 {kSources[5], guessed, guessed},
                 {kSources[6], sources.path.doubtful_ns, 0},
                 {kSources[7], order, order},
                 {kSources[8], static_cast<double>(sources.alone_ns), 0},
                 {kSources[9], std::max(sources.added_ns, 0.0), 0},
                 {kSources[10], taken, 0},
                 {kSources[11], kEdges, kEdges}};
    std::erase_if(out.parts, [](const TimeInterval::Part& part) { return part.down_ns < 1 && part.up_ns < 1; });
    double down = 0, up = 0;
    for (const TimeInterval::Part& part : out.parts) {
        down += part.down_ns * part.down_ns;
        up += part.up_ns * part.up_ns;
    }
    out.low_ns = std::max<int64_t>(sources.elapsed_ns - std::llround(std::sqrt(down)), 0);
    out.high_ns = sources.elapsed_ns + std::llround(std::sqrt(up));
    if (sources.shown_ns > 0) {
        out.low_ns = std::min(out.low_ns, sources.shown_ns);
        out.high_ns = std::max(out.high_ns, sources.shown_ns);
    }
    return out;
}

}  // namespace reprise

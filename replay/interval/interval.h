// SPDX-License-Identifier: MIT
// How far the time of a replay or a prediction may lie from the real job's: a 95 % interval, from what is known of each
// source of error.
//
// The sources are taken as independent, so their half widths add in quadrature, upwards and downwards apart: what a
// replay added itself can only have made it longer. How much jobs and machines vary is not known of a single
// recording and a single run; the shares in interval.cpp stand in, which were fitted on the cells of docs/accuracy.md
// that it names for that. Several recordings and runs say it themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "replay/interval/path_times.h"

namespace reprise {

/// Times of one thing done several times.
struct Scatter {
    size_t count = 1;
    double deviation = 0;  // standard deviation of one of them, as a share of their mean
};
/// Of none: {0, 0}.
Scatter scatter_of(const std::vector<double>& values);

struct ErrorSources {
    int64_t elapsed_ns = 0;
    int64_t shown_ns = 0;  // of several runs, whose median is elapsed_ns, the one that is shown; 0: only one
    PathTimes path;
    double speed_uncertainty = 0;  // share by which the processors' relative speed may be off
    double after_waits_ns = 0;     // of compute on the path: what waits of other lengths add, below 0 take off
    double added_ns = 0;           // by the replay on its critical path
    double taken_share = 0;        // of the time that compute took, by the host and by other programs
    int64_t alone_ns = 0;          // in which only helpers were at work: the job would have ended them
    double guessed_reads_ns = 0;   // of the device's time, that for reads which the log does not have
    Scatter recordings, runs;
    bool predicted = false;  // by a storage model
    /// An event loop, free workers or who asks for a lock first decide the order; the recorded one is kept.
    bool order_open = false;
};

struct TimeInterval {
    int64_t low_ns = 0, high_ns = 0;
    /// What it comes from: how far each source reaches down and up, ns; those of nothing left out.
    struct Part {
        const char* name;
        double down_ns, up_ns;
    };
    std::vector<Part> parts;
};

/// The name of TimeInterval::Part that reads so; null: none does.
const char* error_source_name(std::string_view text);

/// None where there was no time. It holds the time that is shown.
std::optional<TimeInterval> interval_of(const ErrorSources& sources);

}  // namespace reprise

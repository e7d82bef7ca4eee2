// SPDX-License-Identifier: MIT
#include "cli/what_bounds.h"

#include <cmath>
#include <string>

#include "calibrate/clock.h"
#include "cli/units.h"
#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"
#include "replay/plan/cpu_speed.h"
#include "replay/predict/predict.h"

namespace reprise::cli {
namespace {

double seconds_since(int64_t begin) { return static_cast<double>(monotonic_ns() - begin) / 1e9; }

/// Beyond what any log holds; what is divided by it is 0.
constexpr double kInfinitelyFast = 1e12;

struct Timed {
    Prediction prediction;
    JobBounds::WhatIf what;
};

Timed timed(const Predictor& predictor, const PredictOptions& how) {
    const int64_t begin = monotonic_ns();
    Timed out;
    out.prediction = predictor.run(how);
    out.what = {out.prediction.elapsed_ns, seconds_since(begin)};
    return out;
}

JobBounds::Path path_of(const PathTimes& path) {
    return {path.of(PathPart::compute),     path.of(PathPart::call),   path.of(PathPart::device),
            path.of(PathPart::accelerator), path.of(PathPart::asleep), path.of(PathPart::unexplained)};
}

/// Why nothing can be computed from the log's times; a sentence.
std::string no_times(const RecordedDoubts& doubts) {
    std::string why = untimed_calls(doubts);
    return why.empty() ? timeless_run(doubts) : "the log does not say how long its calls took";
}

/// The graph holds what tasks did and waited for, not that others had the processors meanwhile.
std::string doubt_of(const JobBounds& bounds, const Prediction& recorded, const Header& header) {
    constexpr double kMost = 0.1;
    std::string doubt = recorded.doubts.part.sentence();
    for (const std::string& why :
         {is_of_run(recorded.doubts), recorded.shares_otherwise ? recorded.shared_work : std::string()}) {
        doubt += (doubt.empty() || why.empty() ? "" : "; ") + why;
    }
    if (std::abs(bounds.error()) < kMost) {
        return doubt;
    }
    const int64_t missing = bounds.recorded - bounds.modelled->elapsed;
    doubt += (doubt.empty() ? "" : "; ") + std::string("with all times as recorded it takes ") +
             format_duration(bounds.modelled->elapsed) + ", not the recorded " + format_duration(bounds.recorded);
    if (const int64_t waited = read_fact(header, fact::run_queue).value_or(0); missing > 0 && waited > missing / 2) {
        doubt += ": tasks waited " + format_duration(waited) + " for CPUs";
    }
    return doubt;
}

void compute(const LogReader& log, const OpFilter& filter, const std::function<void(int, int)>& progress,
             JobBounds& out) {
    const auto at = [&](int done) {
        if (progress) {
            progress(done, 5);
        }
    };
    const int64_t begin = monotonic_ns();
    const Predictor predictor(log, filter, {});
    out.planned_s = seconds_since(begin);
    PredictOptions how;
    how.filter = filter;
    how.calls = CallTimes::recorded;
    const WaitCost wait_cost = recorded_wait_cost(log.header());
    how.speeds.waits = {wait_cost, wait_cost};
    at(1);
    const Timed recorded = timed(predictor, how);
    if (recorded.prediction.elapsed_ns <= 0) {
        out.why_none = "the log has no time that passes";
        return;
    }
    if (out.why_none = no_times(recorded.prediction.doubts); !out.why_none.empty()) {
        return;
    }
    out.recorded = recorded.prediction.recorded_ns;
    out.modelled = recorded.what;
    out.path = path_of(recorded.prediction.path);
    out.doubt = doubt_of(out, recorded.prediction, log.header());
    at(2);
    PredictOptions without = how;
    without.calls = CallTimes::memory;
    const Timed storage = timed(predictor, without);
    out.storage = storage.what;
    out.guessed_bytes = storage.prediction.guessed_bytes;
    at(3);
    without = how;
    without.speeds.cpu = kInfinitelyFast;
    without.speeds.waits = {};
    // Where the log does not tell compute from waiting, the time between calls is neither.
    if (recorded.prediction.computing_ns > 0) {
        out.processor = timed(predictor, without).what;
    }
    at(4);
    if (recorded.prediction.accelerators) {
        without = how;
        without.speeds.gpu = kInfinitelyFast;
        out.accelerator = timed(predictor, without).what;
    }
    at(5);
}

}  // namespace

JobBounds what_bounds(const LogReader& log, const OpFilter& filter, const std::function<void(int, int)>& progress) {
    JobBounds out;
    if (log.op_count() == 0) {
        out.why_none = "the log has no ops";
        return out;
    }
    compute(log, filter, progress, out);
    return out;
}

}  // namespace reprise::cli

// SPDX-License-Identifier: MIT
#include "cli/replay_metrics.h"

#include <algorithm>
#include <array>
#include <utility>

#include "replay/prepare/cache_regime.h"

namespace reprise::cli {
namespace {

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }
double seconds(double ns) { return ns / 1e9; }

const std::array<double, kTimeBucketBounds.size()>& bounds_s() {
    static const auto bounds = [] {
        std::array<double, kTimeBucketBounds.size()> out{};
        std::transform(kTimeBucketBounds.begin(), kTimeBucketBounds.end(), out.begin(),
                       [](int64_t ns) { return seconds(ns); });
        return out;
    }();
    return bounds;
}

void put_times(Exposition& out, Metric metric, Exposition::Labels labels, const TimeBuckets& a, const TimeBuckets& b) {
    TimeBuckets both = a;
    both.merge(b);
    out.add(metric, labels, bounds_s(), both.counts, seconds(both.sum_ns));
}

void add(std::optional<uint64_t>& to, const std::optional<uint64_t>& more) {
    if (more) {
        to = to.value_or(0) + *more;
    }
}

std::string_view phase_name(ReplayProgress::Phase phase) {
    switch (phase) {
        case ReplayProgress::Phase::planning: return "planning";
        case ReplayProgress::Phase::caching: return "caching";
        case ReplayProgress::Phase::running: return "running";
        case ReplayProgress::Phase::collecting: return "collecting";
    }
    return "";
}

}  // namespace

void ReplayMetrics::begin_run() {
    const std::lock_guard lock(mutex_);
    ++run_;
    elapsed_ns_ = 0;
    tracker_.emplace(tables_);
}

void ReplayMetrics::progress(const ReplayProgress& now) {
    const std::lock_guard lock(mutex_);
    progress_ = now;
    if (now.phase == ReplayProgress::Phase::running) {
        elapsed_ns_ = now.elapsed_ns;
    }
}

void ReplayMetrics::live(const LiveFigures& now) {
    const std::lock_guard lock(mutex_);
    now_ = now;
    if (info_.timed) {
        for (const LiveDeviceOp& one : now.device_ops) {
            tracker_->add(one.task, one.op);
        }
    }
    now_.device_ops.clear();
}

void ReplayMetrics::end_run() {
    const std::lock_guard lock(mutex_);
    progress_.reset();
    for (size_t kind = 0; kind < kOpKindLimit; ++kind) {
        LiveKind& sum = before_.kinds[kind];
        sum.ops += now_.kinds[kind].ops;
        sum.errors += now_.kinds[kind].errors;
        sum.mismatches += now_.kinds[kind].mismatches;
        sum.duration.merge(now_.kinds[kind].duration);
    }
    before_.left_out += now_.left_out;
    before_.bytes_read += now_.bytes_read;
    before_.bytes_written += now_.bytes_written;
    before_.lateness.merge(now_.lateness);
    add(before_.device_read, now_.device_read);
    add(before_.device_written, now_.device_written);
    add(before_.own_read, now_.own_read);
    before_.cache = now_.cache;
    devices_before_ = devices_;
    tracker_.reset();
    now_ = {};
}

std::string ReplayMetrics::text() const {
    Exposition out;
    add_process_metrics(out);
    const std::lock_guard lock(mutex_);
    put_run(out);
    put_tasks(out);
    put_ops(out);
    put_devices(out);
    put_accelerators(out);
    return out.text();
}

void ReplayMetrics::put_run(Exposition& out) const {
    const std::optional<CacheRegime> cache = now_.cache ? now_.cache : before_.cache;
    out.add(Metric::replay_info, {info_.log, info_.pace, info_.engine, cache ? cache_regime_name(*cache) : ""},
            uint64_t{1});
    out.add(Metric::replay_run, {}, run_);
    using Phase = ReplayProgress::Phase;
    for (const Phase phase : {Phase::planning, Phase::caching, Phase::running, Phase::collecting}) {
        out.add(Metric::replay_phase, {phase_name(phase)}, uint64_t{progress_ && progress_->phase == phase});
    }
    out.add(Metric::replay_phase, {"between"}, uint64_t{!progress_});
    out.add(Metric::replay_elapsed_seconds, {}, seconds(elapsed_ns_));
    // What the supervisor says is newer than what was counted.
    const bool running = progress_ && progress_->phase == Phase::running;
    const uint64_t planned = running ? progress_->total : now_.planned;
    const uint64_t passed = running ? std::max(progress_->done, now_.passed) : now_.passed;
    const double share = planned == 0 ? 0.0 : static_cast<double>(passed) / static_cast<double>(planned);
    out.add(Metric::replay_ops_planned, {}, planned);
    out.add(Metric::replay_ops_passed, {}, passed);
    out.add(Metric::replay_ops_uncounted, {}, passed - now_.passed + now_.uncounted);
    out.add(Metric::replay_progress_ratio, {}, share);
    if (running && share > 0) {
        out.add(Metric::replay_time_left_seconds, {}, seconds(elapsed_ns_) * (1 - share) / share);
    }
    if (info_.timed) {
        out.add(Metric::replay_lag_seconds, {}, seconds(running ? progress_->lag_ns : int64_t{0}));
    }
}

void ReplayMetrics::put_tasks(Exposition& out) const {
    constexpr std::array<std::string_view, 4> kStates{"not_started", "running", "waiting", "ended"};  // TaskState
    for (size_t state = 0; state < kStates.size(); ++state) {
        out.add(Metric::replay_tasks, {kStates[state]}, now_.tasks[state]);
    }
    out.add(Metric::replay_processes, {}, now_.processes);
}

void ReplayMetrics::put_ops(Exposition& out) const {
    for (const OpInfo& row : all_ops()) {
        const LiveKind &before = before_.kinds[static_cast<size_t>(row.kind)],
                       &now = now_.kinds[static_cast<size_t>(row.kind)];
        const uint64_t ops = before.ops + now.ops, mismatches = before.mismatches + now.mismatches;
        if (ops == 0 && mismatches == 0) {
            continue;
        }
        out.add(Metric::replay_ops_total, {row.name}, ops);
        out.add(Metric::replay_errors_total, {row.name}, before.errors + now.errors);
        out.add(Metric::replay_mismatches_total, {row.name}, mismatches);
        put_times(out, Metric::replay_op_duration_seconds, {row.name}, before.duration, now.duration);
    }
    out.add(Metric::replay_left_out_ops_total, {}, before_.left_out + now_.left_out);
    out.add(Metric::replay_bytes_total, {"read"}, before_.bytes_read + now_.bytes_read);
    out.add(Metric::replay_bytes_total, {"written"}, before_.bytes_written + now_.bytes_written);
    if (info_.timed) {
        put_times(out, Metric::replay_lateness_seconds, {}, before_.lateness, now_.lateness);
    }
}

void ReplayMetrics::put_devices(Exposition& out) const {
    const auto put = [&](Metric metric, Exposition::Labels labels, std::optional<uint64_t> before,
                         const std::optional<uint64_t>& now) {
        add(before, now);
        if (before) {
            out.add(metric, labels, *before);
        }
    };
    put(Metric::replay_device_bytes_total, {"read"}, before_.device_read, now_.device_read);
    put(Metric::replay_device_bytes_total, {"written"}, before_.device_written, now_.device_written);
    put(Metric::replay_own_device_read_bytes_total, {}, before_.own_read, now_.own_read);
}

/// As the result will say it, of what the devices were given by now.
void ReplayMetrics::put_accelerators(Exposition& out) const {
    AcceleratorUse use;
    if (tracker_) {
        AcceleratorTracker until_now = *tracker_;
        use.devices = until_now.finish(now_.log_begin_ns, now_.log_begin_ns + now_.elapsed_ns);
        // A submission that was counted late must not take back what was said.
        devices_.busy = std::max(devices_.busy, devices_before_.busy + use.busy());
        devices_.stall = std::max(devices_.stall, devices_before_.stall + use.stall());
    }
    if (use.devices.empty() && devices_.busy == 0) {
        return;
    }
    out.add(Metric::replay_accelerators, {}, uint64_t{use.devices.size()});
    out.add(Metric::replay_accelerator_busy_seconds_total, {}, seconds(devices_.busy));
    out.add(Metric::replay_stall_seconds_total, {}, seconds(devices_.stall));
    if (const std::optional<double> au = use.au()) {
        out.add(Metric::replay_accelerator_utilization_ratio, {}, *au);
    }
}

}  // namespace reprise::cli

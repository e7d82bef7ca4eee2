// SPDX-License-Identifier: MIT
// What --metrics says of runs and recordings: counters go on from run to run, gauges are of the present one.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "cli/capture_metrics.h"
#include "cli/replay_metrics.h"
#include "formats/raw/record.h"

namespace reprise::cli {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

/// The value of a line that begins with `name`; -1: there is none.
double value(const std::string& text, const std::string& name) {
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

LiveFigures figures(uint64_t reads) {
    LiveFigures now;
    now.planned = 100;
    now.passed = 50;
    now.uncounted = 5;
    now.elapsed_ns = 2 * kSecond;
    LiveKind& kind = now.kinds[static_cast<size_t>(OpKind::pread)];
    kind.ops = reads;
    kind.errors = 1;
    kind.mismatches = 2;
    for (uint64_t i = 0; i < reads; ++i) {
        kind.duration.add(3'000);
        now.lateness.add(-1);
    }
    now.bytes_read = reads * 4096;
    now.device_read = 1'000;
    now.tasks = {1, 2, 3, 4};
    return now;
}

}  // namespace

TEST_CASE("live figures of a replay: counters go on, gauges are of the run") {
    const Tables tables;
    ReplayMetrics metrics({"job.oplog", "causal", "posix", true}, tables);
    CHECK(value(metrics.text(), "reprise_replay_phase{phase=\"between\"}") == 1);
    metrics.begin_run();
    metrics.progress({ReplayProgress::Phase::planning, 0, 100, 0, 0});
    CHECK(value(metrics.text(), "reprise_replay_phase{phase=\"planning\"}") == 1);
    CHECK(value(metrics.text(), "reprise_replay_time_left_seconds") == -1);
    metrics.progress({ReplayProgress::Phase::running, 60, 100, 3 * kSecond, 7'000'000});
    metrics.live(figures(40));
    std::string text = metrics.text();
    CHECK(value(text, "reprise_replay_phase{phase=\"between\"}") == 0);
    CHECK(value(text, "reprise_replay_run") == 1);
    CHECK(value(text, "reprise_replay_progress_ratio") == 0.6);
    CHECK(value(text, "reprise_replay_time_left_seconds") == doctest::Approx(2.0));
    CHECK(value(text, "reprise_replay_ops_passed") == 60);
    CHECK(value(text, "reprise_replay_ops_uncounted") == 15);
    CHECK(value(text, "reprise_replay_lag_seconds") == 0.007);
    CHECK(value(text, "reprise_replay_ops_total{op=\"pread\"}") == 40);
    CHECK(value(text, "reprise_replay_op_duration_seconds_bucket{op=\"pread\",le=\"2e-06\"}") == 0);
    CHECK(value(text, "reprise_replay_op_duration_seconds_bucket{op=\"pread\",le=\"5e-06\"}") == 40);
    CHECK(value(text, "reprise_replay_lateness_seconds_count") == 40);
    CHECK(value(text, "reprise_replay_tasks{state=\"waiting\"}") == 3);
    CHECK(value(text, "reprise_replay_device_bytes_total{direction=\"read\"}") == 1'000);
    CHECK(value(text, "reprise_replay_device_bytes_total{direction=\"written\"}") == -1);  // unknown
    CHECK(value(text, "reprise_replay_accelerators") == -1);
    metrics.end_run();
    text = metrics.text();
    CHECK(value(text, "reprise_replay_ops_total{op=\"pread\"}") == 40);
    CHECK(value(text, "reprise_replay_tasks{state=\"waiting\"}") == 0);
    metrics.begin_run();
    metrics.live(figures(2));
    text = metrics.text();
    CHECK(value(text, "reprise_replay_run") == 2);
    CHECK(value(text, "reprise_replay_elapsed_seconds") == 0);
    CHECK(value(text, "reprise_replay_ops_total{op=\"pread\"}") == 42);
    CHECK(value(text, "reprise_replay_errors_total{op=\"pread\"}") == 2);
    CHECK(value(text, "reprise_replay_mismatches_total{op=\"pread\"}") == 4);
    CHECK(value(text, "reprise_replay_bytes_total{direction=\"read\"}") == 42 * 4096);
    CHECK(value(text, "reprise_replay_op_duration_seconds_count{op=\"pread\"}") == 42);
    CHECK(value(text, "reprise_replay_device_bytes_total{direction=\"read\"}") == 2'000);
}

TEST_CASE("live figures of a replay: accelerators as the result has them") {
    Tables tables;
    tables.processes.resize(2);
    tables.tasks.resize(2);
    tables.tasks[1].process = 1;
    ReplayMetrics metrics({"job.oplog", "causal", "posix", true}, tables);
    LiveFigures now = figures(1);
    now.log_begin_ns = 500;
    now.elapsed_ns = 10 * kSecond;
    for (const int64_t at : {1, 5}) {  // a second of work each, three seconds idle in between
        Op op;
        op.kind = OpKind::gpu_submit;
        op.begin = 500 + at * kSecond;
        op.size = kSecond;
        now.device_ops.push_back({1, op});
    }
    for (const double runs : {1.0, 2.0}) {
        metrics.begin_run();
        metrics.live(now);
        const std::string text = metrics.text();
        CHECK(value(text, "reprise_replay_accelerators") == 1);
        CHECK(value(text, "reprise_replay_accelerator_busy_seconds_total") == 2 * runs);
        CHECK(value(text, "reprise_replay_stall_seconds_total") == 3 * runs);
        CHECK(value(text, "reprise_replay_accelerator_utilization_ratio") == 0.2);
        metrics.end_run();
    }
    CHECK(value(metrics.text(), "reprise_replay_accelerator_busy_seconds_total") == 4);

    ReplayMetrics fast({"job.oplog", "afap", "null", false}, tables);
    fast.begin_run();
    fast.live(now);
    CHECK(value(fast.text(), "reprise_replay_accelerators") == -1);
    CHECK(value(fast.text(), "reprise_replay_lateness_seconds_count") == -1);
    CHECK(value(fast.text(), "reprise_replay_lag_seconds") == -1);
}

TEST_CASE("live figures of recordings, each made by a process of its own") {
    CaptureMetrics metrics("job.oplog");
    CHECK(value(metrics.text(), "reprise_capture_run") == 0);
    for (const uint64_t runs : {1, 2}) {
        const pid_t child = ::fork();
        if (child == 0) {
            metrics.begin_run();
            CaptureProgress now;
            for (const uint64_t calls : {4, 10}) {
                now.by_type[RAW_CALL] = calls;
                now.lost = 3;
                now.live = 5;
                now.own_cpu_ns = kSecond;
                now.elapsed_ns = static_cast<int64_t>(runs) * kSecond;
                metrics.progress(now);
            }
            ::_exit(0);
        }
        int status = 1;
        CHECK(::waitpid(child, &status, 0) == child);
        CHECK(status == 0);
        const std::string text = metrics.text();
        const auto times = static_cast<double>(runs);
        CHECK(value(text, "reprise_capture_info{log=\"job.oplog\"}") == 1);
        CHECK(value(text, "reprise_capture_run") == times);
        CHECK(value(text, "reprise_capture_recording") == 1);
        CHECK(value(text, "reprise_capture_records_total{event=\"call\"}") == 10 * times);
        CHECK(value(text, "reprise_capture_lost_events_total") == 3 * times);
        CHECK(value(text, "reprise_capture_recorder_cpu_seconds_total") == times);
        CHECK(value(text, "reprise_capture_elapsed_seconds") == times);
        CHECK(value(text, "reprise_capture_live_tasks") == 5);
    }
    metrics.end_run();
    CHECK(value(metrics.text(), "reprise_capture_recording") == 0);
    CHECK(value(metrics.text(), "reprise_capture_live_tasks") == 0);
    CHECK(value(metrics.text(), "reprise_capture_records_total{event=\"call\"}") == 20);
}

}  // namespace reprise::cli

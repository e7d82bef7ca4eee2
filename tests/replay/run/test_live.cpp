// SPDX-License-Identifier: MIT
// The figures of a run while it goes on: what they come to in the end is what the result says.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <vector>

#include "analyze/accelerator.h"
#include "replay/run/live.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

struct Fixture : PreparedRoot {
    fs::path log = dir / "job.oplog";
    std::vector<LiveFigures> told;
    std::vector<LiveDeviceOp> device_ops;

    Fixture() {
        fs::create_directories(root / "data");
        write_file(root / "data/in", std::string(100'000, 'x'));
    }

    ReplayResult run(const LogReader& reader, Pace pace) {
        ReplayOptions options = afap(root);
        options.pace = pace;
        options.live = [&](const LiveFigures& now) {
            told.push_back(now);
            device_ops.insert(device_ops.end(), now.device_ops.begin(), now.device_ops.end());
        };
        ReplayResult result = replay(reader, options);
        INFO(describe(result));
        CHECK(result.ended == "complete");
        return result;
    }

    void check_end(const ReplayResult& result, const LogReader& reader) {
        REQUIRE(!told.empty());
        const LiveFigures& end = told.back();
        CHECK(end.planned == reader.op_count());
        CHECK(end.passed == end.planned);
        CHECK(end.uncounted == 0);
        CHECK(end.bytes_read == result.bytes_read);
        CHECK(end.bytes_written == result.bytes_written);
        CHECK(end.left_out == std::accumulate(result.left_out.begin(), result.left_out.end(), uint64_t{0}));
        CHECK(end.lateness.count() == result.lateness.count());
        CHECK(end.tasks[static_cast<size_t>(TaskState::ended)] == result.tasks);
        uint64_t errors = 0;
        for (const OpInfo& row : all_ops()) {
            INFO(row.name);
            const auto kind = static_cast<size_t>(row.kind);
            CHECK(end.kinds[kind].ops == result.latency[kind].count());
            CHECK(end.kinds[kind].duration.count() == end.kinds[kind].ops);
            CHECK(end.kinds[kind].duration.sum_ns == doctest::Approx(result.latency[kind].sum()).epsilon(1e-9));
            CHECK(end.kinds[kind].mismatches == result.mismatches_by_kind[kind]);
            errors += end.kinds[kind].errors;
        }
        CHECK(errors == result.errors);
        CHECK(end.lateness.sum_ns == doctest::Approx(result.lateness.sum()).epsilon(1e-9));
        for (size_t i = 1; i < told.size(); ++i) {
            CHECK(told[i].passed >= told[i - 1].passed);
            CHECK(told[i].elapsed_ns >= told[i - 1].elapsed_ns);
            for (size_t kind = 0; kind < kOpKindLimit; ++kind) {
                CHECK(told[i].kinds[kind].ops >= told[i - 1].kinds[kind].ops);
            }
        }
    }
};

/// Reads that match, that fail and that are short, a write, a process that starts another one and waits for it.
LogReader mixed_job(const fs::path& log, int64_t between) {
    JobBuilder job(log);
    const ProcessId first = job.process(), second = job.process(first);
    const TaskId a = job.task(first), b = job.task(second);
    const HandleId in = job.open(a, job.file("/data/in"));
    const FileId out = job.file("/data/out", Origin::created);
    for (int i = 0; i < 400; ++i) {
        job.skip(between);
        job.pread(a, in, i * 100, 100);
    }
    job.pread(a, in, 200'000, 100);  // beyond the end here
    job.add(a, {.kind = OpKind::open,
                .result = 77,
                .handle = job.handle(job.file("/data/gone")),
                .fd = -1,
                .file = job.file("/data/gone"),
                .flags = O_RDONLY});
    job.spawn(a, b);
    const HandleId writing = job.open(b, out, O_WRONLY | O_CREAT | O_TRUNC);
    for (int i = 0; i < 100; ++i) {
        job.skip(between);
        job.write(b, writing, i * 10, 10);
    }
    job.close(b, writing);
    job.skip(between);
    job.add(a, {.kind = OpKind::compute, .duration = 2 * kMs});
    job.pread(a, in, 0, 4096);
    job.close(a, in);
    return job.finish();
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "live figures end as the result, whatever the pace") {
    for (const Pace pace : {Pace::afap, Pace::timed, Pace::causal}) {
        INFO(static_cast<int>(pace));
        told.clear();
        const LogReader reader = mixed_job(dir / ("job" + std::to_string(static_cast<int>(pace)) + ".oplog"), 700'000);
        const ReplayResult result = run(reader, pace);
        CHECK(result.mismatches == 2);
        CHECK(result.bytes_written == 1'000);
        check_end(result, reader);
        if (pace != Pace::afap) {
            CHECK(told.size() > 2);  // it takes some 300 ms
            CHECK(told.front().passed < told.back().passed);
        }
    }
}

TEST_CASE_FIXTURE(Fixture, "live figures of blocks that are long and of tasks that are many") {
    JobBuilder job(log, {.level = 1, .block_ops = 5'000});
    const ProcessId process = job.process();
    const TaskId longest = job.task(process);
    const HandleId in = job.open(longest, job.file("/data/in"));
    for (int i = 0; i < 60'000; ++i) {
        job.pread(longest, in, i % 1'000, 10);
    }
    for (int t = 0; t < 40; ++t) {
        const TaskId task = job.task(process);
        for (int i = 0; i < 50; ++i) {
            job.pread(task, in, i, 10);
        }
    }
    const LogReader reader = job.finish();
    const ReplayResult result = run(reader, Pace::causal);
    CHECK(result.mismatches == 0);
    CHECK(told.back().kinds[static_cast<size_t>(OpKind::pread)].ops == 62'000);
    check_end(result, reader);
}

TEST_CASE_FIXTURE(Fixture, "live figures tell the work of accelerators in log time") {
    JobBuilder job(log);
    const TaskId task = job.lone_task();
    const HandleId in = job.open(task, job.file("/data/in"));
    for (int i = 0; i < 10; ++i) {
        job.pread(task, in, 0, 100);
        job.add(task, {.kind = OpKind::gpu_submit, .size = 5 * kMs, .flags = 0, .arg = 0});
        job.skip(20 * kMs);
    }
    const LogReader reader = job.finish();
    const ReplayResult result = run(reader, Pace::causal);
    check_end(result, reader);
    REQUIRE(device_ops.size() == 10);
    AcceleratorTracker tracker(reader.tables());
    int64_t last = INT64_MIN;
    for (const LiveDeviceOp& one : device_ops) {
        CHECK(one.task == task);
        CHECK(one.op.begin >= last);
        last = one.op.begin;
        tracker.add(one.task, one.op);
    }
    const AcceleratorUse use{tracker.finish(0, last + 5 * kMs)};
    CHECK(use.busy() == 50 * kMs);
    CHECK(use.stall() > 0);
}

TEST_CASE_FIXTURE(Fixture, "a run without anybody who looks has no live figures, and one that cannot begin neither") {
    const LogReader reader = mixed_job(log, 0);
    CHECK(replay(reader, afap(root)).ended == "complete");
    ReplayOptions options = afap(dir / "nowhere");
    options.live = [&](const LiveFigures& now) { told.push_back(now); };
    CHECK_THROWS(replay(reader, options));
    CHECK(told.empty());
}

TEST_CASE("time buckets") {
    TimeBuckets times;
    times.add(-5);
    times.add(100);
    times.add(101);
    times.add(100'000'000'000);
    times.add(100'000'000'001);
    CHECK(times.counts.front() == 2);
    CHECK(times.counts[1] == 1);
    CHECK(times.counts[kTimeBucketBounds.size() - 1] == 1);
    CHECK(times.counts.back() == 1);
    CHECK(times.count() == 5);
    CHECK(times.sum_ns == 200'000'000'202.0);
    times.merge(times);
    CHECK(times.count() == 10);
    CHECK(std::is_sorted(kTimeBucketBounds.begin(), kTimeBucketBounds.end()));
}

}  // namespace reprise::test

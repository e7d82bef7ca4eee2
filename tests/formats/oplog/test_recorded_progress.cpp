// SPDX-License-Identifier: MIT
// How far a run is, in the time of its recording.
#include "formats/oplog/recorded_progress.h"

#include "tests/replay/job_builder.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

void compute(JobBuilder& job, TaskId task, int64_t begin, int64_t duration) {
    job.add(task, {.kind = OpKind::compute, .begin = begin, .duration = duration, .flags = 3});
}

}  // namespace

TEST_CASE("progress: from the ops that are done to the recording's time") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId a = job.lone_task(), b = job.lone_task();
    compute(job, a, 1, 100 * kMs);            // done at 100 ms
    compute(job, a, 100 * kMs, 400 * kMs);    // 500 ms
    compute(job, b, 1, 300 * kMs);            // 300 ms
    compute(job, b, 300 * kMs, 1'700 * kMs);  // 2 s
    const LogReader log = job.finish();
    const RecordedProgress progress(log);
    constexpr int64_t kStep = 10 * kMs;
    const auto near = [&](uint64_t done, int64_t for_ns, int64_t expected) {
        CAPTURE(done);
        CAPTURE(for_ns);
        const int64_t at = progress.time_at(done, for_ns);
        CHECK(at >= expected - kStep);
        CHECK(at <= expected + kStep + 1);
    };
    near(0, 0, 0);
    near(0, 50 * kMs, 50 * kMs);
    near(0, 9'000 * kMs, 100 * kMs);  // the first op is late here
    near(1, 0, 100 * kMs);
    near(1, 150 * kMs, 250 * kMs);
    near(2, 0, 300 * kMs);
    near(3, 0, 500 * kMs);
    near(3, 9'000 * kMs, 2'000 * kMs);
    near(4, 0, 2'000 * kMs);
    near(4, 9'000 * kMs, 2'000 * kMs);
    near(99, 0, 2'000 * kMs);
}

}  // namespace reprise::test

// SPDX-License-Identifier: MIT
// Sleeps between looks at what another task changes.
#include "replay/plan/looks.h"

#include <fcntl.h>

#include <cerrno>
#include <cmath>

#include "replay/plan/awaited_names.h"
#include "replay/plan/plan.h"
#include "replay/plan/recorded_doubts.h"
#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

/// A worker computes for 200 ms, then says so in a file; the main task looks every 40 ms, then computes for 50 ms.
struct HandOver {
    enum class By : uint8_t { bytes, name, lock, nobody } by = By::bytes;

    TempDir dir{};
    JobBuilder job{dir / "job.oplog"};
    TaskId main = 0, worker = 0;
    std::vector<uint64_t> sleeps{};

    LogReader build() {
        main = job.lone_task(), worker = job.lone_task();
        const bool names = by == By::name || by == By::lock;
        const FileId status = job.file("/status", names ? Origin::created : Origin::existed);
        constexpr int64_t kNew = O_WRONLY | O_CREAT | O_EXCL;
        HandleId w = 0;
        if (by == By::lock) {
            job.open(worker, status, kNew);
        }
        if (!names) {
            FileRow row = job.writer().tables().files[status];
            row.size = 4;
            job.writer().update_file(status, row);
            w = job.open(worker, status, O_WRONLY);
        }
        const HandleId r = names ? 0 : job.open(main, status);
        job.add(worker, {.kind = OpKind::compute, .begin = kMs, .duration = 199 * kMs, .flags = kComputeWorks});
        int64_t at = 2 * kMs;
        const auto look = [&](bool found) {
            if (by == By::name) {
                job.add(main, {.kind = OpKind::access, .begin = at, .result = found ? 0 : -2, .file = status});
            } else if (by == By::lock && found) {
                job.open(main, job.file("/status", Origin::created), kNew);
            } else if (by == By::lock) {
                job.add(main, {.kind = OpKind::open, .begin = at, .result = -EEXIST, .file = status, .flags = kNew});
            } else {
                job.add(main, {.kind = OpKind::pread, .begin = at, .result = 4, .handle = r, .fd = 4, .size = 4});
            }
            at += 10'000;
        };
        for (look(false); at < 200 * kMs;) {
            sleeps.push_back(
                job.add(main, {.kind = OpKind::wait, .begin = at, .duration = 40 * kMs, .arg = kWaitSleep}));
            at += 40 * kMs;
            if (at < 200 * kMs) {
                look(false);
            }
        }
        if (by == By::bytes) {
            job.add(worker, {.kind = OpKind::pwrite, .begin = 200 * kMs, .result = 4, .handle = w, .fd = 3, .size = 4});
        } else if (by == By::name) {
            job.open(worker, status, O_WRONLY | O_CREAT);
        } else if (by == By::lock) {
            job.add(worker, {.kind = OpKind::unlink, .begin = 200 * kMs, .file = status});
        }
        look(true);
        job.add(main, {.kind = OpKind::compute, .begin = at, .duration = 50 * kMs, .flags = kComputeWorks});
        return job.finish();
    }
};

}  // namespace

TEST_CASE("looks: sleeps until another task has written or made what is looked at are one wait for it") {
    HandOver job;
    SUBCASE("bytes written over") {}
    SUBCASE("a name") { job.by = HandOver::By::name; }
    SUBCASE("a lock that is a file") { job.by = HandOver::By::lock; }
    const LogReader log = job.build();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    CHECK(job.sleeps.size() == 5);
    CHECK(plan.tasks[job.main].explained == job.sleeps);
    CHECK(plan.counted(Count::waits_joined) == 5);
    CHECK(plan.repeated_sleep_ns == 0);
    CHECK(recorded_doubts(plan).awaited.looks == 0);
    // Who writes need not wait for looks in vain.
    CHECK(plan.tasks[job.worker].waits.empty());
    for (const double faster : {0.25, 1.0, 4.0}) {
        PredictOptions options;
        options.storage.read = {{4096, 0}};
        options.storage.read_bytes_per_s = options.storage.write_bytes_per_s = options.storage.cached_bytes_per_s =
            1e15;
        options.speeds.cpu = faster;
        options.filter = OpFilter::all();
        const double here = static_cast<double>(predict(log, options).elapsed_ns) / kMs;
        // The change is seen by the next look, every 40 ms.
        const double seen = 2 + 40 * std::ceil((200 / faster - 2) / 40);
        CHECK(here == doctest::Approx(seen + 50 / faster).epsilon(0.02));
    }
}

TEST_CASE("looks: the sleeps of a shell's loop are those of its children") {
    enum class Child : uint8_t { sleeps, reads, writes_a_message };
    for (const Child does : {Child::sleeps, Child::reads, Child::writes_a_message}) {
        CAPTURE(static_cast<int>(does));
        const TempDir dir;
        JobBuilder job(dir / "job.oplog");
        const TaskId shell = job.lone_task(), worker = job.lone_task();
        const FileId stop = job.file("/stop", Origin::created);
        const HandleId in = job.handle(job.file("/in"));
        std::vector<TaskId> children;
        int64_t at = kMs;
        const auto look = [&](bool found) {
            job.add(shell, {.kind = OpKind::stat, .begin = at, .result = found ? 0 : -2, .file = stop});
        };
        job.add(worker, {.kind = OpKind::compute, .begin = kMs, .duration = 120 * kMs, .flags = kComputeWorks});
        for (int i = 0; i < 3; ++i) {
            look(false);
            const TaskId child = job.lone_task();
            children.push_back(child);
            job.add(shell, {.kind = OpKind::spawn, .begin = at + 10'000, .result = 77, .peer = child});
            job.add(child, {.kind = OpKind::wait, .begin = at + 20'000, .duration = 50 * kMs, .arg = kWaitSleep});
            if (does == Child::reads) {
                job.add(child, {.kind = OpKind::pread, .result = 1, .handle = in, .fd = 3, .size = 1});
            } else if (does == Child::writes_a_message) {
                job.add(child, {.kind = OpKind::send, .result = 1, .size = 1});
            }
            const uint64_t ends = job.add(child, {.kind = OpKind::exit, .begin = at + 51 * kMs});
            const std::vector<Edge> edges{{child, EdgeKind::lifecycle, 100, ends}};
            if (i == 2) {
                job.add(worker, {.kind = OpKind::open,
                                 .begin = at + 30 * kMs,
                                 .result = 3,
                                 .handle = job.handle(stop),
                                 .file = stop,
                                 .flags = O_WRONLY | O_CREAT});
            }
            job.add(shell, {.kind = OpKind::join,
                            .begin = at + 40'000,
                            .duration = 51 * kMs,
                            .result = 77,
                            .peer = child,
                            .edges = edges});
            at += 52 * kMs;
        }
        look(true);
        const LogReader log = job.finish();
        const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
        for (const TaskId child : children) {
            CHECK(plan.tasks[child].explained ==
                  (does == Child::sleeps ? std::vector<uint64_t>{0} : std::vector<uint64_t>{}));
        }
        CHECK(plan.tasks[shell].looks.repeated.size() == (does == Child::sleeps ? 3 : 0));
        CHECK((recorded_doubts(plan).awaited.looks == 0) == (does == Child::sleeps));
    }
}

TEST_CASE("looks: sleeps that nobody ended stay, and are said to be sleeps one after the other") {
    HandOver job;
    job.by = HandOver::By::nobody;
    const LogReader log = job.build();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    CHECK(plan.tasks[job.main].explained.empty());
    CHECK(plan.counted(Count::waits_joined) == 0);
    CHECK(plan.repeated_sleep_ns == 5 * 40 * kMs);
}

}  // namespace reprise::test

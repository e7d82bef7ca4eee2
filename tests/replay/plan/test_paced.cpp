// SPDX-License-Identifier: MIT
// Sleeps up to the next point of a time grid absorb what comes before them; others keep their length.
#include "replay/plan/paced.h"

#include <doctest/doctest.h>

#include "tests/replay/job_builder.h"
#include "tests/replay/predicted_ms.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// Reads every 100 ms, or sleeps for 95 ms after each read, which take 3 to 7 ms.
struct Reader {
    bool grid = true;
    int64_t steps = 20;
    TempDir dir{};
    JobBuilder job{dir / "job.oplog"};

    static int64_t read_ns(int64_t i) { return (3 + i * 7 % 5) * kMs; }
    LogReader build() {
        const TaskId task = job.lone_task();
        const FileId file = job.file("/data/in");
        const HandleId h = job.handle(file);
        job.add(task, {.kind = OpKind::open, .begin = 1, .duration = 10, .result = 3, .handle = h, .file = file});
        int64_t at = 1'000, point = at;
        for (int64_t i = 0; i < steps; ++i) {
            job.add(task, {.kind = OpKind::pread,
                           .begin = at,
                           .duration = read_ns(i),
                           .result = 4096,
                           .handle = h,
                           .fd = 3,
                           .offset = i << 20,
                           .size = 4096});
            at += read_ns(i);
            point += 100 * kMs;
            const int64_t late = 10'000 * (i % 3);
            const int64_t sleeps = (grid ? point - at : 95 * kMs) + late;
            job.add(task, {.kind = OpKind::wait, .begin = at, .duration = sleeps, .arg = kWaitSleep});
            at += sleeps;
        }
        return job.finish();
    }
    /// What it takes where each read takes so long, ms.
    double predicted(int64_t read_ms) { return predicted_ms(build(), {{4096, read_ms}}); }
};

}  // namespace

TEST_CASE("paced sleeps: up to a point in time, whatever the storage does before it") {
    CHECK(Reader().predicted(1) == doctest::Approx(2'000).epsilon(0.005));
    CHECK(Reader().predicted(50) == doctest::Approx(2'000).epsilon(0.03));      // the first read shifts the grid
    CHECK(Reader().predicted(300) == doctest::Approx(20 * 300).epsilon(0.03));  // never on time
}

TEST_CASE("paced sleeps: sleeps of one length keep it") {
    Reader reader;
    reader.grid = false;
    CHECK(reader.predicted(1) == doctest::Approx(20 * 96).epsilon(0.005));
    Reader slow;
    slow.grid = false;
    CHECK(slow.predicted(50) == doctest::Approx(20 * 145).epsilon(0.005));
}

TEST_CASE("paced sleeps: a few may be even by chance") {
    Reader few;
    few.steps = 7;
    CHECK(few.predicted(50) > 7 * 125);
}

TEST_CASE("paced sleeps: points that are missed, and a second series") {
    PacedSleeps sleeps;
    const auto sleep = [&](uint64_t op, int64_t end_ms, int64_t ms) {
        sleeps.see(op, OpKind::wait, kWaitSleep, (end_ms - ms) * kMs, ms * kMs);
    };
    for (int64_t i = 0; i < 10; ++i) {
        const int64_t point = i < 5 ? i : i + 2;  // two are missed
        sleep(static_cast<uint64_t>(i), 1'000 + 50 * point, 30 + i % 4);
    }
    for (int64_t i = 10; i < 20; ++i) {
        sleep(static_cast<uint64_t>(i), 5'000 + 20 * i, 10 + i % 3);
    }
    sleeps.see(99, OpKind::compute, 0, 0, 1);
    const std::vector<Timer> found = sleeps.take();
    REQUIRE(found.size() >= 17);
    CHECK(found[0].armed == 0);
    CHECK(found[0].op == 1);
    CHECK(found[0].after_ns == 80 * kMs);
    CHECK(found[8].op == 9);
    CHECK(found[8].after_ns == (30 + 50 * 11) * kMs);
    CHECK(found.back().op == 19);
    CHECK(sleeps.take().empty());
    // Malformed logs.
    for (uint64_t op = 0; op < 20; ++op) {
        sleeps.see(op, OpKind::wait, kWaitSleep, INT64_MAX, INT64_MAX);
        sleeps.see(op, OpKind::wait, kWaitSleep, 5, 0);
    }
    CHECK(sleeps.take().empty());
}

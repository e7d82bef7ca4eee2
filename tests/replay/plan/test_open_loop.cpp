// SPDX-License-Identifier: MIT
// Open loops: requests are due whether or not the storage keeps up, and are counted from when they are due.
#include "replay/plan/open_loop.h"

#include <doctest/doctest.h>

#include "replay/predict/predict.h"
#include "replay/run/runner.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int kRequests = 50, kStalled = 5;
constexpr int64_t kEvery = 10 * kMs, kStall = 300 * kMs;

/// A request each 10 ms at a server of one, each a read of a page. The fifth meets a stall of 300 ms.
struct Loop {
    bool planted =
        false;  // the stall is a delay of the log; else the read is of a size that the storage takes as long for
    int64_t starts = 0;  // the loop begins so long after its task does, ns
    TempDir dir{};
    JobBuilder job{dir / "job.oplog"};

    LogReader build() {
        const TaskId task = job.lone_task();
        const FileId file = job.file("/data/in");
        const HandleId h = job.handle(file);
        const StringId name = job.text("request");
        int64_t now = 1;
        const auto put = [&](Op op, int64_t duration) {
            op.begin = now;
            op.duration = duration;
            now += duration;
            job.add(task, op);
        };
        put({.kind = OpKind::open, .result = 3, .handle = h, .file = file}, 10);
        if (starts != 0) {
            put({.kind = OpKind::wait, .arg = kWaitSleep}, starts);
        }
        put({.kind = OpKind::wait, .arg = until_arg(0)}, 1);
        const int64_t begin = now;
        for (int i = 1; i <= kRequests; ++i) {
            put({.kind = OpKind::wait, .arg = until_arg(i * kEvery)}, std::max<int64_t>(begin + i * kEvery - now, 1));
            const bool stalls = i == kStalled;
            if (stalls && planted) {
                put({.kind = OpKind::compute, .flags = kComputeSleeps}, kStall);
            }
            const int64_t bytes = stalls ? 8192 : 4096;
            put({.kind = OpKind::pread, .result = bytes, .handle = h, .fd = 3, .offset = (i - 1) * 8192, .size = bytes},
                1'000);
            put({.kind = OpKind::marker, .flags = static_cast<int64_t>(MarkerPhase::end), .arg = i, .text = name}, 1);
        }
        put({.kind = OpKind::close, .handle = h, .fd = 3}, 10);
        return job.finish();
    }
    Prediction predicted(int64_t stall = kStall, double scale = 1) {
        const LogReader log = build();
        PredictOptions options;
        options.filter = OpFilter::all();
        options.storage.read = {{4096, kMs}, {8192, stall}};
        options.storage.read_bytes_per_s = options.storage.cached_bytes_per_s = 1e15;
        options.speeds.time_scale = scale;
        return predict(log, options);
    }
    ReplayResult replayed(Pace pace) {
        planted = true;
        const LogReader log = build();
        ReplayOptions options;
        options.engine = EngineKind::null;
        options.pace = pace;
        options.filter = OpFilter::all();
        return replay(log, options);
    }
};

double ms(int64_t ns) { return static_cast<double>(ns) / kMs; }

}  // namespace

TEST_CASE("open loop: a stall makes a queue, which counting from the begin of each request hides") {
    for (const int64_t starts : {int64_t{0}, 70 * kMs}) {
        CAPTURE(starts);
        Loop job;
        job.starts = starts;
        const Prediction stalled = job.predicted();
        REQUIRE(stalled.open_loops.size() == 1);
        const OpenLoop& loop = stalled.open_loops[0];
        CHECK(loop.requests == kRequests);
        CHECK(loop.unfinished == 0);
        // One request is slow by itself.
        CHECK(ms(loop.from_begin.percentile(0.9)) == doctest::Approx(1).epsilon(0.05));
        CHECK(ms(loop.from_begin.max()) == doctest::Approx(300).epsilon(0.01));
        // From 350 ms on there is one each millisecond, those of 60, 70, ... ms first: late by 290, 281, ... ms.
        CHECK(loop.late == 33);
        CHECK(ms(loop.late_by.max()) == doctest::Approx(290).epsilon(0.01));
        CHECK(ms(loop.from_due.max()) == doctest::Approx(300).epsilon(0.01));
        CHECK(ms(loop.from_due.percentile(0.5)) > 60);
        // The queue is worked off, and the last request is on time again.
        CHECK(ms(stalled.elapsed_ns - starts) == doctest::Approx(501).epsilon(0.01));
    }
}

TEST_CASE("open loop: on fast storage no request is late, and arrivals keep their times") {
    const Prediction fast = Loop().predicted(kMs);
    CHECK(fast.open_loops.at(0).late == 0);
    CHECK(ms(fast.open_loops[0].from_due.max()) == doctest::Approx(1).epsilon(0.05));
    CHECK(ms(fast.elapsed_ns) == doctest::Approx(501).epsilon(0.01));
    const Prediction slower = Loop().predicted(kMs, 2);
    CHECK(ms(slower.elapsed_ns) == doctest::Approx(1001).epsilon(0.01));
}

TEST_CASE("open loop: the replay counts as the prediction does") {
    for (const Pace pace : {Pace::causal, Pace::timed}) {
        CAPTURE(static_cast<int>(pace));
        const ReplayResult result = Loop().replayed(pace);
        REQUIRE(result.open_loops.size() == 1);
        const OpenLoop& loop = result.open_loops[0];
        CHECK(loop.requests == kRequests);
        CHECK(loop.from_due.max() >= kStall);
        CHECK(loop.from_begin.max() >= kStall / 2);  // it began late, and its end did not move
        CHECK(result.elapsed_ns >= kRequests * kEvery);
        if (pace == Pace::causal) {
            CHECK(loop.late >= 28);
            CHECK(loop.from_due.percentile(0.5) >= 30 * kMs);
        }
    }
    CHECK(Loop().replayed(Pace::afap).open_loops.empty());
}

TEST_CASE("open loop: waits until a time are a known cause") {
    const ReplayResult result = Loop().replayed(Pace::causal);
    CHECK(result.unexplained_wait_share == 0.0);
}

TEST_CASE("open loop: asynchronous requests are done when they are, not when their task goes on") {
    Tables tables;
    tables.tasks.resize(2);
    OpenLoops loops(tables);
    OpBlock block;
    const uint8_t kinds[] = {static_cast<uint8_t>(OpKind::wait), static_cast<uint8_t>(OpKind::uring_submit)};
    const uint32_t texts[2] = {};
    const int64_t flags[2] = {};
    block.kind = kinds;
    block.text = texts;
    block.flags = flags;
    loops.see(1, block, 1, {}, 0, 5);  // no request is due yet
    loops.made(1, 7);
    loops.done(7, 10);
    loops.see(1, block, 0, 100, 50, 120);
    loops.made(1, 8);
    loops.see(1, block, 1, {}, 120, 125);
    loops.see(1, block, 0, 200, 125, 200);
    loops.made(1, 9);
    loops.see(1, block, 1, {}, 200, 205);
    loops.done(8, 1'100);
    const std::vector<OpenLoop> found = loops.finish();
    REQUIRE(found.size() == 1);
    CHECK(found[0].requests == 1);
    CHECK(found[0].unfinished == 1);
    CHECK(found[0].from_due.max() == 1'000);
    CHECK(found[0].from_begin.max() == 980);
    CHECK(loops.finish().empty());
}

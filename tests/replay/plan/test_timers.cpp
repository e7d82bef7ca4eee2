// SPDX-License-Identifier: MIT
// Time-outs of event loops that ran out end with their timer, however long the waits before them took.
#include "replay/plan/timers.h"

#include <doctest/doctest.h>

#include "replay/plan/plan.h"
#include "replay/run/runner.h"
#include "tests/replay/job_builder.h"
#include "tests/replay/predicted_ms.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// A loop that has a timer at 101 ms, waits from 1 ms on, and is woken in between by a thread that has read for 40 ms.
struct Loop {
    int64_t timeout = 100, second_timeout = 60, second_result = 0;
    bool message = false;  // a second thread has read 8 KiB by 150 ms, and wakes the loop then
    bool again = false;    // then its next timer runs out, at 201 ms
    int64_t type = kWaitEpoll;
    TempDir dir{};
    JobBuilder job{dir / "job.oplog"};

    int64_t arg(int64_t ms) const { return type == kWaitEpoll ? epoll_arg(ms) : type; }
    LogReader build() {
        const ProcessId process = job.process();
        const TaskId loop = job.task(process), reader = job.task(process);
        const FileId file = job.file("/data/in");
        const HandleId h = job.handle(file);
        job.add(reader, {.kind = OpKind::open, .begin = 1, .duration = 10, .result = 3, .handle = h, .file = file});
        const uint64_t read = job.add(reader, {.kind = OpKind::pread,
                                               .begin = 1 * kMs,
                                               .duration = 40 * kMs,
                                               .result = 4096,
                                               .handle = h,
                                               .fd = 3,
                                               .size = 4096});
        const std::vector<Edge> edges{{reader, EdgeKind::wake, 100, read}};
        job.add(loop, {.kind = OpKind::wait,
                       .begin = 1 * kMs,
                       .duration = 40 * kMs,
                       .result = 1,
                       .arg = arg(timeout),
                       .edges = edges});
        job.add(loop, {.kind = OpKind::wait,
                       .begin = 41 * kMs,
                       .duration = 60 * kMs,
                       .result = second_result,
                       .arg = arg(second_timeout)});
        if (message) {
            const TaskId other = job.task(process);
            const FileId large = job.file("/data/large");
            const HandleId l = job.handle(large);
            job.add(other, {.kind = OpKind::open, .begin = 2, .duration = 10, .result = 4, .handle = l, .file = large});
            const uint64_t second = job.add(other, {.kind = OpKind::pread,
                                                    .begin = 1 * kMs,
                                                    .duration = 149 * kMs,
                                                    .result = 8192,
                                                    .handle = l,
                                                    .fd = 4,
                                                    .size = 8192});
            const std::vector<Edge> woken{{other, EdgeKind::wake, 100, second}};
            job.add(loop, {.kind = OpKind::wait,
                           .begin = 101 * kMs,
                           .duration = 49 * kMs,
                           .result = 1,
                           .arg = arg(100),
                           .edges = woken});
        }
        if (again) {
            job.add(loop, {.kind = OpKind::wait, .begin = 150 * kMs, .duration = 51 * kMs, .arg = arg(51)});
        }
        return job.finish();
    }
    /// When the loop is over if the read takes so long, ms.
    double predicted(int64_t read_ms, double scale = 1, int64_t second_ms = 149) {
        return predicted_ms(build(), {{4096, read_ms}, {8192, second_ms}}, scale);
    }
};

}  // namespace

TEST_CASE("timers: they end when they ended, whatever the storage does before") {
    for (const int64_t read_ms : {2, 40, 80}) {
        CAPTURE(read_ms);
        CHECK(Loop().predicted(read_ms) == doctest::Approx(101).epsilon(0.01));
    }
    CHECK(Loop().predicted(300) == doctest::Approx(301).epsilon(0.01));  // it is over already
    CHECK(Loop().predicted(40, 2) == doctest::Approx(202).epsilon(0.01));
}

TEST_CASE("timers: what others send ends the wait before its timer does") {
    // The device serves the second thread after the first one.
    const auto over = [](int64_t read_ms, int64_t second_ms, bool again) {
        Loop loop;
        loop.message = true;
        loop.again = again;
        return loop.predicted(read_ms, 1, second_ms);
    };
    CHECK(over(40, 109, false) == doctest::Approx(150).epsilon(0.01));
    CHECK(over(10, 60, false) == doctest::Approx(71).epsilon(0.01));
    CHECK(over(60, 300, false) == doctest::Approx(361).epsilon(0.01));
    // The timer itself stays where it was.
    for (const int64_t second_ms : {149, 60, 5}) {
        CAPTURE(second_ms);
        CHECK(over(10, second_ms, true) == doctest::Approx(201).epsilon(0.01));
    }
    CHECK(over(10, 300, true) == doctest::Approx(311).epsilon(0.01));
}

TEST_CASE("timers: the replay agrees with the prediction") {
    // Calls of the null engine take no time: without its timer, which stays at 201 ms, the loop is soon over.
    const auto took = [](bool again) {
        Loop loop;
        loop.message = true;
        loop.again = again;
        const LogReader log = loop.build();
        ReplayOptions options;
        options.engine = EngineKind::null;
        options.pace = Pace::causal;
        options.filter = OpFilter::all();
        return static_cast<double>(replay(log, options).elapsed_ns) / kMs;
    };
    CHECK(took(false) < 90);
    CHECK(took(true) >= 201);
}

TEST_CASE("timers: a wait with a time-out of its own takes as long as recorded") {
    Loop other;
    SUBCASE("it was to end at another time than the one before") { other.timeout = 500; }
    SUBCASE("the one before had no time-out") { other.timeout = -1; }
    SUBCASE("logs that do not say what the time-outs were") { other.timeout = other.second_timeout = -1; }
    SUBCASE("no event loop's") { other.type = kWaitPoll; }
    SUBCASE("it did not run out") { other.second_result = 1; }
    CHECK(other.predicted(80) == doctest::Approx(141).epsilon(0.01));
}

TEST_CASE("timers: one after the other, of one task and the next") {
    Timers timers;
    const auto wait = [&](uint64_t op, int64_t begin_ms, int64_t timeout, int64_t took_ms, int64_t result) {
        timers.see(op, OpKind::wait, epoll_arg(timeout), result, begin_ms * kMs, took_ms * kMs);
    };
    wait(0, 0, 50, 20, 1);
    wait(1, 20, 30, 10, 1);
    wait(2, 30, 21, 21, 0);  // time-outs are rounded up
    wait(3, 51, 10, 10, 0);  // nothing came before
    wait(5, 61, 40, 10, 1);
    timers.see(6, OpKind::pread, 0, 4096, 71 * kMs, 1 * kMs);
    wait(7, 72, 29, 29, 0);
    std::vector<Timer> found = timers.take();
    REQUIRE(found.size() == 3);
    CHECK(found[0].armed == 0);
    CHECK(found[0].op == 2);
    CHECK(found[0].after_ns == 51 * kMs);
    CHECK(found[1].armed == 3);
    CHECK(found[1].op == 3);
    CHECK(found[1].after_ns == 10 * kMs);
    CHECK(found[2].armed == 5);
    CHECK(found[2].op == 7);
    CHECK(found[2].after_ns == 40 * kMs);
    wait(1, 20, 30, 30, 0);  // none of its waits was ended by something else: no event loop with timers
    CHECK(timers.take().empty());
    wait(0, 0, 50, 20, 1);
    CHECK(timers.take().empty());
    wait(1, 20, 30, 30, 0);  // of another task
    CHECK(timers.take().empty());
    wait(0, 0, INT64_MAX, 20, 1);
    wait(1, 20, INT64_MAX, 20, 0);
    CHECK(timers.take().empty());
}

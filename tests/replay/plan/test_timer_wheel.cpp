// SPDX-License-Identifier: MIT
// Time-outs that come from how a runtime keeps its timers are over at once; a job's own timers stay.
#include "replay/plan/timer_wheel.h"

#include <doctest/doctest.h>

#include "replay/plan/plan.h"
#include "replay/run/runner.h"
#include "tests/replay/job_builder.h"
#include "tests/replay/predicted_ms.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// A thread reads 8 times, for 150 ms each, and wakes a worker, which waits for it with time-outs until the next slot
/// of 64 ms, 10 ms after a multiple of it.
struct Worker {
    int64_t slot = 64;
    int64_t off = 0;        // the n-th time-out ends that much, times n, later
    bool reads = false;     // the worker, after each of them
    bool computes = false;  // for a millisecond, likewise
    bool woken = true;
    int64_t own_timers = 0;  // of its last time-outs, so many end 20 ms after a slot begins
    TempDir dir{};

    LogReader build() const {
        JobBuilder job{dir / "job.oplog"};
        const ProcessId process = job.process();
        const TaskId worker = job.task(process), reader = job.task(process);
        const FileId file = job.file("/data/in");
        const HandleId h = job.handle(file);
        job.add(reader, {.kind = OpKind::open, .begin = 1, .duration = 10, .result = 3, .handle = h, .file = file});
        int64_t now = 1 * kMs, number = 0;
        for (int64_t turn = 0; turn < 8; ++turn) {
            const int64_t done = (turn + 1) * 150 * kMs + kMs;
            const uint64_t read = job.add(reader, {.kind = OpKind::pread,
                                                   .begin = done - 150 * kMs,
                                                   .duration = 150 * kMs,
                                                   .result = 4096,
                                                   .handle = h,
                                                   .fd = 3,
                                                   .offset = turn * 4096,
                                                   .size = 4096});
            for (;;) {
                const int64_t own = own_timers > turn ? 20 * kMs : 0;
                int64_t end = (now / (slot * kMs) + 1) * slot * kMs + 10 * kMs + off * number * kMs + own;
                end -= end - now > slot * kMs ? slot * kMs : 0;
                if (end + 5 * kMs > done || end - now < 2 * kMs) {
                    break;
                }
                const int64_t timeout = (end - now) / kMs;
                job.add(worker, {.kind = OpKind::wait, .begin = now, .duration = end - now, .arg = epoll_arg(timeout)});
                const int64_t computed = computes ? kMs : 20'000;
                job.add(worker, {.kind = OpKind::compute, .begin = end, .duration = computed});
                now = end + computed;
                if (reads) {
                    job.add(worker, {.kind = OpKind::pread,
                                     .begin = now,
                                     .duration = 10'000,
                                     .result = 1,
                                     .handle = h,
                                     .fd = 3,
                                     .size = 1});
                    now += 10'000;
                }
                ++number;
            }
            std::vector<Edge> edges;
            if (woken) {
                edges.push_back({reader, EdgeKind::wake, 100, read});
            }
            job.add(worker, {.kind = OpKind::wait,
                             .begin = now,
                             .duration = done - now,
                             .result = 1,
                             .arg = epoll_arg(60),
                             .edges = edges});
            now = done;
        }
        return job.finish();
    }
    uint64_t joined() const {
        const LogReader log = build();
        return make_plan(log, OpFilter::all(), PathMap{}).counted(Count::waits_joined);
    }
    /// Where the reads take so long, ms.
    double predicted(int64_t read_ms) const { return predicted_ms(build(), {{4096, read_ms}}); }
};

}  // namespace

TEST_CASE("timer wheel: time-outs at the begin of a slot are over at once") {
    const Worker worker;
    CHECK(worker.joined() == 19);  // slots that begin in 8 times 150 ms, but for the last ms of each wait
    CHECK(worker.predicted(150) == doctest::Approx(1201).epsilon(0.01));
    CHECK(worker.predicted(2) < 30);
}

TEST_CASE("timer wheel: the replay agrees with the prediction") {
    const LogReader log = Worker().build();
    ReplayOptions options;
    options.engine = EngineKind::null;
    options.pace = Pace::causal;
    options.filter = OpFilter::all();
    CHECK(static_cast<double>(replay(log, options).elapsed_ns) / kMs < 60);
}

TEST_CASE("timer wheel: a timer on the way to its end does not hide the others") {
    Worker worker;
    worker.own_timers = 1;
    CHECK(worker.joined() > 8);
}

TEST_CASE("timer wheel: what is a timer of the job's stays") {
    Worker worker;
    SUBCASE("its time-outs end at all moments") { worker.off = 3; }
    SUBCASE("in slots of another length") { worker.slot = 100; }
    SUBCASE("it reads after each of them") { worker.reads = true; }
    SUBCASE("it computes after each of them") { worker.computes = true; }
    SUBCASE("nobody ends the waits after them") { worker.woken = false; }
    SUBCASE("every fourth one ends at another moment") { worker.own_timers = 3; }
    CHECK(worker.joined() == 0);
}

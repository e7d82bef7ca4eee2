// SPDX-License-Identifier: MIT
// When an op begins and ends: with the calls that it is made of, whatever the engine does around them.
#include <doctest/doctest.h>
#include <linux/io_uring.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "replay/run/task_loop.h"
#include "tests/replay/job_builder.h"
#include "tests/replay/run/owned_clock.h"
#include "tests/support.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

void spin(int64_t ns) {
    const int64_t until = monotonic_ns() + ns;
    while (monotonic_ns() < until) {
        spin_pause();
    }
}

/// Takes `kAround` before and after each call.
class SlowEngine {
public:
    static constexpr int64_t kAround = 3 * kMs;
    static bool before(const OpBlock&, size_t) { return false; }
    static int64_t submit(const OpBlock& b, size_t i) {
        spin(kAround);
        sys::call(SYS_getppid);
        spin(kAround);
        return b.result[i];
    }
};

/// Its requests were done at tick `kDone`, before the task asks for their results.
struct EarlyEngine {
    static constexpr uint64_t kDone = 7;
    static bool before(const OpBlock&, size_t) { return false; }
    static int64_t submit(const OpBlock& b, size_t i) {
        if (static_cast<OpKind>(b.kind[i]) == OpKind::uring_complete) {
            sys::call_ticks.left = kDone;
        }
        return b.result[i];
    }
    static size_t complete(std::span<Completion>, bool) { return 0; }
};

/// Puts requests in line, and hands them over by a call.
struct LineEngine {
    static constexpr int64_t kInLine = 400, kCall = 3'000;  // ns that it takes
    static bool before(const OpBlock&, size_t) { return false; }
    static int64_t submit(const OpBlock& b, size_t i) {
        if (static_cast<OpKind>(b.kind[i]) == OpKind::uring_submit) {
            OwnedClock::now += kInLine;
        } else {
            sys::call_ticks.entered = OwnedClock::ticks();
            OwnedClock::now += kCall;
            sys::call_ticks.left = OwnedClock::ticks();
        }
        return b.result[i];
    }
};

struct Times {
    std::vector<int64_t> took, apart;  // ns; least first
};

template <class Pace>
Times run(const Plan& plan, Pace& pace, SharedRun& shared) {
    SlowEngine engine;
    sys::call_ticks.wanted = true;
    TaskLoop<SlowEngine, Pace> loop(plan, shared, 1, engine, pace, nullptr, 0);
    OpBlock block;
    plan.log->decode(plan.tasks[1].blocks[0], block);
    CHECK(loop.block(block));
    sys::call_ticks = {};
    Times out;
    const double tick_ns = shared.control().tick_ns;
    const auto ns = [&](uint64_t from, uint64_t to) {
        return static_cast<int64_t>(static_cast<double>(static_cast<int64_t>(to - from)) * tick_ns);
    };
    for (size_t i = 0; i < block.count(); ++i) {
        const SpoolRow* const row = shared.spool(i);
        out.took.push_back(ns(row->begin, row->end));
        if (i > 0) {
            out.apart.push_back(ns(row[-1].begin, row->begin));
        }
    }
    std::sort(out.took.begin(), out.took.end());
    std::sort(out.apart.begin(), out.apart.end());
    return out;
}

}  // namespace

TEST_CASE("what the engine does around a call is not the call's time, and shortens the think time after it") {
    constexpr int64_t kThink = 20 * kMs;
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId task = job.lone_task();
    for (int i = 0; i < 8; ++i) {
        job.add(task, {.kind = OpKind::fstat, .begin = i * kThink, .duration = 1'000});
    }
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    SharedRun shared(plan.tasks.size(), plan.processes.size(), 1, 0, 8, SIZE_MAX, {});
    shared.control().tick_ns = measure_tick_length_ns(take_tick_point(), 10 * kMs);
    shared.control().start_ns = monotonic_ns();
    const Speeds speeds;
    Times times;
    SUBCASE("causal") {
        CausalPace<> pace(plan, shared, task, speeds);
        times = run(plan, pace, shared);
    }
    SUBCASE("timed") {
        TimedPace<> pace(plan, shared, speeds);
        times = run(plan, pace, shared);
    }
    CHECK(times.took.front() < SlowEngine::kAround);
    // The quarter that was disturbed least; each would be longer by what is around a call.
    CHECK(times.apart[1] < kThink + SlowEngine::kAround);
}

TEST_CASE("as fast as possible: a request was done when it was done, not when its task got to the result") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId task = job.lone_task();
    job.add(task, {.kind = OpKind::uring_submit, .arg = IORING_OP_READ, .request = 1});
    job.add(task, {.kind = OpKind::uring_complete, .result = 4096, .request = 1});
    job.add(task, {.kind = OpKind::fstat});
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    SharedRun shared(plan.tasks.size(), plan.processes.size(), 1, 0, 3, SIZE_MAX, {});
    EarlyEngine engine;
    AfapPace pace;
    sys::call_ticks = {};
    TaskLoop<EarlyEngine, AfapPace> loop(plan, shared, task, engine, pace, nullptr, 0);
    OpBlock block;
    log.decode(plan.tasks[task].blocks[0], block);
    CHECK(loop.block(block));
    CHECK(shared.spool(1)->end == EarlyEngine::kDone);
    CHECK(shared.spool(2)->begin > EarlyEngine::kDone);  // the task's own time goes on
    CHECK(shared.spool(2)->end > EarlyEngine::kDone);
}

TEST_CASE("causal: to put a request in line is part of what the job computes before the call that hands it over") {
    constexpr int64_t kThink = 2'000, kStart = 5'000'000'000;
    constexpr int kTurns = 20;
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId task = job.lone_task();
    for (int i = 0; i < kTurns; ++i) {
        const int64_t at = 1'000 + i * (LineEngine::kCall + kThink);
        const auto request = static_cast<uint32_t>(i + 1);
        job.add(task, {.kind = OpKind::uring_submit, .begin = at, .arg = IORING_OP_READ, .request = request});
        job.add(task, {.kind = OpKind::uring_enter, .begin = at, .duration = LineEngine::kCall, .result = 1});
    }
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    SharedRun shared(plan.tasks.size(), plan.processes.size(), 1, 0, 2 * kTurns, SIZE_MAX, {});
    shared.control().start_ns = kStart;
    OwnedClock::late = 0;
    OwnedClock::elsewhere = 0;
    OwnedClock::now = kStart;
    LineEngine engine;
    CausalPace<OwnedClock> pace(plan, shared, task, Speeds{});
    sys::call_ticks = {};
    sys::call_ticks.wanted = true;
    TaskLoop<LineEngine, CausalPace<OwnedClock>> loop(plan, shared, task, engine, pace, nullptr, 0);
    OpBlock block;
    log.decode(plan.tasks[task].blocks[0], block);
    CHECK(loop.block(block));
    sys::call_ticks = {};
    for (size_t enter = 3; enter < 2 * kTurns; enter += 2) {
        CHECK(shared.spool(enter)->begin - shared.spool(enter - 2)->begin == LineEngine::kCall + kThink);
    }
}

TEST_CASE("the calls of an op are timed from the first to the last, and only where wanted") {
    sys::call_ticks = {};
    sys::call(SYS_getppid);
    CHECK(sys::call_ticks.entered == 0);
    CHECK(sys::call_ticks.left == 0);
    sys::call_ticks.wanted = true;
    sys::aside(SYS_getppid);
    CHECK(sys::call_ticks.entered == 0);
    CHECK(sys::call(SYS_getppid) == getppid());
    const auto first = sys::call_ticks;
    CHECK(first.entered != 0);
    CHECK(first.left >= first.entered);
    sys::call(SYS_getppid);
    CHECK(sys::call_ticks.entered == first.entered);
    CHECK(sys::call_ticks.left > first.left);
    sys::call_ticks.reset();
    CHECK(sys::call_ticks.wanted);
    CHECK(sys::call_ticks.entered == 0);
    sys::call_ticks = {};
}

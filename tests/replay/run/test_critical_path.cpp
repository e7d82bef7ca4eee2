// SPDX-License-Identifier: MIT
// What a replay added to the ops that decided how long the run took, and what waits for others hid.
#include "replay/run/critical_path.h"

#include <doctest/doctest.h>

#include "replay/run/collect.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// When an op began and ended in the run, ms; a tick is a nanosecond.
struct Ran {
    int64_t begin = 0, end = 0;
};

/// A log whose ops ran at other times than recorded.
class Finished {
public:
    explicit Finished(const LogReader& log)
        : plan_(make_plan(log, OpFilter::all(), PathMap{})),
          run_(plan_.tasks.size(), plan_.processes.size(), 1, 0,
               plan_.tasks.back().spool_first + plan_.tasks.back().ops, SIZE_MAX, {}) {
        run_.control().start_ns = kStart;
    }
    /// The ops of a task, one after the other. `spawned`: when its spawner's op began.
    void task(TaskId id, const std::vector<Ran>& ops, int64_t spawned = -1) {
        uint64_t op = 0;
        for (const Ran& each : ops) {
            *run_.spool(plan_.tasks[id].spool_first + op++) = {tick(each.begin), tick(each.end), 0};
        }
        run_.task(id).done.store(ops.size());
        if (spawned >= 0) {
            run_.task(id).spawned_tick.store(tick(spawned));
        }
    }
    double added_ms() { return collected().fidelity.added_ns / kMs; }
    /// On the critical path, ms.
    double path_ms(PathPart part) { return static_cast<double>(collected().path.of(part)) / kMs; }
    ReplayResult collected() {
        TickTimeline clock;
        clock.add({0, 0});
        clock.add({1'000'000'000'000, 1'000'000'000'000});
        ReplayOptions options;
        options.pace = Pace::causal;
        ReplayResult result;
        SharedRun& run = run_;
        std::vector<SpoolRow> kept;  // collecting overwrites results
        uint64_t rows = plan_.tasks.back().spool_first + plan_.tasks.back().ops;
        kept.assign(run.spool(0), run.spool(0) + rows);
        collect(plan_, run, options, clock, 0, result);
        std::copy(kept.begin(), kept.end(), run.spool(0));
        return result;
    }

private:
    static constexpr int64_t kStart = 5'000 * kMs;
    static uint64_t tick(int64_t ms) { return static_cast<uint64_t>(kStart + ms * kMs); }
    Plan plan_;
    SharedRun run_;
};

Op sleep(int64_t begin, int64_t ms) { return {.kind = OpKind::idle, .begin = begin * kMs, .duration = ms * kMs}; }

}  // namespace

TEST_CASE("a row of the critical path: both parts with their signs, and no more than it holds") {
    for (const int64_t added : {int64_t{0}, int64_t{100}, int64_t{-100}, 90'000 * kMs, -90'000 * kMs}) {
        for (const int64_t behind : {int64_t{0}, int64_t{300}, int64_t{-300}, 80'000 * kMs, -80'000 * kMs}) {
            for (const bool released : {false, true}) {
                const PathRow row = PathRow::unpack(PathRow{added, behind, released}.pack());
                CHECK(row.added_ns == added);
                CHECK(row.behind_ns == behind);
                CHECK(row.released == released);
            }
        }
    }
    const PathRow most = PathRow::unpack(PathRow{INT64_MAX, INT64_MIN, false}.pack());
    CHECK(most.added_ns == doctest::Approx(107'374 * kMs).epsilon(0.001));
    CHECK(most.behind_ns == doctest::Approx(-107'374 * kMs).epsilon(0.001));
}

TEST_CASE("critical path: one task, what sleeps took too long and where ops came late") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId task = job.lone_task();
    job.add(task, sleep(10, 20));
    job.add(task, sleep(30, 10));
    const LogReader log = job.finish();
    SUBCASE("in time") {
        Finished run(log);
        run.task(task, {{0, 20}, {20, 30}});
        CHECK(run.added_ms() == doctest::Approx(0));
    }
    SUBCASE("too long, and late after it") {
        Finished run(log);
        run.task(task, {{0, 27}, {31, 41}});
        // The second sleep was to end at 30: what the first one took too long is not counted again.
        CHECK(run.added_ms() == doctest::Approx(11));
    }
}

TEST_CASE("critical path: what was done until a signal came, and how long nothing else went on") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId task = job.lone_task(), killed = job.lone_task();
    const HandleId in = job.handle(job.file("/data/in"));
    job.add(task, {.kind = OpKind::compute, .begin = 10 * kMs, .duration = 30 * kMs});
    job.add(killed,
            {.kind = OpKind::pread, .begin = 10 * kMs, .duration = 20 * kMs, .result = 10, .handle = in, .size = 10});
    job.add(killed, {.kind = OpKind::exit, .begin = 30 * kMs, .duration = kMs, .result = -4, .arg = 143});
    const LogReader log = job.finish();
    Finished run(log);
    run.task(task, {{0, 30}});
    run.task(killed, {{0, 100}, {100, 101}});
    const ReplayResult result = run.collected();
    CHECK(result.path.cut_ns == 101 * kMs);
    CHECK(static_cast<double>(result.helpers.cut_ns) / kMs == doctest::Approx(71).epsilon(0.01));
    CHECK(result.helpers.cut_share == 1);  // of the data
    CHECK(result.helpers.signal == 15);
}

TEST_CASE("critical path: what another task waited for anyway adds nothing") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId slow = job.lone_task(), quick = job.lone_task();
    const uint64_t source = job.add(slow, sleep(1, 100));
    job.add(quick, sleep(1, 10));
    const std::vector<Edge> edges{{slow, EdgeKind::message, 100, source}};
    Op released{.kind = OpKind::fstat, .begin = 102 * kMs, .duration = 5 * kMs};
    released.edges = edges;
    job.add(quick, released);
    const LogReader log = job.finish();
    SUBCASE("the quick one overslept, the slow one did not") {
        Finished run(log);
        run.task(slow, {{0, 100}});
        run.task(quick, {{0, 60}, {102, 107}});
        CHECK(run.added_ms() == doctest::Approx(1));  // it was due a millisecond after the slow one
    }
    SUBCASE("the slow one overslept") {
        Finished run(log);
        run.task(slow, {{0, 140}});
        run.task(quick, {{0, 10}, {141, 146}});
        CHECK(run.added_ms() == doctest::Approx(41));
    }
}

TEST_CASE("critical path: compute counts for good, and so does a wakeup that takes long") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId source = job.lone_task(), waiter = job.lone_task();
    const uint64_t op = job.add(source, sleep(1, 100));
    const std::vector<Edge> edges{{source, EdgeKind::message, 100, op}};
    Op waits{.kind = OpKind::wait, .begin = 1 * kMs, .duration = 100 * kMs, .arg = 1};
    waits.edges = edges;
    job.add(waiter, waits);
    job.add(waiter, sleep(101, 5));
    const LogReader log = job.finish();
    Finished run(log);
    run.task(source, {{0, 100}});
    run.task(waiter, {{0, 131}, {131, 138}});
    CHECK(run.added_ms() == doctest::Approx(30 + 2));  // a millisecond is what waking takes
}

TEST_CASE("critical path: starting threads is the replay's own work") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const ProcessId process = job.process();
    const TaskId first = job.task(process), second = job.task(process), third = job.task(process);
    for (const TaskId task : {second, third}) {
        Op start{.kind = OpKind::spawn, .begin = (task == second ? 1 : 2) * kMs, .duration = kMs / 10, .result = 1};
        start.peer = task;
        job.add(first, start);
    }
    job.add(second, sleep(2, 3));
    job.add(third, sleep(3, 3));
    const LogReader log = job.finish();
    Finished run(log);
    run.task(first, {{0, 50}, {50, 120}});
    run.task(second, {{1, 4}}, 0);
    run.task(third, {{51, 54}}, 50);
    // The run ends with the second start: both took longer.
    CHECK(run.added_ms() == doctest::Approx(119.8));

    Finished shorter(log);
    shorter.task(first, {{0, 50}, {50, 52}});
    shorter.task(second, {{1, 4}}, 0);
    shorter.task(third, {{51, 154}}, 50);
    // Here the third task ends it: it was there from the begin of its start, after the first start.
    CHECK(shorter.added_ms() == doctest::Approx(149.9));
}

TEST_CASE("critical path: its time by what it went to, which adds up to the elapsed time") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId source = job.lone_task(), waiter = job.lone_task();
    const HandleId h = job.handle(job.file("/data/in"));
    job.add(source, {.kind = OpKind::open,
                     .begin = 0,
                     .duration = 1 * kMs / 100,
                     .result = 3,
                     .handle = h,
                     .file = job.file("/data/in")});
    const auto read = [&](int64_t begin, int64_t ms) {
        return Op{.kind = OpKind::pread,
                  .begin = begin * kMs,
                  .duration = ms * kMs,
                  .result = 4096,
                  .handle = h,
                  .fd = 3,
                  .size = 4096};
    };
    const uint64_t op = job.add(source, read(1, 49));
    job.add(source, read(50, 100));  // nobody waits for it
    const std::vector<Edge> edges{{source, EdgeKind::message, 100, op}};
    job.add(waiter, {.kind = OpKind::wait, .begin = 1 * kMs, .duration = 49 * kMs, .arg = 1, .edges = edges});
    job.add(waiter, {.kind = OpKind::compute, .begin = 50 * kMs, .duration = 20 * kMs});
    job.add(waiter, {.kind = OpKind::wait, .begin = 70 * kMs, .duration = 10 * kMs, .arg = 0});
    job.add(waiter, {.kind = OpKind::wait, .begin = 80 * kMs, .duration = 90 * kMs, .arg = kWaitSleep});
    const LogReader log = job.finish();
    Finished run(log);
    run.task(source, {{0, 0}, {1, 60}, {60, 150}});
    run.task(waiter, {{1, 61}, {61, 81}, {82, 92}, {92, 182}});
    CHECK(run.path_ms(PathPart::device) == doctest::Approx(59));
    CHECK(run.path_ms(PathPart::compute) == doctest::Approx(20));
    CHECK(run.path_ms(PathPart::unexplained) == doctest::Approx(10));
    CHECK(run.path_ms(PathPart::asleep) == doctest::Approx(90));
    CHECK(run.path_ms(PathPart::call) == doctest::Approx(1 + 1 + 1));  // before the read, the hand-over, between ops
    const ReplayResult result = run.collected();
    CHECK(result.path.sum() == result.elapsed_ns);
}

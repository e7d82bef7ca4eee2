// SPDX-License-Identifier: MIT
// Time to the nanosecond: small jobs, whose instants are worked out by hand, under the paces, the collector and the
// prediction.
#include <doctest/doctest.h>

#include "tests/replay/run/owned_clock.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

using enum OpKind;

/// In us.
Instants us(Instants instants) {
    for (Instant& one : instants) {
        one.begin *= kUs;
        one.end *= kUs;
    }
    return instants;
}

/// Times in us.
Op op(OpKind kind, int64_t begin, int64_t duration) {
    return {.kind = kind, .begin = 1'000 * kUs + begin * kUs, .duration = duration * kUs};
}
Op compute_op(int64_t begin, int64_t duration) {
    Op out = op(compute, begin, duration);
    out.flags = kComputeWorks;
    return out;
}
Op submit(int64_t begin, int64_t duration, int64_t busy, int64_t stream = 0) {
    Op out = op(gpu_submit, begin, duration);
    out.size = busy * kUs;
    out.flags = stream;
    return out;
}

/// A reader, task 1, whose stat took 10 us in the recording, and another task that then went on.
struct WaitingJob : OwnedJob {
    TaskId source = job.lone_task(), waiter = job.lone_task();

    WaitingJob() {
        job.add(source, op(stat, 500, 10));
        job.add(waiter, op(fstat, 0, 10));
        const std::vector<Edge> edges{{source, EdgeKind::message, 100, 0}};
        Op released = op(fstat, 515, 10);
        released.edges = edges;
        job.add(waiter, released);
        job.add(waiter, compute_op(530, 200));
        job.add(waiter, op(fstat, 740, 10));
    }
};

}  // namespace

TEST_CASE_FIXTURE(WaitingJob, "owned clock: as recorded, where everything takes as long as it did") {
    storage.stat_ns = 10 * kUs;
    const Instants expected = us({{fstat, 0, 10}, {fstat, 515, 525}, {compute, 530, 730}, {fstat, 740, 750}});
    for (const Pace pace : {Pace::causal, Pace::timed}) {
        const Run run = replay(pace);
        CHECK(run.tasks[source] == us({{stat, 500, 510}}));
        CHECK(run.tasks[waiter] == expected);
        CHECK(run.result.lateness.max() == 0);
        CHECK(run.result.lateness.count() == 5);
        CHECK(run.result.elapsed_ns == 750 * kUs);
        CHECK(run.result.recorded_ns == 750 * kUs);
        CHECK(run.result.edge_waits == 0);
    }
    CHECK(predicted()[waiter] == expected);
}

TEST_CASE_FIXTURE(WaitingJob, "owned clock: who waits for a slower source goes on from when it was released") {
    storage.stat_ns = 3'000 * kUs;
    const Instants released = us({{fstat, 0, 10}, {fstat, 3500, 3510}, {compute, 3515, 3715}, {fstat, 3725, 3735}});
    SUBCASE("causal: all that follows is later, and nothing was late") {
        const Run run = replay(Pace::causal, waiter);
        CHECK(run.tasks[source] == us({{stat, 500, 3500}}));
        CHECK(run.tasks[waiter] == released);
        CHECK(run.result.lateness.max() == 0);
        CHECK(run.result.lateness.count() == 5);
        CHECK(run.result.edge_waits == 1);
    }
    SUBCASE("predicted: the same") {
        const std::vector<Instants> tasks = predicted();
        CHECK(tasks[source] == us({{stat, 500, 3500}}));
        CHECK(tasks[waiter] == released);
    }
    SUBCASE("timed: what follows is at its recorded time or at once, and late") {
        const Run run = replay(Pace::timed, waiter);
        CHECK(run.tasks[waiter] ==
              us({{fstat, 0, 10}, {fstat, 3500, 3510}, {compute, 3510, 3510}, {fstat, 3510, 3520}}));
        CHECK(run.result.lateness.max() == (3500 - 515) * kUs);
        CHECK(run.result.lateness.sum() == (3500 - 515 + 3510 - 530 + 3510 - 740) * kUs);
    }
}

TEST_CASE_FIXTURE(OwnedJob, "owned clock: an op that is itself a wait ends when its source does") {
    const TaskId source = job.lone_task(), waiter = job.lone_task();
    job.add(source, op(stat, 500, 10));
    Op waits = op(wait, 100, 412);
    waits.arg = 1;
    const std::vector<Edge> edges{{source, EdgeKind::message, 100, 0}};
    waits.edges = edges;
    job.add(waiter, op(fstat, 0, 10));
    job.add(waiter, waits);
    job.add(waiter, op(fstat, 520, 10));
    storage.stat_ns = 40 * kUs;
    const Instants expected = us({{fstat, 0, 10}, {wait, 100, 540}, {fstat, 548, 558}});
    const Run run = replay(Pace::causal, waiter);
    CHECK(run.tasks[waiter] == expected);
    CHECK(run.result.lateness.max() == 0);
    CHECK(predicted()[waiter] == expected);
}

TEST_CASE_FIXTURE(OwnedJob,
                  "owned clock: an accelerator is busy for as long as recorded, one piece of work after another") {
    const TaskId task = job.lone_task();
    job.add(task, submit(0, 10, 10'000));
    job.add(task, submit(20, 10, 5'000));
    job.add(task, submit(40, 10, 1'000, 7));  // another stream
    job.add(task, op(gpu_wait, 50, 14'950));
    job.add(task, op(fstat, 15'050, 10));
    SUBCASE("as recorded") {
        const Run timed = replay(Pace::timed);
        CHECK(timed.tasks[task] == us({{gpu_submit, 0, 0},
                                       {gpu_submit, 20, 20},
                                       {gpu_submit, 40, 40},
                                       {gpu_wait, 50, 15'000},
                                       {fstat, 15'050, 15'060}}));
        CHECK(timed.result.lateness.max() == 0);
        const Instants expected = us({{gpu_submit, 0, 10},
                                      {gpu_submit, 20, 30},
                                      {gpu_submit, 40, 50},
                                      {gpu_wait, 50, 15'000},
                                      {fstat, 15'050, 15'060}});
        CHECK(replay(Pace::causal).tasks[task] == expected);
        CHECK(predicted()[task] == expected);
    }
    SUBCASE("every time three times as long") {
        speeds.time_scale = 3.0;
        CHECK(replay(Pace::timed).tasks[task] == us({{gpu_submit, 0, 0},
                                                     {gpu_submit, 60, 60},
                                                     {gpu_submit, 120, 120},
                                                     {gpu_wait, 150, 45'000},
                                                     {fstat, 45'150, 45'160}}));
        const Instants expected = us({{gpu_submit, 0, 30},
                                      {gpu_submit, 60, 90},
                                      {gpu_submit, 120, 150},
                                      {gpu_wait, 150, 45'000},
                                      {fstat, 45'150, 45'160}});
        CHECK(replay(Pace::causal).tasks[task] == expected);
        CHECK(predicted()[task] == expected);
    }
    SUBCASE("an accelerator that is twice as fast") {
        speeds.gpu = 2.0;
        const Instants expected = us({{gpu_submit, 0, 10},
                                      {gpu_submit, 20, 30},
                                      {gpu_submit, 40, 50},
                                      {gpu_wait, 50, 7'500},
                                      {fstat, 7'550, 7'560}});
        const Run run = replay(Pace::causal);
        CHECK(run.tasks[task] == expected);
        CHECK(run.result.lateness.max() == 0);
        CHECK(predicted()[task] == expected);
    }
}

TEST_CASE_FIXTURE(OwnedJob, "owned clock: what wakes up late is late by that, and the next op is not later for it") {
    const TaskId task = job.lone_task();
    for (int64_t i = 0; i < 4; ++i) {
        job.add(task, op(fstat, i * 100, 10));
    }
    OwnedClock::late = 7 * kUs;
    for (const Pace pace : {Pace::causal, Pace::timed}) {
        const Run run = replay(pace);
        CHECK(run.tasks[task] == us({{fstat, 0, 10}, {fstat, 107, 117}, {fstat, 207, 217}, {fstat, 307, 317}}));
        CHECK(run.result.lateness.count() == 4);
        CHECK(run.result.lateness.sum() == 3 * 7 * kUs);
        CHECK(run.result.lateness.max() == 7 * kUs);
    }
}

TEST_CASE_FIXTURE(OwnedJob, "owned clock: an accelerator does not stand still because the host wakes up late") {
    const TaskId task = job.lone_task();
    for (int64_t i = 0; i < 3; ++i) {
        job.add(task, submit(i * 400, 10, 370));
        job.add(task, op(gpu_wait, i * 400 + 10, 360));
        job.add(task, op(fstat, i * 400 + 380, 10));
    }
    OwnedClock::late = 7 * kUs;
    const Run run = replay(Pace::causal);
    CHECK(run.tasks[task] == us({{gpu_submit, 0, 17},
                                 {gpu_wait, 17, 370},
                                 {fstat, 387, 397},
                                 {gpu_submit, 407, 417},
                                 {gpu_wait, 417, 770},
                                 {fstat, 787, 797},
                                 {gpu_submit, 807, 817},
                                 {gpu_wait, 817, 1170},
                                 {fstat, 1187, 1197}}));
    CHECK(run.result.fidelity.added_ns == 7 * kUs);  // the last op is late
}

TEST_CASE_FIXTURE(OwnedJob,
                  "owned clock: a wait for what was there before it was issued carries on what it is late by") {
    // The source ends its op at 10, or where it is slow at 106, which is when the waiter gets there.
    const TaskId source = job.lone_task(), waiter = job.lone_task();
    job.add(source, op(stat, 0, 10));
    job.add(waiter, op(fstat, 0, 10));
    Op waits = op(wait, 100, 20);
    waits.arg = 1;
    const std::vector<Edge> edges{{source, EdgeKind::message, 100, 0}};
    waits.edges = edges;
    job.add(waiter, waits);
    job.add(waiter, op(idle, 120, 200));
    job.add(waiter, op(fstat, 320, 10));
    OwnedClock::late = 7 * kUs;
    int64_t over = 0;  // the wait, as its task sees it
    SUBCASE("long before") {
        storage.stat_ns = 10 * kUs;
        over = 100;
    }
    SUBCASE("while the thread was late") {
        storage.stat_ns = 106 * kUs;
        over = 106;
    }
    const Run run = replay(Pace::causal);
    CHECK(run.tasks[waiter] ==
          us({{fstat, 0, 10}, {wait, 107, 107}, {idle, 107, over + 207}, {fstat, over + 207, over + 217}}));
}

TEST_CASE_FIXTURE(OwnedJob, "owned clock: faster and slower computing") {
    const TaskId task = job.lone_task();
    job.add(task, op(fstat, 0, 10));
    job.add(task, compute_op(20, 400));
    job.add(task, op(fstat, 440, 10));
    SUBCASE("a processor twice as fast: think time, too") {
        speeds.cpu = 2.0;
        const Instants expected = us({{fstat, 0, 10}, {compute, 15, 215}, {fstat, 225, 235}});
        CHECK(replay(Pace::causal).tasks[task] == expected);
        CHECK(predicted()[task] == expected);
    }
    SUBCASE("that spins") {
        speeds.computing.policy = DelayPolicy::spin;
        OwnedClock::late = 3 * kUs;
        const Run run = replay(Pace::causal);
        CHECK(run.tasks[task] == us({{fstat, 0, 10}, {compute, 23, 423}, {fstat, 443, 453}}));
        CHECK(run.result.fidelity.computing_asked_ns == 400 * kUs);
        CHECK(run.result.fidelity.computing_took_ns == 400 * kUs);
    }
}

TEST_CASE_FIXTURE(OwnedJob, "owned clock: requests are looked for while a task computes, and while it sleeps") {
    const TaskId task = job.lone_task();
    job.add(task, op(fstat, 0, 10));
    job.add(task, compute_op(10, 400));
    Op sleep = op(wait, 410, 80);
    sleep.arg = kWaitSleep;
    job.add(task, sleep);
    job.add(task, compute_op(490, 300));
    speeds.computing.policy = DelayPolicy::spin;
    for (const Pace pace : {Pace::timed, Pace::causal}) {
        OwnedEngine::glances = 0;
        OwnedEngine::sleeps.clear();
        replay(pace);
        CHECK(OwnedEngine::glances >= 2);
        CHECK(OwnedEngine::sleeps == std::vector<int64_t>{kStart + 490 * kUs});
    }
}

TEST_CASE_FIXTURE(OwnedJob, "owned clock: how late a task is now, early or not late is 0") {
    const TaskId punctual = job.lone_task(), slow = job.lone_task();
    const FileId file = job.file("/data/in");
    job.add(punctual, op(fstat, 0, 10));
    job.add(punctual, op(fstat, 100, 10));
    job.add(slow, op(fstat, 0, 10));
    Op long_stat = op(stat, 20, 10);
    long_stat.file = file;
    job.add(slow, long_stat);
    job.add(slow, op(fstat, 50, 10));
    storage.stat_ns = 200 * kUs;
    SUBCASE("on time") {
        CHECK(replay(Pace::timed).lags == std::vector<int64_t>{0, 0, (220 - 50) * kUs});
        CHECK(replay(Pace::causal).lags == std::vector<int64_t>{0, 0, 0});  // all that follows is later
    }
    SUBCASE("woken late") {
        OwnedClock::late = 7 * kUs;
        CHECK(replay(Pace::timed).lags == std::vector<int64_t>{0, 7 * kUs, (227 - 50) * kUs});
        CHECK(replay(Pace::causal).lags == std::vector<int64_t>{0, 7 * kUs, 7 * kUs});
    }
}

TEST_CASE_FIXTURE(OwnedJob, "owned clock: delays that were asked for, and by how much they were missed") {
    const TaskId task = job.lone_task();
    job.add(task, op(fstat, 0, 10));
    Op sleep = op(wait, 20, 80);
    sleep.arg = 3;
    job.add(task, sleep);
    job.add(task, op(fstat, 110, 10));
    job.add(task, op(idle, 130, 70));
    OwnedClock::late = 4 * kUs;
    for (const Pace pace : {Pace::timed, Pace::causal}) {
        const Fidelity found = replay(pace).result.fidelity;
        CHECK(found.delays_asked_ns == (80 + 70) * kUs);
        CHECK(found.delay_error.count() == 2);
        CHECK(found.delay_error.min() == 4 * kUs);
        CHECK(found.delay_error.max() == 4 * kUs);
    }
    speeds.time_scale = 2.0;
    const Fidelity found = replay(Pace::timed).result.fidelity;
    CHECK(found.delays_asked_ns == 2 * (80 + 70) * kUs);
    CHECK(found.delay_error.sum() == 2 * 4 * kUs);
}

TEST_CASE_FIXTURE(OwnedJob, "owned clock: a filter leaves out files, and no wait for others") {
    const TaskId source = job.lone_task(), waiter = job.lone_task();
    job.add(source, op(stat, 500, 10));
    const FileId fifo = job.file("/fifo", Origin::existed, Role::dataset, FileType::fifo);
    const HandleId handle = job.handle(fifo);
    const std::vector<Edge> edges{{source, EdgeKind::message, 100, 0}};
    Op received = op(receive, 100, 412), looked = op(stat, 20, 10);
    received.handle = handle;
    received.fd = 3;
    received.size = 1;
    received.edges = edges;
    looked.file = fifo;
    job.add(waiter, looked);
    job.add(waiter, received);
    job.add(waiter, op(fstat, 520, 10));
    filter = OpFilter::from_words({}, {"/fifo"});
    for (const Pace pace : {Pace::causal, Pace::timed}) {
        const Run run = replay(pace);
        REQUIRE(run.tasks[waiter].size() == 2);
        CHECK(run.tasks[waiter][0].kind == receive);
        CHECK(run.tasks[waiter][1].kind == fstat);
        CHECK(run.result.left_out[static_cast<size_t>(LeftOut::filter)] == 1);
    }
}

TEST_CASE_FIXTURE(OwnedJob, "owned clock: what a stop keeps from being issued is counted as that") {
    const TaskId first = job.lone_task(), second = job.lone_task(), third = job.lone_task();
    job.add(first, op(stat, 0, 10));
    const std::vector<Edge> edges{{first, EdgeKind::message, 100, 0}};
    Op waits = op(wait, 0, 12), starts = op(spawn, 0, 10);
    waits.arg = 1;
    waits.edges = edges;
    job.add(second, waits);
    starts.peer = second;
    job.add(third, starts);
    job.add(third, op(fstat, 20, 10));
    stopped = true;
    for (const Pace pace : {Pace::causal, Pace::timed}) {
        const Run run = replay(pace);
        CHECK(run.result.ops == 0);
        CHECK(run.result.left_out[static_cast<size_t>(LeftOut::stopped)] == 4);
        CHECK(run.result.left_out[static_cast<size_t>(LeftOut::filter)] == 0);
    }
}

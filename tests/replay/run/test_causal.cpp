// SPDX-License-Identifier: MIT
// Pace `causal`: waits take as long as what they wait for takes here, everything else its own time.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "formats/support/error.h"
#include "replay/plan/causal_step.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;
namespace fs = std::filesystem;

namespace {

struct CausalJob {
    TempDir dir;
    fs::path root = dir.path() / "root";
    JobBuilder job{dir.path() / "job.oplog"};

    CausalJob() {
        fs::create_directories(root / "data");
        write_file(root / "data/in", std::string(4096, 'x'));
    }
    ReplayResult run(Speeds speeds = {}, OpFilter filter = OpFilter::all()) {
        const LogReader reader = job.finish();
        ReplayOptions options = afap(root);
        options.pace = Pace::causal;
        options.speeds = speeds;
        options.filter = std::move(filter);
        ReplayResult result = replay(reader, options);
        INFO(describe(result));
        CHECK(result.ended == "complete");
        CHECK(result.mismatches == 0);
        CHECK(result.lateness.count() == result.ops);
        return result;
    }
};

}  // namespace

TEST_CASE("causal clock: a call without a recorded duration takes its time from the gap after it") {
    CausalClock clock(0, 0, 1.0, 1.0);
    CHECK(clock.due(10) == 10);
    clock.performed_untimed(10, 10, 10, 14);
    CHECK(clock.due(20) == 20);
    clock.performed_untimed(20, 20, 20, 50);  // longer than the gap
    CHECK(clock.due(30) == 50);
    clock.performed_untimed(30, 50, 52, 60);  // issued late by 2
    CHECK(clock.due(31) == 58);
    CHECK(clock.due(40) == 60);
    clock.performed(45, 60, 60, 65);
    CHECK(clock.due(50) == 70);
}

TEST_CASE("the clock of a task: think time counts from where the op before it ended") {
    CausalClock clock(1'000, 50, 1.0, 1.0);
    CHECK(clock.due(70) == 1'020);
    // Recorded 70..80; here issued on time and over much later.
    clock.performed(80, 1'020, 1'020, 5'000);
    CHECK(clock.due(90) == 5'010);
    SUBCASE("what was late is carried") {
        clock.performed(95, 5'010, 5'013, 5'020);
        CHECK(clock.due(105) == 5'027);
    }
    SUBCASE("an op that stands for its time") {
        CHECK(clock.stood(90, 190, 5'010, true) == 5'110);
        CHECK(clock.due(190) == 5'110);
    }
    SUBCASE("a wait that was over early") {
        clock.waited(900, 5'011);
        CHECK(clock.due(900) == 5'011);
        CHECK(clock.due(910) == 5'021);
    }
    SUBCASE("an op that began before the one before it ended has no think time") { CHECK(clock.due(10) == 5'000); }
    SUBCASE("what is left out leaves its time behind") {
        clock.left_out(90, 170);
        CHECK(clock.due(180) == 5'100);
    }
}

TEST_CASE("the clock of a task: where computing has ops of its own, more distance is run-queue time") {
    CausalClock clock(10'000, 0, 1.0, 1.0, {.most = 1'000, .recorder = 0});
    CHECK(clock.due(600) == 10'600);
    CHECK(clock.due(50'000) == 11'000);
    clock.left_out(50'000, 53'000);
    CHECK(clock.due(90'000) == 15'000);
    clock.left_out(90'000, 90'010);
    CHECK(clock.due(90'020) == 15'020);
    clock.waited(100'000, 20'000);
    CHECK(clock.due(100'500) == 20'500);
}

TEST_CASE("the clock of a task: what follows computing is no think time where computing has ops of its own") {
    CausalClock bounded(10'000, 0, 1.0, 1.0, {.most = 1'000, .recorder = 100});
    bounded.stood(0, 5'000, 10'000, true);
    bounded.computed();
    CHECK(bounded.due(5'900) == 15'000);
    bounded.performed(6'000, 15'000, 15'000, 15'100);
    CHECK(bounded.due(6'500) == 15'500);
    CausalClock whole(10'000, 0, 1.0, 1.0);
    whole.stood(0, 5'000, 10'000, true);
    whole.computed();
    CHECK(whole.due(5'900) == 15'900);
}

TEST_CASE("the clock of a task: what the recorder took is no think time") {
    CausalClock clock(10'000, 0, 1.0, 1.0, {.most = 1'000, .recorder = 300});
    CHECK(clock.due(200) == 10'000);
    CHECK(clock.due(600) == 10'300);
    CHECK(clock.due(5'000) == 11'000);
    Header header;
    header.source = "capture";
    header.extra["capture.call_gap_ns"] = "370";
    CHECK(think_gap(header, false).recorder == 370);
    CHECK(think_gap(header, false).most == 1'000);
    CHECK(think_gap(header, true).most == INT64_MAX);
    header.extra["capture.call_gap_ns"] = "-5";
    CHECK(think_gap(header, false).recorder == 0);
    header.source = "strace";
    CHECK(think_gap(header, false).most == INT64_MAX);
}

TEST_CASE("the clock of a task: before its first op it may have slept where nobody saw it begin") {
    CausalClock clock(10'000, 0, 1.0, 1.0, {.most = 1'000, .recorder = 0, .first = INT64_MAX});
    CHECK(clock.due(300'000'000) == 300'010'000);
    SUBCASE("its first op is performed") { clock.performed(300'000'100, 300'010'000, 300'010'000, 300'010'100); }
    SUBCASE("its first op is left out") {
        clock.left_out(300'000'000, 300'000'100);
        CHECK(clock.due(300'000'100) == 300'010'100);
    }
    CHECK(clock.due(900'000'000) == 300'011'100);
}

TEST_CASE("the clock of a task: times beyond all bounds stay long") {
    CausalClock clock(1'000'000, INT64_MIN, 1.0, 1.0);
    CHECK(clock.due(INT64_MAX) == INT64_MAX);
    clock.left_out(INT64_MIN, INT64_MAX);
    CHECK(clock.due(INT64_MAX) == INT64_MAX);
    CHECK(clock.stood(0, INT64_MAX, 5, true) == INT64_MAX);
    CHECK(clock.due(INT64_MIN) == INT64_MAX);
    CHECK(CausalClock(0, 0, 1e6, 1e6).due(INT64_MAX / 2) > INT64_MAX / 2);
    CHECK(CausalClock(7, INT64_MAX, 1.0, 1.0).due(INT64_MIN) == 7);
}

TEST_CASE("the clock of a task: scaled") {
    CausalClock clock(0, 0, 0.5, 0.25);
    CHECK(clock.due(100) == 25);
    CHECK(clock.stood(100, 300, 50, false) == 150);
    CHECK(CausalClock(0, 0, 0.5, 0.25).stood(100, 300, 50, true) == 100);
    clock.performed(400, 150, 150, 250);  // a call takes what it takes
    CHECK(clock.due(420) == 255);
}

TEST_CASE_FIXTURE(CausalJob,
                  "causal: who waits for a message goes on when it is issued, while the call still takes its time") {
    const ProcessId process = job.process();
    const TaskId sender = job.task(process), receiver = job.task(process);
    const Edge edge[] = {{sender, EdgeKind::message, 100, 0}};
    job.add(sender, {.kind = OpKind::send, .begin = kMs, .duration = 300 * kMs, .size = 1});
    job.add(receiver, {.kind = OpKind::receive, .begin = kMs, .duration = 400 * kMs, .size = 1, .edges = edge});
    const LogReader reader = job.finish();
    ReplayOptions options = afap(root);
    options.pace = Pace::causal;
    options.output = dir.path() / "run.oplog";
    CHECK(replay(reader, options).ended == "complete");
    int64_t sent = 0, received = 0;
    const LogReader run(options.output);
    run.for_each(sender, [&](const Op& op, uint64_t) { sent = op.end(); });
    run.for_each(receiver, [&](const Op& op, uint64_t) { received = op.end(); });
    CHECK(received < sent);
}

// Recorded where each read took 200 ms, and so did each of the consumer's waits.
TEST_CASE_FIXTURE(CausalJob, "causal: faster storage shortens the waits for it") {
    const ProcessId process = job.process();
    const TaskId loader = job.task(process), trainer = job.task(process);
    const HandleId h = job.handle(job.file("/data/in"));
    job.add(loader, {.kind = OpKind::open, .begin = 1'000, .result = 3, .handle = h, .file = job.file("/data/in")});
    std::vector<Edge> edges(1);
    for (int64_t step = 0; step < 10; ++step) {
        const int64_t from = kMs + step * 201 * kMs;
        const uint64_t read = job.add(loader, {.kind = OpKind::pread,
                                               .begin = from,
                                               .duration = 200 * kMs,
                                               .result = 100,
                                               .handle = h,
                                               .fd = 3,
                                               .size = 100});
        edges[0] = {loader, EdgeKind::message, 100, read};
        job.add(trainer, {.kind = OpKind::wait, .begin = from, .duration = 200 * kMs, .arg = 2, .edges = edges});
        job.add(trainer, {.kind = OpKind::compute, .begin = from + 200 * kMs, .duration = 1 * kMs});
    }
    const ReplayResult result = run();
    CHECK(result.recorded_ns > 2000 * kMs);
    CHECK(result.elapsed_ns > 10 * kMs);    // the compute is still there
    CHECK(result.elapsed_ns < 1000 * kMs);  // the waits are not
    CHECK(result.edges_by_kind[static_cast<size_t>(EdgeKind::message)] == 10);
    CHECK(result.unexplained_wait_share == 0.0);
}

TEST_CASE_FIXTURE(CausalJob, "causal: a wait without a known cause takes its recorded time") {
    const TaskId task = job.lone_task();
    job.add(task, {.kind = OpKind::wait, .begin = 1'000, .duration = 60 * kMs, .arg = 3});
    job.add(task, {.kind = OpKind::receive, .begin = 61 * kMs, .duration = 40 * kMs, .result = 1});
    job.add(task, {.kind = OpKind::marker, .begin = 102 * kMs});
    const ReplayResult result = run();
    CHECK(result.elapsed_ns >= 100 * kMs);
    CHECK(result.unexplained_wait_share == 0.4);  // the sleep is its own cause
}

TEST_CASE_FIXTURE(CausalJob, "causal: a job that only sleeps has no wait without a known cause") {
    const TaskId task = job.lone_task();
    job.add(task, {.kind = OpKind::wait, .begin = 1'000, .duration = 10 * kMs, .arg = kWaitSleep});
    job.add(task, {.kind = OpKind::marker, .begin = 11 * kMs});
    CHECK(run().unexplained_wait_share == 0.0);
}

// Two waits for the same op: the second edge says nothing new and is dropped, the wait is explained all the same.
TEST_CASE_FIXTURE(CausalJob, "causal: a wait whose edge is implied by an earlier one is explained") {
    const ProcessId process = job.process();
    const TaskId source = job.task(process), waiter = job.task(process);
    const uint64_t done = job.add(source, {.kind = OpKind::compute, .begin = 1'000, .duration = kMs});
    std::vector<Edge> edges{{source, EdgeKind::wake, 100, done}};
    job.add(waiter, {.kind = OpKind::wait, .begin = 2'000, .duration = 800 * kMs, .arg = 1, .edges = edges});
    job.add(waiter, {.kind = OpKind::wait, .begin = 801 * kMs, .duration = 800 * kMs, .arg = 1, .edges = edges});
    const ReplayResult result = run();
    CHECK(result.elapsed_ns < 800 * kMs);
}

TEST_CASE_FIXTURE(CausalJob, "causal: what the filter leaves out leaves its time behind") {
    const TaskId task = job.lone_task();
    const FileId library = job.file("/usr/lib/x.so", Origin::existed, Role::program);
    const HandleId h = job.handle(library);
    job.add(task, {.kind = OpKind::marker, .begin = 1'000, .duration = 1'000});
    job.add(task,
            {.kind = OpKind::open, .begin = 3'000, .duration = 50 * kMs, .result = 3, .handle = h, .file = library});
    job.add(task, {.kind = OpKind::marker, .begin = 60 * kMs, .duration = 1'000});
    const ReplayResult result = run({}, OpFilter::from_words({}, {}));
    CHECK(result.ops == 2);
    CHECK(result.elapsed_ns >= 59 * kMs);
}

TEST_CASE_FIXTURE(CausalJob, "causal: a spawned task begins as long after its spawner's op as recorded") {
    const ProcessId parent = job.process(), child = job.process(parent);
    const TaskId spawner = job.task(parent), spawned = job.task(child);
    job.add(spawner, {.kind = OpKind::wait, .begin = 1'000, .duration = 20 * kMs, .arg = 3});
    job.add(spawner, {.kind = OpKind::spawn, .begin = 21 * kMs, .duration = 100'000, .result = 1, .peer = spawned});
    job.add(spawned, {.kind = OpKind::marker, .begin = 51 * kMs, .duration = 1'000});
    const ReplayResult result = run();
    CHECK(result.processes == 2);
    CHECK(result.elapsed_ns >= 50 * kMs);
}

TEST_CASE_FIXTURE(CausalJob, "causal: ops that overlap in one task follow on each other, and are counted") {
    const TaskId task = job.lone_task();
    job.add(task, {.kind = OpKind::compute, .begin = 1'000, .duration = 30 * kMs});
    job.add(task, {.kind = OpKind::compute, .begin = 20 * kMs, .duration = 30 * kMs});
    job.add(task, {.kind = OpKind::marker, .begin = 50 * kMs - 5'000});  // within rounding
    const ReplayResult result = run();
    CHECK(result.elapsed_ns >= 60 * kMs);
    const auto at = std::find_if(result.counters.begin(), result.counters.end(),
                                 [](const Counter& each) { return each.name == "gaps_negative"; });
    REQUIRE(at != result.counters.end());
    CHECK(at->value == 1);
}

// As where a recorder attaches to a running job: the log begins while this thread sleeps.
TEST_CASE_FIXTURE(CausalJob, "causal: a thread that was there before the recording begins with its first op") {
    job.writer().header().source = "capture";
    const ProcessId process = job.process();
    const TaskId busy = job.task(process), asleep = job.task(process);
    job.add(busy, {.kind = OpKind::marker, .begin = 1'000, .duration = 1'000});
    job.add(asleep, {.kind = OpKind::marker, .begin = 80 * kMs, .duration = 1'000});
    const ReplayResult result = run();
    CHECK(result.elapsed_ns >= 79 * kMs);
}

TEST_CASE_FIXTURE(CausalJob, "causal: an accelerator works on while its host goes on, and is waited for") {
    const TaskId task = job.lone_task();
    job.add(task, {.kind = OpKind::gpu_submit, .begin = 1'000, .duration = 10'000, .size = 40 * kMs});
    job.add(task, {.kind = OpKind::compute, .begin = 11'000, .duration = 10 * kMs});
    job.add(task, {.kind = OpKind::gpu_wait, .begin = 11 * kMs, .duration = 30 * kMs});
    job.add(task, {.kind = OpKind::marker, .begin = 41 * kMs + 100});
    const ReplayResult result = run({.time_scale = 2.0});
    CHECK(result.elapsed_ns >= 80 * kMs);
    CHECK(result.accelerators == 1);
}

TEST_CASE_FIXTURE(CausalJob, "causal: a faster accelerator is busy for less time, its host as long as before") {
    const TaskId task = job.lone_task();
    for (int64_t step = 0; step < 5; ++step) {
        const int64_t from = 1'000 + step * 220 * kMs;
        job.add(task, {.kind = OpKind::gpu_submit, .begin = from, .duration = 10'000, .size = 200 * kMs});
        job.add(task, {.kind = OpKind::gpu_wait, .begin = from + kMs, .duration = 199 * kMs});
        job.add(task, {.kind = OpKind::compute, .begin = from + 200 * kMs, .duration = 10 * kMs});
    }
    const ReplayResult result = run({.gpu = 10.0});
    CHECK(result.elapsed_ns >= 5 * (20 + 10) * kMs);
    CHECK(result.elapsed_ns < 800 * kMs);  // 1.1 s as recorded
}

TEST_CASE_FIXTURE(CausalJob, "causal: streams of an accelerator work side by side") {
    const TaskId task = job.lone_task();
    for (const int64_t stream : {1, 2}) {
        job.add(
            task,
            {.kind = OpKind::gpu_submit, .begin = stream * 1'000, .duration = 500, .size = 300 * kMs, .flags = stream});
    }
    job.add(task, {.kind = OpKind::gpu_wait, .begin = 10'000, .duration = 300 * kMs, .flags = 1});
    job.add(task, {.kind = OpKind::gpu_wait, .begin = 301 * kMs, .duration = 1'000, .flags = 2});
    const ReplayResult result = run();
    CHECK(result.accelerators == 1);
    CHECK(result.elapsed_ns >= 300 * kMs);
    CHECK(result.elapsed_ns < 550 * kMs);  // not one after the other
}

TEST_CASE_FIXTURE(CausalJob, "a speed of accelerators that means nothing is refused") {
    job.add(job.lone_task(), {.kind = OpKind::marker});
    const LogReader reader = job.finish();
    ReplayOptions options = afap(root);
    options.pace = Pace::causal;
    for (const double speed : {0.0, -1.0}) {
        options.speeds.gpu = speed;
        CHECK_THROWS_WITH_AS(replay(reader, options), doctest::Contains("--gpu-speed is "), Error);
    }
    options.speeds = {.cpu = 0.0};
    CHECK_THROWS_WITH_AS(replay(reader, options), doctest::Contains("--cpu-speed is "), Error);
    options.speeds = {.gpu = 2.0};
    options.pace = Pace::timed;
    CHECK_THROWS_WITH_AS(replay(reader, options), doctest::Contains("causal"), Error);
}

TEST_CASE_FIXTURE(CausalJob, "causal: a faster processor shortens compute, not waits") {
    const TaskId task = job.lone_task();
    job.add(task, {.kind = OpKind::compute, .begin = 1'000, .duration = 800 * kMs});
    job.add(task, {.kind = OpKind::wait, .begin = 801 * kMs, .duration = 100 * kMs, .arg = 3});
    job.add(task, {.kind = OpKind::marker, .begin = 902 * kMs});
    const ReplayResult result = run({.cpu = 8.0});
    CHECK(result.elapsed_ns >= 200 * kMs);
    CHECK(result.elapsed_ns < 700 * kMs);
}

TEST_CASE("waits for locks take no time and need no cause") {
    CHECK(causal_role(OpKind::wait, 5, false, true) == CausalRole::wait);
    CHECK(causal_role(OpKind::wait, 1, false, true) == CausalRole::delay);
    CausalJob causal;
    const TaskId task = causal.job.lone_task();
    causal.job.pread(task, causal.job.open(task, causal.job.file("/data/in")), 0, 10);
    causal.job.add(task, {.kind = OpKind::wait, .duration = 50 * kMs, .arg = 5});
    CHECK(causal.run().unexplained_wait_share == -1.0);
}

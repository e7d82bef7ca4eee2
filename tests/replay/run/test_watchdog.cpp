// SPDX-License-Identifier: MIT
// A run never hangs, whatever its edges say; a log without ops, and one with more tasks than the machine allows.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "formats/support/sanitized.h"
#include "replay/run/supervisor.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// Tasks of ten reads each, whose plan is altered by hand before it runs: no log makes a plan with circles.
struct PlanFixture {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};

    TaskId reads(TaskId task, int count = 10) {
        const HandleId h = job.handle(job.file("/data/in"));
        for (int i = 0; i < count; ++i) {
            job.pread(task, job.open(task, job.file("/data/in")), 0, 10);
        }
        (void)h;
        return task;
    }
    static void edge(Plan& plan, TaskId task, uint64_t op, TaskId source, uint64_t source_op, EdgeKind kind) {
        plan.tasks[task].waits.push_back({op, source_op, source, 0, kind});
        plan.tasks[source].sources.push_back(source_op);
    }
    SupervisedRun run(Plan& plan, Pace pace, std::vector<std::string>* waiting = nullptr) {
        number_sources(plan);
        SharedRun shared(plan.tasks.size(), plan.processes.size(), 1, 0,
                         plan.tasks.back().spool_first + plan.tasks.back().ops, SIZE_MAX, {});
        const WritePattern pattern(0);
        const WorkerSetup setup{&plan, &shared, &pattern, pace, EngineKind::null, {}, -1, false};
        ReplayOptions options;
        options.pace = pace;
        options.catch_signals = false;
        if (waiting != nullptr) {
            options.progress = [waiting](const ReplayProgress& now) { waiting->push_back(now.waiting); };
        }
        const TickPoint begin = take_tick_point();
        SharedTimeline clock;
        clock.add(begin);
        SupervisedRun result = supervise(setup, options, begin, clock);
        for (TaskId task = 1; task < plan.tasks.size(); ++task) {
            CHECK(shared.task(task).done.load() == plan.tasks[task].ops);
        }
        return result;
    }
};

}  // namespace

TEST_CASE_FIXTURE(PlanFixture, "watchdog: the weakest edge of a circle is given up, and the run goes on") {
    const ProcessId process = job.process();
    const TaskId a = reads(job.task(process)), b = reads(job.task(process)), c = reads(job.lone_task());
    const LogReader reader = job.finish();
    for (const Pace pace : {Pace::afap, Pace::causal}) {
        Plan plan = make_plan(reader, OpFilter::all(), {});
        edge(plan, a, 5, b, 7, EdgeKind::message);
        edge(plan, b, 4, c, 9, EdgeKind::wake);
        edge(plan, c, 2, a, 6, EdgeKind::marker);
        const SupervisedRun result = run(plan, pace);
        CHECK(result.ended == "complete");
        REQUIRE(result.broken.size() == 1);
        CHECK(to_string(result.broken[0]) == "op 4 (open) of task " + std::to_string(b) + " waited for op 9 of task " +
                                                 std::to_string(c) + " (edge: wake)");
    }
}

TEST_CASE_FIXTURE(PlanFixture, "watchdog: circles one after the other, and one that others wait for") {
    const ProcessId process = job.process();
    const TaskId a = reads(job.task(process)), b = reads(job.task(process)), c = reads(job.task(process));
    const LogReader reader = job.finish();
    Plan plan = make_plan(reader, OpFilter::all(), {});
    for (uint64_t op = 0; op < 20; op += 2) {
        edge(plan, a, op, b, op + 1, EdgeKind::resource);
        edge(plan, b, op, a, op + 1, EdgeKind::queue);
        edge(plan, c, op, a, op, EdgeKind::queue);
    }
    const SupervisedRun result = run(plan, Pace::afap);
    CHECK(result.ended == "complete");
    CHECK(result.broken.size() == 10);
    for (const BrokenEdge& edge : result.broken) {
        CHECK(edge.task == b);
        CHECK(edge.evidence == EdgeKind::queue);
    }
}

TEST_CASE_FIXTURE(PlanFixture, "watchdog: a task that waits for itself, and a wait that is only long") {
    const TaskId task = reads(job.lone_task());
    const TaskId slow = job.lone_task(), waiter = reads(job.lone_task());
    job.add(slow, {.kind = OpKind::compute, .begin = kMs, .duration = 2'500 * kMs});
    const LogReader reader = job.finish();
    Plan plan = make_plan(reader, OpFilter::all(), {});
    edge(plan, task, 3, task, 5, EdgeKind::marker);
    edge(plan, waiter, 3, slow, 0, EdgeKind::queue);
    std::vector<std::string> waiting;
    const SupervisedRun result = run(plan, Pace::causal, &waiting);
    REQUIRE(result.broken.size() == 1);
    CHECK(result.broken[0].task == task);
    // What holds the run up is named once nothing has got done for two seconds, and who waits for it.
    const std::string source = "op 0 (compute) of task " + std::to_string(slow);
    const std::string expected = source + " takes its time; op 3 (pread) of task " + std::to_string(waiter) +
                                 " waits for " + source + " (edge: queue)";
    CHECK(std::count(waiting.begin(), waiting.end(), expected) > 0);
    CHECK(waiting.front().empty());
}

TEST_CASE_FIXTURE(PlanFixture, "watchdog: a source that never comes is named, and given up after half a minute") {
    const TaskId waiter = reads(job.lone_task()), lost = reads(job.lone_task());
    const LogReader reader = job.finish();
    Plan plan = make_plan(reader, OpFilter::all(), {});
    plan.tasks[waiter].waits.push_back({4, 2, lost, 1, EdgeKind::queue});
    plan.tasks[lost].sources.push_back(2);
    SharedRun shared(plan.tasks.size(), plan.processes.size(), 0, 0, 1, SIZE_MAX, {});
    shared.task(waiter).state.store(TaskState::waiting_for_edge);
    shared.task(waiter).waits_edge.store(1);
    shared.process(plan.tasks[lost].process).pid.store(1);  // was started, and nothing more was heard of it
    Watchdog dog(plan, shared);
    CHECK_FALSE(dog.look(1'000 * kMs));
    CHECK(dog.stalled(1'000 * kMs).empty());
    CHECK_FALSE(dog.look(30'000 * kMs));
    CHECK(dog.stalled(4'000 * kMs) == "op 4 (open) of task " + std::to_string(waiter) +
                                          " waits for op 2 (open) of task " + std::to_string(lost) + " (edge: queue)");
    CHECK(shared.task(waiter).let_go.load() == 0);
    CHECK(dog.look(31'001 * kMs));
    REQUIRE(dog.broken().size() == 1);
    CHECK(dog.broken()[0].source == lost);
    CHECK(shared.task(waiter).let_go.load() == 1);
}

TEST_CASE_FIXTURE(PlanFixture, "watchdog: who waits for requests that nobody makes is let go") {
    const TaskId waiter = reads(job.lone_task()), other = reads(job.lone_task());
    const LogReader reader = job.finish();
    Plan plan = make_plan(reader, OpFilter::all(), {});
    SharedRun shared(plan.tasks.size(), plan.processes.size(), 0, 0, 1, SIZE_MAX, {});
    shared.task(waiter).state.store(TaskState::running);
    shared.task(waiter).done.store(4);
    shared.task(other).state.store(TaskState::ended);
    Watchdog dog(plan, shared);
    CHECK(dog.any_runs());
    CHECK_FALSE(shared.needs_in_vain(waiter));
    CHECK_FALSE(dog.any_runs());
    CHECK_FALSE(dog.look(1'000 * kMs));
    CHECK_FALSE(dog.look(30'000 * kMs));
    CHECK_FALSE(shared.needs_in_vain(waiter));
    CHECK(dog.look(31'001 * kMs));
    REQUIRE(dog.broken().size() == 1);
    CHECK(to_string(dog.broken()[0]) ==
          "op 4 (open) of task " + std::to_string(waiter) + " waited for results of requests that nobody made");
    CHECK(shared.needs_in_vain(waiter));
    shared.needs_none(waiter);
    CHECK(dog.any_runs());
    CHECK_FALSE(shared.needs_in_vain(waiter));
}

TEST_CASE_FIXTURE(PlanFixture, "watchdog: a circle through the start of a task") {
    const ProcessId process = job.process();
    const TaskId parent = job.task(process), child = job.task(process);
    reads(parent, 3);
    const uint64_t spawns = job.spawn(parent, child);
    reads(child, 3);
    const LogReader reader = job.finish();
    Plan plan = make_plan(reader, OpFilter::all(), {});
    edge(plan, parent, spawns - 1, child, 2, EdgeKind::marker);
    const SupervisedRun result = run(plan, Pace::afap);
    CHECK(result.ended == "complete");
    CHECK(result.broken.size() == 1);
}

TEST_CASE("a log without tasks, and one whose tasks have no ops, end at once") {
    for (const int tasks : {0, 3}) {
        for (const Pace pace : {Pace::afap, Pace::timed, Pace::causal}) {
            CAPTURE(tasks);
            const TempDir dir;
            std::filesystem::create_directories(dir / "root");
            JobBuilder job(dir / "job.oplog");
            for (int i = 0; i < tasks; ++i) {
                job.lone_task();
            }
            const LogReader reader = job.finish();
            ReplayOptions options = afap(dir / "root");
            options.pace = pace;
            const ReplayResult result = replay(reader, options);
            CHECK(result.ended == "complete");
            CHECK(result.ops == 0);
            CHECK(result.elapsed_ns == 0);
        }
    }
}

TEST_CASE("more threads than this machine allows: an error that says what to do") {
#if defined(REPRISE_ASAN) || defined(REPRISE_TSAN)
    report_skip("sanitizers need more address space than the limit of this test leaves");
    return;
#endif
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const ProcessId process = job.process();
    for (int i = 0; i < 200; ++i) {
        job.add(job.task(process), {.kind = OpKind::marker});
    }
    const LogReader reader = job.finish();
    // In a process of its own, as a limit cannot be raised again.
    const pid_t pid = fork();
    if (pid == 0) {
        // Room for some of the 200 stacks of 8 MiB beyond what earlier tests left mapped.
        rlim_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        rlimit memory{};
        memory.rlim_cur = memory.rlim_max = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{800} << 20);
        setrlimit(RLIMIT_AS, &memory);
        ReplayOptions options = afap({});
        options.engine = EngineKind::null;
        options.catch_signals = false;
        const ReplayResult result = replay(reader, options);
        const bool said = result.ended.find("cannot start thread") != std::string::npos &&
                          result.ended.find("ulimit") != std::string::npos;
        std::fprintf(stderr, "%s\n", result.ended.c_str());
        _exit(said ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
}

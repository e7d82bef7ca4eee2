// SPDX-License-Identifier: MIT
// `while thread.is_alive(): sleep(0.01)`, and sleeps that have nothing to do with other threads.
#include "replay/plan/end_looks.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "replay/plan/plan.h"
#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

constexpr int64_t kSleep = 10 * kMs;

/// A thread that sleeps again and again beside workers that read 4 KiB every 5 ms. Each worker is done in the sleep it
/// gives.
struct Sleeper {
    std::vector<double> done = {59.5};  // in sleeps
    int sleeps = 60;
    bool ends = true;          // the workers; else they wait for more, and are given it after the last sleep
    bool pauses = false;       // a worker waits over the end of a sleep in the middle
    bool awaited = false;      // one more thread waits for a worker's end
    int64_t tells_at = 0;      // a worker waits from the start on until the thread has slept that often
    int64_t takes_turns = 0;   // a worker waits for so long after each sleep for a lock that the thread had, ns
    int64_t prints = 0;        // bytes after each sleep
    int told_print = 0;        // that somebody waits for
    int64_t look_ns = 20'000;  // compute between two sleeps
    int64_t think = kMs;       // of the workers after each read
    int64_t result = 0;        // of the sleeps: not 0 where something else ended them

    struct Job {
        TempDir dir;
        std::vector<uint64_t> slept;
        TaskId main = 0;
        uint64_t next = 0;
    };

    LogReader write(Job& made) const {
        JobBuilder job{made.dir / "job.oplog"};
        const ProcessId process = job.process();
        const TaskId main = made.main = job.task(process);
        std::vector<TaskId> workers;
        std::vector<uint64_t> woke(done.size() + 1, 0);
        for (size_t i = 0; i < done.size(); ++i) {
            workers.push_back(job.task(process));
            job.add(main, {.kind = OpKind::spawn, .begin = 100, .duration = 1, .result = 1, .peer = workers.back()});
        }
        const TaskId joiner = awaited ? job.task(process) : 0, listener = told_print != 0 ? job.task(process) : 0;
        const HandleId terminal = job.handle(0, O_WRONLY, HandleKind::pipe);
        int64_t now = kMs;
        std::vector<uint64_t> told;
        for (int i = 0; i < sleeps; ++i) {
            if ((tells_at != 0 && i == tells_at) || (takes_turns != 0 && i > 0)) {
                told.push_back(job.add(main, wokes(now)));
            }
            made.slept.push_back(
                job.add(main, {.kind = OpKind::wait, .begin = now, .duration = kSleep, .arg = kWaitSleep}));
            now += kSleep;
            job.add(main, {.kind = OpKind::compute, .begin = now, .duration = look_ns, .flags = kComputeWorks});
            now += look_ns;
            if (prints != 0) {
                const uint64_t print = job.add(main, {.kind = OpKind::send,
                                                      .begin = now - look_ns / 2,
                                                      .duration = 1'000,
                                                      .result = prints,
                                                      .handle = terminal,
                                                      .size = prints});
                if (told_print != 0 && i + 1 == told_print) {
                    wait(job, listener, now - kMs, now, Edge{main, EdgeKind::message, 100, print});
                }
            }
        }
        const int64_t end = now;
        const uint64_t gives = job.add(main, wokes(end));
        made.next = gives;
        job.add(main, {.kind = OpKind::compute, .begin = end + 20, .duration = 30 * kMs, .flags = kComputeWorks});
        const HandleId in = job.inherited(job.file("/data/in"), process, 5);
        read(job, main, in, end + 31 * kMs, int64_t{1} << 40);
        job.add(main, {.kind = OpKind::exit, .begin = end + 36 * kMs, .duration = 1});
        const int64_t period = kSleep + look_ns;
        int64_t offset = 0;
        for (size_t i = 0; i < workers.size(); ++i) {
            const auto until = kMs + static_cast<int64_t>(done[i] * static_cast<double>(period));
            int64_t at = 200 + static_cast<int64_t>(i);
            if (tells_at != 0) {
                wait(job, workers[i], at, kMs + tells_at * period + 20, Edge{main, EdgeKind::wake, 100, told.front()});
                at = kMs + tells_at * period + 30;
            }
            size_t turn = 0;
            for (bool paused = !pauses; at + 5 * kMs < until; at += 5 * kMs, offset += kMiB) {
                read(job, workers[i], in, at, offset, 5 * kMs - think);
                const int64_t look = kMs + static_cast<int64_t>(turn + 1) * period;
                if (takes_turns != 0 && turn < told.size() && look < at + 5 * kMs && look > at + 4 * kMs) {
                    wait(job, workers[i], look - takes_turns, look + 20, Edge{main, EdgeKind::wake, 100, told[turn]});
                }
                turn += look < at + 5 * kMs ? 1 : 0;
                if (!paused && at > until / 2) {
                    paused = true;
                    wait(job, workers[i], at + 5 * kMs, at + 5 * kMs + kSleep + kMs, {});
                    at += kSleep + kMs;
                }
            }
            read(job, workers[i], in, at, offset, 5 * kMs - think);
            offset += kMiB;
            if (!ends) {
                wait(job, workers[i], until, end + 30, Edge{main, EdgeKind::wake, 100, gives});
            }
            const uint64_t exit =
                job.add(workers[i], {.kind = OpKind::exit, .begin = ends ? until : end + 40, .duration = 1});
            if (joiner != 0 && i == 0) {
                wait(job, joiner, 300, until + 10, Edge{workers[i], EdgeKind::wake, 100, exit});
            }
        }
        return job.finish();
    }

    /// How many of the sleeps are one wait for a worker.
    size_t joined() const {
        Job job;
        const LogReader log = write(job);
        const Plan plan = make_plan(log, OpFilter::all(), {});
        const TaskPlan& task = plan.tasks[job.main];
        const auto count = static_cast<size_t>(std::count_if(job.slept.begin(), job.slept.end(), [&](uint64_t op) {
            return std::binary_search(task.explained.begin(), task.explained.end(), op);
        }));
        const auto for_worker = std::count_if(task.waits.begin(), task.waits.end(),
                                              [](const WaitFor& wait) { return wait.kind == EdgeKind::lifecycle; });
        CHECK(task.look_grids.size() == (count == 0 ? 0 : 1));
        CHECK(static_cast<size_t>(for_worker) == task.look_grids.size());
        if (count == job.slept.size()) {
            CHECK(task.look_grids.front().first >= job.slept.back());
        }
        return count;
    }

    int64_t predicted(int64_t read_ns) const {
        Job job;
        const LogReader log = write(job);
        PredictOptions options;
        options.storage.cold = true;
        options.storage.cached_bytes_per_s = 1e12;
        options.storage.read = {{4096, read_ns}};
        options.filter = OpFilter::all();
        return predict(log, options).elapsed_ns - 31 * kMs - read_ns;  // what the thread does in the end
    }

private:
    static Op wokes(int64_t at) {
        return {.kind = OpKind::wait, .begin = at, .duration = 10, .result = 1, .arg = kWaitWokeOthers};
    }
    static void read(JobBuilder& job, TaskId task, HandleId in, int64_t at, int64_t offset,
                     int64_t duration = 4 * kMs) {
        job.add(task, {.kind = OpKind::pread,
                       .begin = at,
                       .duration = duration,
                       .result = 4096,
                       .handle = in,
                       .fd = 5,
                       .offset = offset,
                       .size = 4096});
    }
    static void wait(JobBuilder& job, TaskId task, int64_t from, int64_t to, const Edge& by) {
        Op op{.kind = OpKind::wait, .begin = from, .duration = to - from, .arg = kWaitFutex};
        if (by.task != 0) {
            op.edges = {&by, 1};
        }
        job.add(task, op);
    }
};

}  // namespace

TEST_CASE("end looks: sleeps until a thread has ended") {
    CHECK(Sleeper{}.joined() == 60);
    CHECK(Sleeper{.done = {58.5}}.joined() == 59);  // and one more after it saw that
    CHECK(Sleeper{.done = {10.5, 20.5, 59.5, 40.5}}.joined() == 60);
    CHECK(Sleeper{.done = {59.2, 59.3, 59.4, 59.5}}.joined() == 60);
    CHECK(Sleeper{.ends = false}.joined() == 60);  // it waits for more work
    CHECK(Sleeper{.done = {4.5}, .sleeps = 5}.joined() == 5);
    CHECK(Sleeper{.done = {11.5}, .sleeps = 12, .awaited = true}.joined() == 12);
    CHECK(Sleeper{.takes_turns = kMs}.joined() == 60);
    CHECK(Sleeper{.look_ns = 900'000}.joined() == 60);
    CHECK(Sleeper{.prints = 80}.joined() == 60);
}

TEST_CASE("end looks: sleeps that begin before the thread does") {
    CHECK(Sleeper{.tells_at = 1}.joined() == 59);
    CHECK(Sleeper{.tells_at = 10}.joined() == 50);
    CHECK(Sleeper{.prints = 80, .told_print = 20}.joined() == 40);
}

TEST_CASE("end looks: sleeps of a given length stay") {
    CHECK(Sleeper{.done = {30.5}}.joined() == 0);
    CHECK(Sleeper{.done = {57.5}}.joined() == 0);
    CHECK(Sleeper{.done = {}}.joined() == 0);
    // By chance.
    CHECK(Sleeper{.done = {3.5}, .sleeps = 4}.joined() == 0);
    CHECK(Sleeper{.done = {4.5}, .sleeps = 5, .awaited = true}.joined() == 0);
    CHECK(Sleeper{.done = {3.5}, .sleeps = 5}.joined() == 0);
    CHECK(Sleeper{.done = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5}, .sleeps = 6}.joined() == 0);
    CHECK(Sleeper{.ends = false, .pauses = true}.joined() == 0);  // it was done before, if that is what it means
    CHECK(Sleeper{.look_ns = 2 * kMs}.joined() == 0);
    CHECK(Sleeper{.prints = 1 << 20}.joined() == 0);
}

TEST_CASE("end looks: on another storage the thread sees it with its next look") {
    const Sleeper job;
    constexpr int64_t kPeriod = kSleep + 20'000;
    // 119 reads with 1 ms of other things after each.
    CHECK(std::abs(job.predicted(4 * kMs) - 60 * kPeriod) < 2 * kPeriod);
    CHECK(std::abs(job.predicted(1 * kMs) - 24 * kPeriod) < 2 * kPeriod);
    CHECK(std::abs(job.predicted(19 * kMs) - 238 * kPeriod) < 2 * kPeriod);
}

TEST_CASE("end looks: looks for which there is no time are not computed") {
    // 200 looks would take 40 ms. The reads, which took a second, take one.
    const Sleeper job{.done = {199.5}, .sleeps = 200, .look_ns = 200'000, .think = 1'000};
    CHECK(job.predicted(1'000) < kSleep + kMs);
}

}  // namespace reprise::test

// SPDX-License-Identifier: MIT
// Threads that do a little again and again until another thread has them stop.
#include "replay/plan/samplers.h"

#include <cerrno>

#include "replay/plan/plan.h"
#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

/// A thread reads figures every 100 ms while another computes for a second, and is told to stop by an Event, or by a
/// flag that it looks at. Then the other waits for its end.
struct Sampling {
    bool by_flag = false;
    size_t samples = 9;
    int64_t every = 100 * kMs, works = kMs;  // ns
    int64_t wait_class = kWaitFutex, expired = -ETIMEDOUT;
    int64_t told_ns = 0, told_class = kWaitFutex;  // of the wait in which it is woken; 0: until then
    int64_t timer_read = 0;                        // bytes, where a timer ends its polls
    int64_t last_period = 0;                       // ns, where another timer ended it sooner
    int64_t bytes = 1'000;                         // of each read
    int64_t waits_for_sample = 0;                  // ns, of a third thread
    int64_t joins_at = 930 * kMs;                  // where it is told by a flag
    bool woken_between = false, request = false;   // once

    TempDir dir{};
    JobBuilder job{dir / "job.oplog"};
    TaskId main = 0, sampler = 0;
    std::vector<uint64_t> waits{};
    uint64_t joins = 0;

    LogReader build() {
        const ProcessId process = job.process();
        main = job.task(process), sampler = job.task(process);
        const TaskId third = job.task(process);
        const HandleId figures = job.handle(job.file("/proc/stat"));
        const int64_t computed = by_flag ? joins_at : 930 * kMs;
        job.add(main, {.kind = OpKind::compute, .begin = 0, .duration = computed, .flags = kComputeWorks});
        const uint64_t tells = job.add(main, {.kind = OpKind::wait, .begin = computed, .arg = kWaitWokeOthers});
        int64_t at = kMs;
        for (size_t i = 0; i < samples; ++i) {
            const int64_t period = last_period != 0 && i + 1 == samples ? last_period : every;
            waits.push_back(
                job.add(sampler,
                        {.kind = OpKind::wait, .begin = at, .duration = period, .result = expired, .arg = wait_class}));
            at += period;
            if (timer_read != 0) {
                job.add(sampler,
                        {.kind = OpKind::receive, .begin = at, .result = timer_read, .handle = figures, .size = 8});
            }
            if (request && i == 1) {
                job.add(sampler, {.kind = OpKind::uring_complete, .begin = at, .result = 1, .size = 1, .request = 1});
            }
            const uint64_t read = job.add(
                sampler,
                {.kind = OpKind::pread, .begin = at, .result = bytes, .handle = figures, .fd = 3, .size = bytes});
            if (woken_between && i == 3) {
                const std::vector<Edge> by{{main, EdgeKind::wake, 100, 0}};
                job.add(sampler, {.kind = OpKind::wait, .begin = at, .arg = kWaitFutex, .edges = by});
            }
            if (waits_for_sample != 0 && i == 2) {
                const std::vector<Edge> by{{sampler, EdgeKind::wake, 100, read}};
                job.add(third, {.kind = OpKind::wait,
                                .begin = at - waits_for_sample,
                                .duration = waits_for_sample,
                                .arg = kWaitFutex,
                                .edges = by});
            }
            job.add(sampler, {.kind = OpKind::compute, .begin = at, .duration = works, .flags = kComputeWorks});
            at += works;
        }
        if (!by_flag) {
            const std::vector<Edge> by{{main, EdgeKind::wake, 100, tells}};
            job.add(sampler, {.kind = OpKind::wait,
                              .begin = at,
                              .duration = told_ns != 0 ? told_ns : computed - at,
                              .arg = told_class,
                              .edges = by});
            at = computed;
        }
        const uint64_t exits = job.add(sampler, {.kind = OpKind::exit, .begin = at});
        const std::vector<Edge> end{{sampler, EdgeKind::wake, 100, exits}};
        joins = job.add(main, {.kind = OpKind::wait,
                               .begin = computed + 1'000,
                               .duration = std::max<int64_t>(at - computed, 0),
                               .arg = kWaitFutex,
                               .edges = end});
        return job.finish();
    }
    /// Of its waits, those that are one wait for who tells it.
    uint64_t joined() {
        const LogReader log = build();
        const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
        const TaskPlan& task = plan.tasks[sampler];
        const uint64_t count = plan.counted(Count::waits_joined);
        for (size_t i = 0; i < waits.size(); ++i) {
            const bool explained = std::binary_search(task.explained.begin(), task.explained.end(), waits[i]);
            CHECK(explained == (i >= waits.size() - std::min<size_t>(count, waits.size())));
        }
        CHECK(task.look_grids.size() == (by_flag && count != 0 ? 1 : 0));
        const bool waits_for_main = std::any_of(task.waits.begin(), task.waits.end(), [&](const WaitFor& wait) {
            return wait.op > waits.back() && wait.task == main && wait.source + 1 == joins;
        });
        CHECK((by_flag && waits_for_main) == (by_flag && count != 0));
        return count;
    }
    double predicted_ms(double cpu) {
        const LogReader log = build();
        PredictOptions options;
        options.storage.read = {{4096, 0}};
        options.filter = OpFilter::all();
        options.speeds.cpu = cpu;
        return static_cast<double>(predict(log, options).elapsed_ns) / kMs;
    }
};

}  // namespace

TEST_CASE("samplers: waits until somebody tells the thread to stop") {
    Sampling job;
    SUBCASE("by waking it are one wait for that") { CHECK(job.joined() == 9); }
    SUBCASE("whether they are time-outs or ends of a timer") {
        job.wait_class = job.told_class = kWaitPoll;
        job.expired = 1;
        job.timer_read = 8;
        CHECK(job.joined() == 9);
    }
    SUBCASE("of several timers, of which one ended just before") {
        job.wait_class = job.told_class = kWaitPoll;
        job.expired = 1;
        job.timer_read = 8;
        job.last_period = 5 * kMs;
        CHECK(job.joined() == 9);
    }
    SUBCASE("but polls that something else ended are none") {
        job.wait_class = kWaitPoll;
        job.expired = 1;
        job.timer_read = 4;
        CHECK(job.joined() == 0);
    }
    SUBCASE("but not where that would not have woken it before, as it waits for long now") {
        job.told_ns = 130 * kMs;
        CHECK(job.joined() == 0);
    }
    SUBCASE("or in another way") {
        job.told_class = kWaitPoll;
        CHECK(job.joined() == 0);
    }
    SUBCASE("two show nothing") {
        job.samples = 2;
        CHECK(job.joined() == 0);
    }
    SUBCASE("what came before it was woken in between stays") {
        job.woken_between = true;
        CHECK(job.joined() == 5);
    }
    SUBCASE("one that works is no sampler") {
        job.every = 75 * kMs;
        job.works = 25 * kMs;
        CHECK(job.joined() == 0);
    }
    SUBCASE("nor one that moves the job's data") {
        job.bytes = 1'000'000;
        CHECK(job.joined() == 0);
    }
    SUBCASE("nor one for whose samples somebody waits") {
        job.waits_for_sample = 50 * kMs;
        CHECK(job.joined() == 0);
    }
    SUBCASE("who waits shortly may wait for a lock") {
        job.waits_for_sample = kMs;
        CHECK(job.joined() == 9);
    }
    SUBCASE("nor one that has requests in flight") {
        job.request = true;
        CHECK(job.joined() == 0);
    }
}

TEST_CASE("samplers: sleeps until the thread sees that it is to stop") {
    Sampling job;
    job.by_flag = true;
    job.samples = 10;
    job.wait_class = kWaitSleep;
    job.expired = 0;
    SUBCASE("are one wait for who waits for its end from within the last of them") { CHECK(job.joined() == 10); }
    SUBCASE("or from after the one before it, as that one may have been too early to see the flag") {
        job.works = 10 * kMs;
        job.joins_at = 985 * kMs;  // the last two begin at 881 and 991 ms
        CHECK(job.joined() == 10);
    }
    SUBCASE("or while it takes its last sample, after which it does not sleep") {
        job.works = 10 * kMs;
        job.joins_at = 1'096 * kMs;  // it ends at 1101
        CHECK(job.joined() == 10);
    }
    SUBCASE("who waited for it before that one was not its cause") {
        job.joins_at = 880 * kMs;
        CHECK(job.joined() == 0);
    }
    SUBCASE("nor who came later") {
        job.joins_at = 1'200 * kMs;
        CHECK(job.joined() == 0);
    }
    SUBCASE("it moves the job's data") {
        job.bytes = 1'000'000;
        CHECK(job.joined() == 0);
    }
}

TEST_CASE("samplers: on a faster machine the job ends when its work does") {
    Sampling job;
    SUBCASE("where it wakes the sampler") { CHECK(job.predicted_ms(4) == doctest::Approx(930 / 4.).epsilon(0.03)); }
    SUBCASE("where that sees a flag with its next look") {
        job.by_flag = true;
        job.samples = 10;
        job.wait_class = kWaitSleep;
        job.expired = 0;
        CHECK(job.predicted_ms(4) == doctest::Approx(300).epsilon(0.03));  // computes for 233 ms
    }
}

}  // namespace reprise::test

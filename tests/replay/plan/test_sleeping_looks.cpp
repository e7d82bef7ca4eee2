// SPDX-License-Identifier: MIT
// Jobs that sleep between looks for results of requests, and jobs that sleep while their requests are in flight.
#include "replay/plan/sleeping_looks.h"

#include <doctest/doctest.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/replay/plan/request_log.h"

using namespace reprise;
using namespace reprise::test;

namespace {

struct Sleeper : RequestLog {
    std::vector<uint64_t> sleeps;

    Sleeper() : RequestLog(O_RDONLY | O_DIRECT) {}

    uint64_t put(Op op) {
        op.begin = now;
        now += op.duration;
        return job.writer().append(task, op);
    }
    void sleep(int64_t ns) { sleeps.push_back(put({.kind = OpKind::wait, .duration = ns, .arg = kWaitSleep})); }
    void submit(OpKind kind) {
        put({.kind = kind,
             .duration = kind == OpKind::aio_submit ? 2 * kUs : 0,
             .result = kind == OpKind::aio_submit ? 1 : 0,
             .handle = in,
             .fd = 3,
             .offset = int64_t{number} * 4'096,
             .size = 4'096,
             .arg = kind == OpKind::aio_submit ? int64_t{IOCB_CMD_PREAD} : int64_t{IORING_OP_READ},
             .request = ++number});
    }
    void enter() {
        put({.kind = OpKind::uring_enter, .duration = 2 * kUs, .result = 1, .handle = ring, .fd = 4, .size = 1});
    }
    void look(int64_t found) {
        put({.kind = OpKind::aio_reap, .duration = 300, .result = found, .size = 8});
        for (int64_t i = 0; i < found; ++i) {
            put({.kind = OpKind::aio_complete, .result = 4'096, .size = 4'096, .request = number});
        }
    }
    /// One request of libaio, looked for before each of so many sleeps.
    void looks(int count, bool before_the_first = true) {
        submit(OpKind::aio_submit);
        for (int i = 0; i < count; ++i) {
            if (before_the_first || i > 0) {
                look(0);
            }
            sleep(kMs);
        }
        look(1);
    }
    /// One of io_uring, whose result comes in that of so many sleeps.
    void peeks(int count, int in) {
        submit(OpKind::uring_submit);
        enter();
        for (int i = 0; i < count; ++i) {
            sleep(kMs);
            if (i == in) {
                job.writer().append(task, {.kind = OpKind::uring_complete,
                                           .begin = now - kMs / 3,
                                           .result = 4'096,
                                           .size = 4'096,
                                           .request = number});
            }
        }
    }
    bool all_wait(const Plan& made) const {
        return std::all_of(sleeps.begin(), sleeps.end(), [&](uint64_t op) {
            const auto& explained = made.tasks[task].explained;
            return std::binary_search(explained.begin(), explained.end(), op);
        });
    }
};

}  // namespace

TEST_CASE_FIXTURE(Sleeper, "sleeping looks: sleeps between calls that took nothing are one wait for the result") {
    for (int i = 0; i < 10; ++i) {
        looks(5 + i % 3);
    }
    const Plan made = planned();
    CHECK(all_wait(made));
    CHECK(made.repeated_sleep_ns == 0);
    REQUIRE(made.tasks[task].look_grids.size() == 10);
    CHECK(made.tasks[task].look_grids[0].results);
    CHECK(made.tasks[task].look_grids[0].sleeps == std::vector<int64_t>(5, kMs));
    // The first look comes too early, so that one sleep stays; then two and a half of them are three.
    CHECK(predicted(50 * kUs).elapsed_ns >= 10 * kMs);
    CHECK(predicted(50 * kUs).elapsed_ns < 11 * kMs);
    CHECK(predicted(2'500 * kUs).elapsed_ns >= 30 * kMs);
    CHECK(predicted(2'500 * kUs).elapsed_ns < 31 * kMs);
    CHECK(predicted(20'500 * kUs).elapsed_ns >= 210 * kMs);
    CHECK(predicted(20'500 * kUs).elapsed_ns < 212 * kMs);
}

TEST_CASE_FIXTURE(Sleeper, "sleeping looks: a sleep before the first look is the job's own") {
    for (int i = 0; i < 10; ++i) {
        looks(3, false);
    }
    const Plan made = planned();
    CHECK_FALSE(all_wait(made));
    CHECK(made.tasks[task].look_grids.size() == 10);
    CHECK(predicted(50 * kUs).elapsed_ns >= 10 * kMs);
    CHECK(predicted(50 * kUs).elapsed_ns < 11 * kMs);
}

TEST_CASE_FIXTURE(Sleeper, "sleeping looks: a job that sleeps between requests goes on doing so") {
    for (int i = 0; i < 10; ++i) {
        looks(1, false);
    }
    CHECK(planned().tasks[task].look_grids.empty());
    CHECK(predicted(50 * kUs).elapsed_ns >= 10 * kMs);
    CHECK(predicted(50 * kUs).elapsed_ns < 11 * kMs);
}

TEST_CASE_FIXTURE(Sleeper, "sleeping looks: results in the last of the sleeps each time were looked for in memory") {
    for (int i = 0; i < 20; ++i) {
        peeks(6 + i % 4, (i == 7 ? 4 : 5) + i % 4);
    }
    submit(OpKind::uring_submit);
    enter();
    const Plan made = planned();
    CHECK(all_wait(made));
    CHECK(made.repeated_sleep_ns == 0);
    CHECK(predicted(50 * kUs).elapsed_ns >= 20 * kMs);
    CHECK(predicted(50 * kUs).elapsed_ns < 22 * kMs);
    CHECK(predicted(20'500 * kUs).elapsed_ns >= 220 * kMs);
    CHECK(predicted(20'500 * kUs).elapsed_ns < 465 * kMs);
}

TEST_CASE_FIXTURE(Sleeper, "sleeping looks: results in any of the sleeps were not") {
    std::minstd_rand random(1);
    for (int i = 0; i < 40; ++i) {
        peeks(6, static_cast<int>(random() % 6));
    }
    submit(OpKind::uring_submit);
    enter();
    const Plan made = planned();
    CHECK(made.tasks[task].look_grids.empty());
    CHECK(made.repeated_sleep_ns > 0);
    CHECK(predicted(50 * kUs).elapsed_ns > 200 * kMs);
}

TEST_CASE_FIXTURE(Sleeper, "sleeping looks: what a run's log has says nothing") {
    job.writer().header().source = "replay";
    for (int i = 0; i < 10; ++i) {
        looks(5);
    }
    CHECK(planned().tasks[task].look_grids.empty());
}

TEST_CASE("sleeping looks: what others do between the sleeps, and other calls, end them") {
    SleepingLooks looks;
    const auto series = [&](uint64_t first, uint64_t gap, int64_t computed) {
        looks.looked(1, first, true);
        looks.slept(1, first + 1, 0, kMs);
        looks.computed(1, first + 2, computed);
        looks.looked(1, first + 3 + gap, false);
        looks.result(1, first + 4 + gap, 7, true, 0);
    };
    series(0, 0, 1'000);
    series(100, 1, 1'000);  // an op that is no wait, look or computing
    series(200, 0, kMs);
    looks.looked(1, 300, true);
    looks.slept(2, 301, 0, kMs);
    looks.result(2, 302, 8, true, 0);
    const std::vector<SleptFor> found = looks.take();
    REQUIRE(found.size() == 1);
    CHECK(found[0].request == 7);
    CHECK(found[0].next == 2);
    REQUIRE(found[0].sleeps.size() == 1);
    CHECK(found[0].sleeps[0].op == 1);
}

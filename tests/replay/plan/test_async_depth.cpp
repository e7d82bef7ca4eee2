// SPDX-License-Identifier: MIT
// How many asynchronous requests a log has in flight at a time.
#include <doctest/doctest.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>

#include "replay/plan/plan.h"
#include "tests/replay/job_builder.h"

using namespace reprise;
using namespace reprise::test;

namespace {

struct Requests {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    const ProcessId process = job.process();
    const TaskId a = job.task(process), b = job.task(process);
    const HandleId in = job.handle(job.file("/data/in"));

    void submit(TaskId task, uint32_t request, int64_t code = IORING_OP_READ, int64_t flags = 0) {
        job.add(task, {.kind = OpKind::uring_submit,
                       .result = 1,
                       .handle = in,
                       .fd = 3,
                       .size = 4'096,
                       .flags = flags,
                       .arg = code,
                       .request = request});
    }
    void complete(TaskId task, uint32_t request) {
        job.add(task, {.kind = OpKind::uring_complete, .result = 4'096, .size = 4'096, .request = request});
    }
    uint32_t depth() {
        const LogReader log = job.finish();
        return make_plan(log, OpFilter::all(), PathMap{}).async_depth;
    }
};

}  // namespace

TEST_CASE_FIXTURE(Requests, "asynchronous depth: none, one at a time, and one in each of two threads") {
    SUBCASE("none") {
        job.pread(a, job.open(a, job.file("/data/in")), 0, 10);
        CHECK(depth() == 0);
    }
    SUBCASE("one after the other") {
        for (uint32_t i = 1; i < 4; ++i) {
            submit(a, i);
            complete(a, i);
        }
        CHECK(depth() == 1);
    }
    SUBCASE("one in each thread") {
        submit(a, 1);
        submit(b, 2);
        complete(a, 1);
        complete(b, 2);
        CHECK(depth() == 1);
    }
}

TEST_CASE_FIXTURE(Requests, "asynchronous depth: the most that one thread has under way, whoever takes the results") {
    submit(b, 1);
    submit(b, 2);
    complete(a, 1);
    submit(b, 3);
    submit(b, 4);
    complete(a, 2);
    complete(b, 3);
    complete(a, 4);
    submit(b, 5);
    complete(b, 5);
    CHECK(depth() == 3);
}

TEST_CASE_FIXTURE(Requests, "asynchronous depth: what waits for another, or for no storage, does not count") {
    SUBCASE("linked") {
        submit(a, 1, IORING_OP_WRITE, IOSQE_IO_LINK);
        submit(a, 2, IORING_OP_FSYNC);
        complete(a, 1);
        complete(a, 2);
        CHECK(depth() == 1);
    }
    SUBCASE("a timer and a poll") {
        submit(a, 1, IORING_OP_TIMEOUT);
        submit(a, 2, IORING_OP_POLL_ADD);
        submit(a, 3);
        complete(a, 3);
        complete(a, 1);
        complete(a, 2);
        CHECK(depth() == 1);
    }
    SUBCASE("its result was never taken") {
        submit(a, 1);
        submit(a, 2);
        complete(a, 2);
        CHECK(depth() == 1);
    }
}

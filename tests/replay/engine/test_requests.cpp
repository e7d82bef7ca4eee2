// SPDX-License-Identifier: MIT
// Asynchronous requests: performed where they are submitted, their results told where they complete.
#include <linux/aio_abi.h>
#include <linux/io_uring.h>

#include <cerrno>

#include "formats/oplog/async_request.h"
#include "tests/replay/engine/run_fixture.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

struct Requests : RunInRoot {
    JobBuilder job{dir / "job.oplog"};
    TaskId t = job.lone_task();
    HandleId in = job.open(t, job.file("/d/in"));                                             // op 0
    HandleId out = job.open(t, job.file("/d/out", Origin::created), O_RDWR | O_CREAT, 0600);  // op 1
    HandleId path = job.open(t, job.file("/d/in"), O_PATH);                                   // op 2
    uint64_t ops = 3;

    struct Asked {
        OpKind kind;
        int64_t code;
        HandleId handle;
        int64_t offset, size, own_flags;
        std::vector<int64_t> list;
        int64_t result;  // of its completion
    };
    void ask(const Asked& asked) {
        const bool uring = asked.kind == OpKind::uring_submit;
        const auto number = static_cast<uint32_t>(ops);
        job.add(t, {.kind = asked.kind,
                    .result = 1,
                    .handle = asked.handle,
                    .fd = 3,
                    .offset = asked.offset,
                    .size = asked.size,
                    .flags = uring ? asked.own_flags << kUringOwnFlags : asked.own_flags,
                    .arg = asked.code,
                    .request = number,
                    .list = asked.list});
        job.add(t, {.kind = uring ? OpKind::uring_complete : OpKind::aio_complete,
                    .result = asked.result,
                    .size = asked.size,
                    .request = number});
        ops += 2;
    }
    /// Replays, and compares each result.
    ReplayResult check(const std::vector<Asked>& all) {
        const uint64_t first = ops;
        for (const Asked& each : all) {
            ask(each);
        }
        const ReplayResult result = run(job);
        for (size_t i = 0; i < all.size(); ++i) {
            CAPTURE(i);
            CHECK(result_of(t, first + 2 * i) == 1);
            CHECK(result_of(t, first + 2 * i + 1) == all[i].result);
        }
        return result;
    }
};

constexpr OpKind kUring = OpKind::uring_submit, kAio = OpKind::aio_submit;

}  // namespace

TEST_CASE_FIXTURE(Requests, "io_uring: each request does what the call of its name does") {
    const ReplayResult result = check({
        {kUring, IORING_OP_NOP, in, 0, 0, 0, {}, 0},
        {kUring, IORING_OP_READ, in, 19'900, 200, 0, {}, 100},
        {kUring, IORING_OP_READ_FIXED, in, 100, 200, 0, {}, 200},
        {kUring, IORING_OP_READV, in, 19'950, 120, 0, {60, 60}, 50},
        {kUring, IORING_OP_READ, path, 0, 10, 0, {}, -EBADF},
        {kUring, IORING_OP_READ, in, -5, 10, 0, {}, -EINVAL},
        {kUring, IORING_OP_WRITE, in, 0, 10, 0, {}, -EBADF},
        {kUring, IORING_OP_WRITE, out, 100, 50, 0, {}, 50},
        {kUring, IORING_OP_WRITE_FIXED, out, 150, 50, 0, {}, 50},
        {kUring, IORING_OP_WRITEV, out, 500, 30, 0, {10, 20}, 30},
        {kUring, IORING_OP_FSYNC, out, 0, 0, 0, {}, 0},
        {kUring, IORING_OP_FSYNC, path, 0, 0, 0, {}, -EBADF},
        {kUring, IORING_OP_FSYNC, out, 0, 0, IORING_FSYNC_DATASYNC, {}, 0},
        {kUring, IORING_OP_FSYNC, path, 0, 0, IORING_FSYNC_DATASYNC, {}, -EBADF},
        {kUring, IORING_OP_SYNC_FILE_RANGE, out, 0, 500, 2, {}, 0},
        {kUring, IORING_OP_SYNC_FILE_RANGE, out, 0, 500, 64, {}, -EINVAL},
        {kUring, IORING_OP_SYNC_FILE_RANGE, out, -1, 500, 2, {}, -EINVAL},
        {kUring, IORING_OP_FALLOCATE, out, 1'000, 2'000, 0, {}, 0},
        {kUring, IORING_OP_FALLOCATE, out, 9'000, 0, 0, {}, -EINVAL},
        {kUring, IORING_OP_FADVISE, in, 0, 100, 0, {}, 0},
        {kUring, IORING_OP_FADVISE, in, 0, 100, 99, {}, -EINVAL},
    });
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    const std::string content = read_file(root / "d/out");
    REQUIRE(content.size() == 3'000);
    const auto empty = [&](size_t from, size_t to) { return content.find_first_not_of('\0', from) >= to; };
    CHECK(empty(0, 100));
    CHECK_FALSE(empty(100, 150));
    CHECK_FALSE(empty(150, 200));
    CHECK(empty(200, 500));
    CHECK_FALSE(empty(500, 530));
    CHECK(empty(530, 3'000));
}

TEST_CASE_FIXTURE(Requests, "libaio: each request does what the call of its name does") {
    const ReplayResult result = check({
        {kAio, IOCB_CMD_NOOP, in, 0, 0, 0, {}, 0},
        {kAio, IOCB_CMD_PREAD, in, 19'900, 200, 0, {}, 100},
        {kAio, IOCB_CMD_PREADV, in, 19'950, 120, 0, {60, 60}, 50},
        {kAio, IOCB_CMD_PWRITE, out, 100, 50, 0, {}, 50},
        {kAio, IOCB_CMD_PWRITEV, out, 500, 30, 0, {10, 20}, 30},
        {kAio, IOCB_CMD_FSYNC, out, 0, 0, 0, {}, 0},
        {kAio, IOCB_CMD_FSYNC, path, 0, 0, 0, {}, -EBADF},
        {kAio, IOCB_CMD_FDSYNC, out, 0, 0, 0, {}, 0},
        {kAio, IOCB_CMD_FDSYNC, path, 0, 0, 0, {}, -EBADF},
    });
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(fs::file_size(root / "d/out") == 530);
}

TEST_CASE_FIXTURE(Requests,
                  "requests that never completed, and rings of which only a part was recorded, hold nobody up") {
    const HandleId ring = job.handle(0, O_RDWR, HandleKind::other);
    const auto submit = [&](uint32_t number) {
        job.add(t, {.kind = kUring,
                    .result = 1,
                    .handle = in,
                    .fd = 3,
                    .size = 100,
                    .arg = IORING_OP_READ,
                    .request = number});
        ++ops;
    };
    const auto enter = [&](TaskId task, int64_t submits, int64_t least) {
        job.add(
            task,
            {.kind = OpKind::uring_enter, .result = submits, .handle = ring, .fd = 4, .size = submits, .arg = least});
        ops += task == t ? 1 : 0;
    };
    SUBCASE("never completed") {
        submit(1);
        submit(2);
        enter(t, 2, 1);
        job.add(t, {.kind = OpKind::uring_complete, .result = 100, .size = 100, .request = 1});
        const uint64_t result = ops++;
        enter(t, 0, 1);  // a signal ended it
        run(job);
        CHECK(result_of(t, result) == 100);
    }
    SUBCASE("nobody has seen their submission") {
        enter(t, 0, 4);
        job.add(t, {.kind = OpKind::uring_complete, .result = 100, .size = 100, .request = 9});
        submit(10);
        enter(t, 1, 5);
        job.add(t, {.kind = OpKind::uring_complete, .result = 100, .size = 100, .request = 10});
        ops += 2;
        run(job);
        CHECK(result_of(t, ops - 1) == 100);
    }
    SUBCASE("another process waits in the ring that this one filled") {
        const TaskId other = job.lone_task();
        submit(1);
        enter(t, 1, 0);
        enter(other, 0, 1);
        job.add(t, {.kind = OpKind::uring_complete, .result = 100, .size = 100, .request = 1});
        const uint64_t result = ops++;
        const ReplayResult ended = run(job);
        INFO(describe(ended));
        CHECK(ended.mismatches == 0);
        CHECK(result_of(t, result) == 100);
    }
}

TEST_CASE_FIXTURE(Requests, "requests of a run that makes them at once: nobody waits for a ring") {
    constexpr int kRequests = 40;
    const HandleId ring = job.handle(0, O_RDWR, HandleKind::other);
    for (uint32_t number = 1; number <= kRequests; ++number) {
        job.add(t, {.kind = kUring,
                    .result = 1,
                    .handle = in,
                    .fd = 3,
                    .offset = 100,
                    .size = 100,
                    .arg = IORING_OP_READ,
                    .request = number});
        job.add(t, {.kind = OpKind::uring_enter, .result = 1, .handle = ring, .fd = 4, .size = 1, .arg = 1});
        job.add(t, {.kind = OpKind::uring_complete, .result = 100, .size = 100, .request = number});
    }
    const LogReader log = job.finish();
    ReplayOptions options = afap(root);
    SUBCASE("as recorded") {}
    SUBCASE("changed") { options.access.direct = true; }
    const ReplayResult result = replay(log, options);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(result.bytes_read == kRequests * 100);
    // A wait for what never comes lasts 50 ms.
    CHECK(result.elapsed_ns < kRequests * int64_t{50'000'000} / 2);
}

TEST_CASE_FIXTURE(Requests, "requests: a run that changes nothing makes the reads, and leaves out the writes") {
    const FileId file = job.file("/d/in");
    const HandleId both = job.handle(file, O_RDWR | O_CREAT);
    job.add(t, {.kind = OpKind::open,
                .result = 9,
                .handle = both,
                .fd = -1,
                .file = file,
                .flags = O_RDWR | O_CREAT,
                .mode = 0600});
    for (const int64_t code : {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_READ, IORING_OP_WRITE}) {
        ask({kUring, code, both, 100, 200, 0, {}, 200});
    }
    const LogReader log = job.finish();
    ReplayOptions options = afap(root);
    options.read_only = true;
    SUBCASE("in a ring") {}
    SUBCASE("at once") { options.access.direct = true; }
    const ReplayResult result = replay(log, options);
    INFO(describe(result));
    CHECK(result.bytes_read == 400);
    CHECK(result.bytes_written == 0);
    // The open of the file that the job makes, two submissions and their completions.
    CHECK(result.left_out[static_cast<size_t>(LeftOut::read_only)] == 5);
    CHECK(result.left_out[static_cast<size_t>(LeftOut::unsupported)] == 0);
    CHECK(read_file(root / "d/in") == std::string(20'000, 'a'));
}

TEST_CASE_FIXTURE(Requests, "requests of an open loop are done when they are done, and not when the next one is due") {
    constexpr int64_t kApart = 20'000'000;  // ns
    constexpr int kRequests = 15;
    const HandleId ring = job.handle(0, O_RDWR, HandleKind::other);
    job.add(t, {.kind = OpKind::wait, .arg = until_arg(0)});
    int64_t now = 0;
    for (uint32_t number = 1; number <= kRequests; ++number) {
        job.add(t, {.kind = OpKind::wait,
                    .begin = kApart * number + 200'000,
                    .duration = kApart - 100'000,
                    .arg = until_arg(kApart * number)});
        now = kApart * (number + 1) + 200'000;
        if (number > 1) {
            job.add(t, {.kind = OpKind::uring_complete,
                        .begin = now,
                        .duration = 1,
                        .result = 100,
                        .size = 100,
                        .request = number - 1});
        }
        job.add(t, {.kind = kUring,
                    .begin = now,
                    .duration = 1,
                    .result = 1,
                    .handle = in,
                    .fd = 3,
                    .offset = 100,
                    .size = 100,
                    .flags = IOSQE_ASYNC,  // not done at once
                    .arg = IORING_OP_READ,
                    .request = number});
        job.add(t, {.kind = OpKind::uring_enter,
                    .begin = now,
                    .duration = 1,
                    .result = 1,
                    .handle = ring,
                    .fd = 4,
                    .size = 1});
    }
    job.add(t, {.kind = OpKind::uring_complete,
                .begin = now + 1000,
                .duration = 1,
                .result = 100,
                .size = 100,
                .request = kRequests});
    const LogReader log = job.finish();
    ReplayOptions options = afap(root);
    SUBCASE("causal") { options.pace = Pace::causal; }
    SUBCASE("timed") { options.pace = Pace::timed; }
    const ReplayResult result = replay(log, options);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    REQUIRE(result.open_loops.size() == 1);
    CHECK(result.open_loops[0].requests == kRequests);
    CHECK(result.open_loops[0].from_begin.percentile(0.5) < kApart / 2);
}

TEST_CASE_FIXTURE(Requests, "requests that are not replayed are left out, and so are their completions") {
    const auto left = [](const ReplayResult& result, LeftOut why) { return result.left_out[static_cast<size_t>(why)]; };
    SUBCASE("of kinds that no replay makes") {
        for (const int64_t code : {IORING_OP_SPLICE, IORING_OP_OPENAT, IORING_OP_CLOSE, IORING_OP_STATX,
                                   IORING_OP_MKDIRAT, IORING_OP_UNLINKAT, IORING_OP_TIMEOUT}) {
            ask({kUring, code, in, 0, 100, 0, {}, 0});
        }
        CHECK(left(run(job), LeftOut::unsupported) == 14);
    }
    SUBCASE("of a file that is not there") {
        const HandleId missing = job.open(t, job.file("/d/missing"));
        ask({kUring, IORING_OP_READ, missing, 0, 100, 0, {}, 100});
        const ReplayResult result = run(job);
        CHECK(left(result, LeftOut::not_open) == 1);
        CHECK(left(result, LeftOut::unsupported) == 1);
    }
    SUBCASE("told twice, or of a request that was not seen") {
        ask({kUring, IORING_OP_READ, in, 0, 100, 0, {}, 100});
        job.add(t, {.kind = OpKind::uring_complete, .result = 100, .size = 100, .request = 3});
        job.add(t, {.kind = OpKind::aio_complete, .result = 100, .size = 100, .request = 999});
        CHECK(left(run(job), LeftOut::unsupported) == 2);
    }
}

}  // namespace reprise::test

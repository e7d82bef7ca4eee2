// SPDX-License-Identifier: MIT
// Raw recordings to op logs: requests of io_uring that stand for calls on names and descriptors.
#include <doctest/doctest.h>
#include <linux/io_uring.h>

#include <string>
#include <utility>
#include <vector>

#include "formats/oplog/async_request.h"
#include "tests/formats/assemble/recording/raw_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr uint64_t kRing = 0x4000;

RawBytes& submit(RawJob& job, uint64_t time, uint64_t request, uint16_t opcode, int fd, int index = 0,
                 uint32_t flags = 0) {
    raw_uring record{};
    record.head.time = time;
    record.ring = kRing;
    record.request = request;
    record.fd = fd;
    record.opcode = opcode;
    record.flags = flags;
    record.result = index;
    record.length = 4096;
    return job.add(RawBytes(RAW_URING_SUBMIT, record));
}
RawBytes& complete(RawJob& job, uint64_t time, uint64_t request, uint16_t opcode, int result) {
    raw_uring record{};
    record.head.time = time;
    record.ring = kRing;
    record.request = request;
    record.fd = -1;
    record.opcode = opcode;
    record.result = result;
    return job.add(RawBytes(RAW_URING_COMPLETE, record));
}
constexpr int kHere = -100;  // AT_FDCWD

}  // namespace

TEST_CASE("an open by io_uring is an open, and its descriptor is known to others before the submitter calls again") {
    RawJob job;
    const uint64_t from = job.now;
    submit(job, from + 10 * kUs, 1, IORING_OP_OPENAT, kHere).path(1, "data/a");
    job.call_at(from + 5 * kUs, from + 20 * kUs, SYS_io_uring_enter, {9, 1, 0, 0}, 1);
    job.spawn(100, 101, 0x10f00);
    const uint64_t opened = job.now + 100 * kUs;
    complete(job, opened, 1, IORING_OP_OPENAT, 7).fd(RAW_WHICH_RESULT, RawJob::fd_of(7, 0xf1, 17, 12345));
    job.as(100, 101);
    job.now = opened + kUs;
    job.pread(7, 0xf1, 17, 0, 100);
    job.as(100, 100);
    job.now += 2 * kMs;
    job.call(SYS_close, {7}, 0).fd(0, RawJob::fd_of(7, 0xf1, 17, 12345));
    const AssembledLog log = job.assemble();
    const std::vector<Op> opens = log.of_kind(OpKind::open);
    REQUIRE(opens.size() == 1);
    CHECK(log.path_of(opens[0]) == "/home/me/data/a");
    CHECK(opens[0].result == 7);
    CHECK(log.of_kind(OpKind::pread)[0].begin - opens[0].end() == 10 * kUs);
    CHECK(log.of_kind(OpKind::pread)[0].handle == opens[0].handle);
    CHECK(log.of_kind(OpKind::close)[0].handle == opens[0].handle);
    // Its time in flight is that of its request.
    CHECK(opens[0].duration == 0);
    const std::vector<Op> asked = log.of_kind(OpKind::uring_submit), done = log.of_kind(OpKind::uring_complete);
    REQUIRE(asked.size() == 1);
    REQUIRE(done.size() == 1);
    CHECK(async_request(asked[0]).does == AsyncRequest::Does::open);
    CHECK((asked[0].handle == 0 && asked[0].file == 0 && asked[0].size == 0 && asked[0].fd == -1));
    CHECK(asked[0].begin == log.of_kind(OpKind::uring_enter)[0].begin);
    CHECK(done[0].request == asked[0].request);
    CHECK(done[0].begin == opens[0].begin);
    CHECK(done[0].result == 0);
    CHECK(log.file("/home/me/data/a").size == 12345);
    CHECK(log.counter("files_without_name") == 0);
    CHECK(log.counter("ring_calls") == 1);
    CHECK(log.tables().losses() == 0);
}

TEST_CASE("calls by io_uring stand where they were done, right before the result of their request") {
    RawJob job;
    const uint64_t from = job.now;
    for (uint64_t n = 1; n <= 3; ++n) {
        submit(job, from + (10 + n) * kUs, n, IORING_OP_STATX, kHere, 0, n == 1 ? IOSQE_IO_LINK : 0)
            .path(1, "/d/" + std::to_string(n));
    }
    complete(job, from + 20 * kUs, 2, IORING_OP_STATX, -2);
    job.call_at(from + 5 * kUs, from + 30 * kUs, SYS_io_uring_enter, {9, 3, 1, 1}, 3).fd(0, RawJob::fd_of(9, 0xf9, 99));
    complete(job, from + 40 * kUs, 1, IORING_OP_STATX, 0);
    complete(job, from + 45 * kUs, 3, IORING_OP_STATX, -13);
    job.call_at(from + 35 * kUs, from + 50 * kUs, SYS_io_uring_enter, {9, 0, 2, 1}, 0)
        .fd(0, RawJob::fd_of(9, 0xf9, 99));
    const AssembledLog log = job.assemble();
    std::vector<std::pair<OpKind, std::string>> seen;
    for (const Op& op : log.ops()) {
        if (op.kind != OpKind::compute) {
            seen.emplace_back(op.kind, op.kind == OpKind::statx ? log.path_of(op) : std::to_string(op.request));
        }
    }
    using enum OpKind;
    CHECK(seen == std::vector<std::pair<OpKind, std::string>>{{uring_submit, "1"},
                                                              {uring_submit, "2"},
                                                              {uring_submit, "3"},
                                                              {uring_enter, "0"},
                                                              {statx, "/d/2"},
                                                              {uring_complete, "2"},
                                                              {uring_enter, "0"},
                                                              {statx, "/d/1"},
                                                              {uring_complete, "1"},
                                                              {statx, "/d/3"},
                                                              {uring_complete, "3"}});
    CHECK(log.of_kind(uring_submit)[0].flags == IOSQE_IO_LINK);
    CHECK(log.of_kind(uring_complete)[2].result == -13);
}

TEST_CASE("requests submitted together keep their order, and files of the ring are no descriptors") {
    RawJob job;
    job.open("/d/zero", 0, 0xf0, 5);
    const uint64_t from = job.now;
    submit(job, from + 10 * kUs, 1, IORING_OP_OPENAT, kHere, 3).path(1, "/d/a");
    submit(job, from + 11 * kUs, 2, IORING_OP_READ, 2, 0, 1);
    submit(job, from + 12 * kUs, 3, IORING_OP_CLOSE, 0, 3).fd(0, RawJob::fd_of(0, 0xf0, 5));
    complete(job, from + 20 * kUs, 1, IORING_OP_OPENAT, 0).fd(RAW_WHICH_RESULT, RawJob::fd_of(-1, 0xf1, 17));
    complete(job, from + 30 * kUs, 2, IORING_OP_READ, 4096).fd(0, RawJob::fd_of(-1, 0xf1, 17));
    complete(job, from + 40 * kUs, 3, IORING_OP_CLOSE, 0);
    job.call_at(from + 5 * kUs, from + 50 * kUs, SYS_io_uring_enter, {9, 3, 3, 1}, 3).fd(0, RawJob::fd_of(9, 0xf9, 99));
    job.pread(0, 0xf0, 5, 0, 100);
    const AssembledLog log = job.assemble();
    std::vector<OpKind> kinds;
    for (const Op& op : log.ops()) {
        if (op.kind != OpKind::compute) {
            kinds.push_back(op.kind);
        }
    }
    using enum OpKind;
    REQUIRE(kinds == std::vector{open, open, uring_submit, close, uring_enter, uring_complete, pread});
    const Op opened = log.of_kind(open)[1], closed = log.of_kind(close)[0];
    CHECK(log.path_of(opened) == "/d/a");
    CHECK(opened.duration == 15 * kUs);  // from the begin of the call that submitted it
    CHECK(opened.begin == log.of_kind(uring_enter)[0].begin);
    CHECK(log.of_kind(uring_submit)[0].handle == opened.handle);
    CHECK(closed.handle == opened.handle);
    CHECK(closed.fd == 2);
    CHECK(log.of_kind(pread)[0].handle == log.of_kind(open)[0].handle);  // descriptor 0 is what it was
}

TEST_CASE("requests on names that failed, tell attributes, or never completed") {
    RawJob job;
    const uint64_t from = job.now;
    submit(job, from + 10 * kUs, 1, IORING_OP_OPENAT, kHere).path(1, "/d/missing");
    submit(job, from + 11 * kUs, 2, IORING_OP_STATX, kHere).path(1, "/d/a");
    submit(job, from + 12 * kUs, 3, IORING_OP_OPENAT, kHere).path(1, "/d/b");
    submit(job, from + 13 * kUs, 4, IORING_OP_OPENAT, kHere).head().flags |= RAW_FLAG_UNREADABLE;
    complete(job, from + 20 * kUs, 1, IORING_OP_OPENAT, -2);
    complete(job, from + 21 * kUs, 2, IORING_OP_STATX, 0).stat(4, 777, 0100644);
    complete(job, from + 22 * kUs, 4, IORING_OP_OPENAT, -14);
    job.call_at(from + 5 * kUs, from + 50 * kUs, SYS_io_uring_enter, {9, 4, 3, 1}, 4).fd(0, RawJob::fd_of(9, 0xf9, 99));
    const AssembledLog log = job.assemble();
    REQUIRE(log.of_kind(OpKind::open).size() == 1);
    CHECK(log.of_kind(OpKind::open)[0].result == -2);
    CHECK(log.of_kind(OpKind::open)[0].handle == 0);
    CHECK(log.of_kind(OpKind::statx).size() == 1);
    CHECK(log.file("/d/a").size == 777);
    CHECK(log.counter("ring_calls_cut") == 1);
    CHECK(log.counter("calls_with_unreadable_paths") == 1);
    // Without its call, but the job took its result.
    CHECK(log.of_kind(OpKind::uring_submit).size() == 4);
    CHECK(log.of_kind(OpKind::uring_complete).size() == 3);
}

TEST_CASE("flags of a request are kept beside those of its submission, and the length of an allocation") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    const auto ask = [&](uint16_t opcode, uint32_t own_flags, uint32_t length) -> RawBytes& {
        raw_uring record{};
        record.head.time = job.now + 10 * kUs;
        record.ring = kRing;
        record.request = record.head.time;
        record.fd = 3;
        record.opcode = opcode;
        record.flags = IOSQE_ASYNC;
        record.offset = 8192;
        record.length = length;
        record.rw_flags = own_flags;
        RawBytes& made = job.add(RawBytes(RAW_URING_SUBMIT, record)).fd(0, RawJob::fd_of(3, 0xf1, 7));
        job.now += 20 * kUs;
        return made;
    };
    ask(IORING_OP_FSYNC, IORING_FSYNC_DATASYNC, 0);
    const uint64_t allocating = job.now + 10 * kUs;
    ask(IORING_OP_FALLOCATE, 0, 1).numbers(RAW_PART_VALUES, 1, {65536});
    ask(IORING_OP_FALLOCATE, 0, 1);  // of an older recorder, which did not keep the length
    ask(IORING_OP_READ, 0, 4096);
    complete(job, job.now += 20 * kUs, allocating, IORING_OP_FALLOCATE, 0);
    job.call(SYS_close, {3}, 0).fd(0, RawJob::fd_of(3, 0xf1, 7));
    const AssembledLog log = job.assemble();
    const std::vector<Op> requests = log.of_kind(OpKind::uring_submit);
    REQUIRE(requests.size() == 4);
    CHECK(async_request(requests[0]).does == AsyncRequest::Does::sync_data);
    CHECK((requests[0].flags & 0xff) == IOSQE_ASYNC);
    const AsyncRequest allocates = async_request(requests[1]);
    CHECK((allocates.does == AsyncRequest::Does::allocate && allocates.own_flags == 1));
    CHECK((allocates.offset == 8192 && allocates.size == 65536));
    REQUIRE(log.of_kind(OpKind::uring_complete).size() == 1);
    CHECK(log.of_kind(OpKind::uring_complete)[0].size == 65536);
    CHECK((requests[3].flags == IOSQE_ASYNC && requests[3].size == 4096));
}

TEST_CASE("a request names a descriptor by its number where nothing shows its file, and a fixed file by another") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    const uint64_t from = job.now;
    submit(job, from + 10 * kUs, 1, IORING_OP_READ, 3);
    submit(job, from + 11 * kUs, 2, IORING_OP_READ, 3, 0, 1);  // fixed file 3
    job.call_at(from + 5 * kUs, from + 20 * kUs, SYS_io_uring_enter, {9, 2, 0, 0}, 2);
    complete(job, from + 30 * kUs, 1, IORING_OP_READ, 4096);
    complete(job, from + 31 * kUs, 2, IORING_OP_READ, -5);
    complete(job, from + 32 * kUs, 77, IORING_OP_READ, 1);  // of before the recording
    job.call_at(from + 40 * kUs, from + 41 * kUs, SYS_close, {3}, 0).fd(0, RawJob::fd_of(3, 0xf1, 7));
    const AssembledLog log = job.assemble();
    const std::vector<Op> asked = log.of_kind(OpKind::uring_submit), done = log.of_kind(OpKind::uring_complete);
    REQUIRE(asked.size() == 2);
    REQUIRE(done.size() == 2);
    CHECK(asked[0].handle == log.of_kind(OpKind::open)[0].handle);
    CHECK(asked[0].fd == 3);
    CHECK(asked[0].size == 4096);
    CHECK(asked[1].handle == 0);
    CHECK(asked[1].fd == 3);
    CHECK(asked[1].flags == 1);
    CHECK(done[0].request == asked[0].request);
    CHECK(done[0].result == 4096);
    CHECK(done[0].size == 4096);
    CHECK(done[1].request == asked[1].request);
    CHECK(done[1].result == -5);
    CHECK(log.counter("completions_unmatched") == 1);
}

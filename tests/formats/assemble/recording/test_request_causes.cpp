// SPDX-License-Identifier: MIT
// Raw recordings to op logs: what the job had taken, and read, when it made asynchronous requests.
#include <doctest/doctest.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>

#include "formats/assemble/recording/request_causes.h"
#include "formats/oplog/async_request.h"
#include "tests/formats/assemble/recording/raw_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr uint64_t kRing = 0x4000, kFile = 0xf1;

// A job with a ring: requests, results, calls; the job takes results when it likes.
struct Ring {
    RawJob& job;
    uint32_t taken = 0, completed = 0, behind = 0;

    RawBytes& submit(uint64_t time, uint64_t request, uint16_t opcode, uint64_t address, uint32_t bytes = 4096,
                     bool polled = false) {
        raw_uring record{};
        record.head.time = time;
        record.ring = kRing;
        record.request = request;
        record.fd = 3;
        record.file = kFile;
        record.opcode = static_cast<raw_u8>(opcode);
        record.address = address;
        record.length = bytes;
        record.sqpoll = polled;
        record.taken = taken;
        record.completed = completed;
        record.behind = behind;
        return job.add(RawBytes(RAW_URING_SUBMIT, record));
    }
    void complete(uint64_t time, uint64_t request, int32_t result = 4096) {
        raw_uring record{};
        record.head.time = time;
        record.ring = kRing;
        record.request = request;
        record.fd = -1;
        record.file = kFile;
        record.result = result;
        record.taken = taken;
        record.completed = ++completed;
        job.add(RawBytes(RAW_URING_COMPLETE, record));
    }
    void enter(uint64_t from, uint64_t to, uint64_t requests, uint64_t waits) {
        job.call_at(from, to, SYS_io_uring_enter, {9, requests, waits, 1}, static_cast<int64_t>(requests))
            .fd(0, RawJob::fd_of(9, 0xf9, 99));
    }
};

struct Found {
    uint64_t number = 0;
    Op op;
    std::vector<Edge> edges;
};
std::vector<Found> ops_of(const AssembledLog& log, OpKind kind, TaskId task = 1) {
    std::vector<Found> out;
    log.reader.for_each(task, [&](const Op& op, uint64_t number) {
        if (op.kind == kind) {
            out.push_back({number, op, {op.edges.begin(), op.edges.end()}});
        }
    });
    return out;
}
std::vector<OpKind> kinds_of(const AssembledLog& log) {
    std::vector<OpKind> out;
    for (const Op& op : log.ops()) {
        if (op.kind != OpKind::compute && op.kind != OpKind::open) {
            out.push_back(op.kind);
        }
    }
    return out;
}
using Edges = std::vector<Edge>;

}  // namespace

TEST_CASE("a request and a wait need the results that the job had taken, each told once") {
    RawJob job;
    job.open("/d/a", 3, kFile, 7);
    Ring ring{job};
    const uint64_t from = job.now;
    for (uint64_t i = 1; i <= 3; ++i) {
        ring.submit(from + 10 * kUs + i, i, IORING_OP_READ, i * 0x10000).fd(0, RawJob::fd_of(3, kFile, 7));
    }
    ring.complete(from + 50 * kUs, 2);
    ring.complete(from + 51 * kUs, 1);
    ring.enter(from + 5 * kUs, from + 60 * kUs, 3, 2);
    ring.taken = 2;
    ring.submit(from + 110 * kUs, 4, IORING_OP_READ, 0x10000);
    ring.submit(from + 111 * kUs, 5, IORING_OP_READ, 0x20000);
    ring.enter(from + 100 * kUs, from + 120 * kUs, 2, 0);
    ring.complete(from + 130 * kUs, 3);
    ring.taken = 3;
    ring.complete(from + 190 * kUs, 4);
    ring.enter(from + 150 * kUs, from + 200 * kUs, 0, 1);
    ring.taken = 4;
    ring.enter(from + 250 * kUs, from + 260 * kUs, 0, 1);  // nothing shows what was taken before it
    const AssembledLog log = job.assemble();
    using enum OpKind;
    CHECK(kinds_of(log) == std::vector{uring_submit, uring_submit, uring_submit, uring_enter, uring_complete,
                                       uring_complete, uring_submit, uring_submit, uring_enter, uring_complete,
                                       uring_enter, uring_complete, uring_enter});
    const auto asked = ops_of(log, uring_submit), done = ops_of(log, uring_complete), waits = ops_of(log, uring_enter);
    REQUIRE((asked.size() == 5 && done.size() == 4 && waits.size() == 4));
    for (size_t i = 0; i < 3; ++i) {
        CHECK(asked[i].op.begin == waits[0].op.begin);
        CHECK(asked[i].op.duration == 0);
        CHECK(asked[i].edges.empty());
    }
    CHECK(waits[0].op.duration == 55 * kUs);
    CHECK((done[0].op.request == asked[1].op.request && done[1].op.request == asked[0].op.request));
    CHECK(asked[3].edges == Edges{{1, EdgeKind::reaped, 100, done[1].number}});
    CHECK(asked[4].edges.empty());
    CHECK(waits[1].edges.empty());
    CHECK(waits[2].edges == Edges{{1, EdgeKind::reaped, 100, done[2].number}});
    CHECK(waits[3].edges.empty());
    CHECK(asked[4].op.handle == asked[0].op.handle);  // the file was told once
    CHECK(log.tables().losses() == 0);
}

TEST_CASE("a ring that was there before the recording, and whose counts pass 2^32") {
    RawJob job;
    job.open("/d/a", 3, kFile, 7);
    Ring ring{job, UINT32_MAX - 1, UINT32_MAX - 1};
    const uint64_t from = job.now;
    ring.complete(from + kUs, 77);  // of a request that was not seen
    ring.taken = ring.completed;
    for (uint64_t i = 0; i < 3; ++i) {
        const uint64_t at = from + (i + 1) * 100 * kUs;
        ring.submit(at + 10 * kUs, i + 1, IORING_OP_READ, 0x10000);
        ring.complete(at + 20 * kUs, i + 1);
        ring.enter(at, at + 30 * kUs, 1, 1);
        ring.taken = ring.completed;
    }
    const AssembledLog log = job.assemble();
    const auto asked = ops_of(log, OpKind::uring_submit), done = ops_of(log, OpKind::uring_complete);
    REQUIRE((asked.size() == 3 && done.size() == 3));
    CHECK(asked[0].edges.empty());
    CHECK(asked[1].edges == Edges{{1, EdgeKind::reaped, 100, done[0].number}});
    CHECK(asked[2].edges == Edges{{1, EdgeKind::reaped, 100, done[1].number}});
}

TEST_CASE("a write of what a request read needs that request, also of a part of it") {
    RawJob job;
    job.open("/d/a", 3, kFile, 7);
    Ring ring{job};
    const uint64_t from = job.now;
    ring.submit(from + 10 * kUs, 1, IORING_OP_READ, 0x10000);
    ring.submit(from + 11 * kUs, 2, IORING_OP_READV, 0x20000, 2).numbers(RAW_PART_LIST, 1, {100, 4096});
    ring.complete(from + 20 * kUs, 2, 4196);
    ring.complete(from + 21 * kUs, 1, 2000);
    ring.enter(from + 5 * kUs, from + 30 * kUs, 2, 2);
    ring.submit(from + 50 * kUs, 3, IORING_OP_WRITE, 0x10000 + 1999, 10);
    ring.submit(from + 51 * kUs, 4, IORING_OP_WRITE, 0x10000 + 2000, 10);
    ring.submit(from + 52 * kUs, 5, IORING_OP_WRITE_FIXED, 0x20000, 4096);
    ring.submit(from + 53 * kUs, 6, IORING_OP_WRITE, 0x20000 + 100, 4096);
    ring.submit(from + 54 * kUs, 7, IORING_OP_READ, 0x10000);
    ring.enter(from + 45 * kUs, from + 60 * kUs, 5, 0);
    const AssembledLog log = job.assemble();
    const auto asked = ops_of(log, OpKind::uring_submit), done = ops_of(log, OpKind::uring_complete);
    REQUIRE((asked.size() == 7 && done.size() == 2));
    CHECK(asked[2].edges == Edges{{1, EdgeKind::resource, 100, done[1].number}});
    CHECK(asked[3].edges.empty());
    CHECK(asked[4].edges == Edges{{1, EdgeKind::resource, 100, done[0].number}});
    CHECK(asked[5].edges.empty());
    CHECK(asked[6].edges.empty());
}

TEST_CASE("what the job had taken counts from when it made a request, not from when the polling thread came to it") {
    RawJob job;
    job.open("/d/a", 3, kFile, 7);
    Ring ring{job};
    const uint64_t from = job.now;
    const auto polled = [&](uint64_t us, uint64_t request, uint32_t taken, uint32_t behind) {
        ring.taken = taken;
        ring.behind = behind;
        ring.submit(from + us * kUs, request, IORING_OP_READ, request << 16, 4096, true);
    };
    polled(10, 1, 0, 2);  // two more were in line then
    ring.complete(from + 11 * kUs, 1);
    polled(12, 2, 1, 1);  // made before the result of 1 was taken
    ring.complete(from + 13 * kUs, 2);
    polled(14, 3, 2, 1);  // so was this one, but not the one behind it
    ring.complete(from + 15 * kUs, 3);
    polled(16, 4, 3, 0);
    polled(17, 5, 3, 0);
    job.call_at(from + 50 * kUs, from + 60 * kUs, SYS_fsync, {3}, 0);
    const AssembledLog log = job.assemble();
    const auto asked = ops_of(log, OpKind::uring_submit), done = ops_of(log, OpKind::uring_complete);
    REQUIRE((asked.size() == 5 && done.size() == 3));
    CHECK(asked[0].edges.empty());
    CHECK(asked[1].edges.empty());
    CHECK(asked[2].edges.empty());
    CHECK(asked[3].edges == Edges{{1, EdgeKind::reaped, 100, done[1].number}});
    CHECK(asked[4].edges == Edges{{1, EdgeKind::reaped, 100, done[2].number}});
}

TEST_CASE("the line before a polling thread: requests refused at once, counts beyond 2^32, another ring") {
    PolledLines lines;
    CHECK(lines.came_to(1, 3, 10) == 10);
    CHECK(lines.came_to(1, 1, 12) == 10);  // one of the three was refused
    CHECK(lines.came_to(1, 2, 13) == 10);
    CHECK(lines.came_to(1, 1, 14) == 13);
    CHECK(lines.came_to(2, 0, 5) == 5);
    CHECK(lines.came_to(1, 0, 2) == 2);
    CHECK(lines.came_to(3, 1, UINT32_MAX) == UINT32_MAX);
    CHECK(lines.came_to(3, 0, 4) == UINT32_MAX);
    CHECK(lines.came_to(4, UINT32_MAX, 1) == 1);
    CHECK(lines.came_to(4, 0, 2) == 1);
}

TEST_CASE("requests that the polling thread took, and those of a call that never returned") {
    RawJob job;
    job.open("/d/a", 3, kFile, 7);
    Ring ring{job};
    const uint64_t from = job.now;
    ring.submit(from + 10 * kUs, 1, IORING_OP_READ, 0x10000, 4096, true);
    ring.complete(from + 20 * kUs, 1);
    ring.submit(from + 60 * kUs, 2, IORING_OP_READ, 0x10000);
    job.call_at(from + 50 * kUs, from + 90 * kUs, SYS_io_uring_enter, {9, 1, 1, 1}, 0).head().flags =
        RAW_FLAG_UNFINISHED;
    const AssembledLog log = job.assemble();
    using enum OpKind;
    CHECK(kinds_of(log) == std::vector{uring_submit, uring_complete, uring_submit, wait});
    const auto asked = ops_of(log, uring_submit);
    CHECK(asked[0].op.flags == kUringPolled);
    CHECK(asked[0].op.begin - ops_of(log, open)[0].op.end() == 10 * kUs);
    CHECK(async_request(asked[0].op).own_flags == 0);
    CHECK(asked[1].op.flags == 0);
    CHECK(asked[1].op.begin == ops_of(log, wait)[0].op.begin);
}

TEST_CASE("a call that takes results of libaio has its time, also where it took none; results have none") {
    RawJob job;
    job.open("/d/a", 3, kFile, 7);
    const auto submit = [&](uint64_t iocb, uint16_t opcode, uint64_t buffer) {
        raw_iocb block{};
        block.iocb = iocb;
        block.opcode = opcode;
        block.buffer = buffer;
        block.length = 4096;
        block.fd = 3;
        job.call(SYS_io_submit, {1, 1, 0x1000}, 1)
            .part(RAW_PART_IOCB, 2, &block, sizeof block, 1)
            .fd(2, RawJob::fd_of(3, kFile, 7));
    };
    submit(0x10, IOCB_CMD_PREAD, 0x10000);
    submit(0x20, IOCB_CMD_PREAD, 0x20000);
    const uint64_t from = job.now + 10 * kUs;
    job.off(from + 10 * kUs, from + 40 * kUs, from + 41 * kUs, SYS_io_getevents);
    RawBytes& reap = job.call_at(from, from + 50 * kUs, SYS_io_getevents, {1, 2, 8, 0x3000, 0}, 2);
    for (const uint64_t iocb : {0x20, 0x10}) {
        raw_aio_event event{};
        event.iocb = iocb;
        event.result = 4096;
        reap.part(RAW_PART_EVENT, 3, &event, sizeof event, 1);
    }
    job.call(SYS_io_pgetevents, {1, 0, 4, 0x3000, 0}, 0, 2 * kUs);
    submit(0x10, IOCB_CMD_PWRITE, 0x20000);
    const AssembledLog log = job.assemble();
    using enum OpKind;
    CHECK(kinds_of(log) ==
          std::vector{aio_submit, aio_submit, aio_reap, aio_complete, aio_complete, aio_reap, aio_submit});
    const auto reaps = ops_of(log, aio_reap), done = ops_of(log, aio_complete), asked = ops_of(log, aio_submit);
    REQUIRE((reaps.size() == 2 && done.size() == 2 && asked.size() == 3));
    CHECK((reaps[0].op.size == 8 && reaps[0].op.arg == 2 && reaps[0].op.result == 2));
    CHECK(reaps[0].op.duration == 50 * kUs);
    CHECK((done[0].op.begin == reaps[0].op.end() && done[0].op.duration == 0 && done[1].op.duration == 0));
    CHECK(done[0].op.request == asked[1].op.request);
    CHECK((reaps[1].op.size == 4 && reaps[1].op.arg == 0 && reaps[1].op.result == 0));
    CHECK(reaps[1].op.duration == 2 * kUs);
    CHECK(asked[2].edges == Edges{{1, EdgeKind::resource, 100, done[0].number}});
}

TEST_CASE("who wakes a call that takes results of libaio is the cause of that call, not of what it took") {
    RawJob job;
    job.open("/d/a", 3, kFile, 7);
    job.spawn(100, 101, 0x10f00);
    raw_iocb block{};
    block.iocb = 0x10;
    block.length = 4096;
    block.fd = 3;
    const uint64_t from = job.now + 50 * kUs;
    job.as(100, 101);
    job.call_at(from + 10 * kUs, from + 30 * kUs, SYS_io_submit, {1, 1, 0x1000}, 1)
        .part(RAW_PART_IOCB, 2, &block, sizeof block, 1)
        .fd(2, RawJob::fd_of(3, kFile, 7));
    job.as(100, 100);
    job.woken(from + 5 * kUs, from + 20 * kUs, from + 35 * kUs, SYS_io_getevents, 100, 101, SYS_io_submit,
              from + 10 * kUs);
    raw_aio_event event{};
    event.iocb = 0x10;
    event.result = 4096;
    job.call_at(from, from + 40 * kUs, SYS_io_getevents, {1, 1, 8, 0x3000, 0}, 1)
        .part(RAW_PART_EVENT, 3, &event, sizeof event, 1);
    const AssembledLog log = job.assemble();
    const auto reaps = ops_of(log, OpKind::aio_reap), done = ops_of(log, OpKind::aio_complete);
    const auto asked = ops_of(log, OpKind::aio_submit, 2);
    REQUIRE((reaps.size() == 1 && done.size() == 1 && asked.size() == 1));
    CHECK(reaps[0].edges == Edges{{2, EdgeKind::wake, 100, asked[0].number}});
    CHECK(done[0].edges.empty());
    CHECK(ops_of(log, OpKind::wait).empty());
}

TEST_CASE("memory that requests filled: what lies apart, over another piece, amid one") {
    FilledMemory memory;
    const auto by = [&](uint64_t address, uint64_t bytes) { return memory.by(address, bytes, 1); };
    using Ops = std::vector<uint64_t>;
    memory.filled(1000, 100, 1, 5);
    CHECK(by(999, 1).empty());
    CHECK(by(999, 2) == Ops{5});
    CHECK(by(1099, 1) == Ops{5});
    CHECK(by(1100, 1).empty());
    CHECK(memory.by(1000, 1, 2).empty());  // another task's
    memory.filled(1040, 20, 1, 6);
    CHECK(by(1039, 1) == Ops{5});
    CHECK(by(1059, 1) == Ops{6});
    CHECK(by(1060, 1) == Ops{5});
    CHECK(by(1000, 100) == Ops{5, 6});
    memory.filled(1050, 30, 1, 7);
    CHECK(by(1049, 1) == Ops{6});
    CHECK(by(1079, 1) == Ops{7});
    CHECK(by(1080, 20) == Ops{5});
    memory.filled(900, 500, 1, 8);
    CHECK(by(0x1, 5000) == Ops{8});
    memory.filled(0, 100, 1, 9);
    memory.filled(UINT64_MAX, 2, 1, 9);
    CHECK(by(50, 10).empty());
    CHECK(by(UINT64_MAX, 2).empty());
    memory.clear();
    CHECK(by(900, 500).empty());
}

TEST_CASE("a ring whose address another one gets begins to count anew") {
    TakenResults results;
    results.posted(kRing, 8, 1, 80);
    results.posted(kRing, 9, 1, 90);
    CHECK(results.taken(kRing, 8, 2) == std::nullopt);
    CHECK(results.taken(kRing + 1, 8, 1) == std::nullopt);
    CHECK(results.taken(kRing, 7, 1) == std::nullopt);
    CHECK(results.taken(kRing, 8, 1) == 80);
    CHECK(results.taken(kRing, 8, 1) == std::nullopt);
    results.posted(kRing, 1, 1, 100);
    CHECK(results.taken(kRing, 0, 1) == std::nullopt);
    CHECK(results.taken(kRing, 1, 1) == 100);
    CHECK(results.taken(kRing, 9, 1) == std::nullopt);
}

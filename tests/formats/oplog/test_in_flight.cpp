// SPDX-License-Identifier: MIT
// Requests from submission to completion: which ring, how long, how many at a time.
#include "formats/oplog/in_flight.h"

#include <doctest/doctest.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>

#include <algorithm>
#include <random>

using namespace reprise;

namespace {

Tables some_tables() {
    Tables tables;
    tables.processes.resize(3);
    tables.processes[1].pid = 100;
    tables.processes[2].pid = 200;
    tables.tasks.resize(5);
    tables.tasks[1].process = tables.tasks[2].process = 1;
    tables.tasks[3].process = tables.tasks[4].process = 2;
    tables.handles.resize(30);
    tables.handles[1].file = 7;
    tables.files.resize(8);
    return tables;
}

/// Feeds ops as a log has them.
struct Feed {
    const Tables tables = some_tables();
    std::vector<DoneRequest> done;
    InFlightCounter counter;
    RequestMatcher matcher{tables, [this](const DoneRequest& request) {
                               done.push_back(request);
                               counter.add(request);
                           }};
    InFlight finish() {
        matcher.finish();
        return counter.finish(matcher);
    }

    void submit(TaskId task, uint32_t request, int64_t begin, int64_t code = IORING_OP_READ, int64_t flags = 0) {
        Op op;
        op.kind = OpKind::uring_submit;
        op.request = request;
        op.handle = 1;
        op.size = 4096;
        op.begin = begin;
        op.arg = code;
        op.flags = flags;
        matcher.add(task, op);
    }
    void enter(TaskId task, HandleId handle, int64_t begin) {
        Op op;
        op.kind = OpKind::uring_enter;
        op.handle = handle;
        op.fd = static_cast<int32_t>(handle) + 100;
        op.begin = begin;
        matcher.add(task, op);
    }
    void complete(TaskId task, uint32_t request, int64_t begin, int64_t duration = 0, int64_t result = 4096) {
        Op op;
        op.kind = OpKind::uring_complete;
        op.request = request;
        op.begin = begin;
        op.duration = duration;
        op.result = result;
        matcher.add(task, op);
    }
    void aio(TaskId task, uint32_t request, int64_t begin, bool completes, int64_t code = IOCB_CMD_PWRITE) {
        Op op;
        op.kind = completes ? OpKind::aio_complete : OpKind::aio_submit;
        op.request = request;
        op.begin = begin;
        op.arg = code;
        op.result = completes ? 512 : 0;
        matcher.add(task, op);
    }
};

std::vector<std::pair<int64_t, uint64_t>> parts(const Histogram& depth) {
    std::vector<std::pair<int64_t, uint64_t>> out;
    depth.each([&](int64_t value, uint64_t count) { out.emplace_back(value, count); });
    return out;
}

using Parts = std::vector<std::pair<int64_t, uint64_t>>;

}  // namespace

TEST_CASE("requests in flight: latency, bytes and how long how many") {
    Feed feed;
    feed.submit(1, 1, 0);
    feed.submit(1, 2, 0);
    feed.enter(1, 5, 0);
    feed.complete(1, 1, 100);
    feed.submit(1, 3, 150, IORING_OP_WRITE);
    feed.enter(1, 5, 150);
    feed.complete(1, 2, 200, 50);  // done at 250, as a run's log has it
    feed.complete(1, 3, 400, 0, -EIO);
    const InFlight seen = feed.finish();
    CHECK(seen.all.requests == 3);
    CHECK(seen.all.reads == 2);
    CHECK(seen.all.writes == 1);
    CHECK(seen.all.failed == 1);
    CHECK(seen.all.bytes_read == 8192);
    CHECK(seen.all.bytes_written == 0);
    CHECK(seen.unfinished == 0);
    CHECK(seen.all.latency.min() == 100);
    CHECK(seen.all.latency.percentile(0.5) == 250);
    CHECK(seen.all.latency.max() == 250);
    // 0..100: 2; ..150: 1; ..250: 2; ..400: 1
    CHECK(parts(seen.all.depth) == Parts{{1, 200}, {2, 200}});
    CHECK(seen.all.depth.mean() == 1.5);
    REQUIRE(seen.rings.size() == 1);
    CHECK(ring_name(seen.rings[0].ring) == "io_uring, fd 105");
    CHECK(seen.rings[0].ring.pid == 100);
    CHECK(parts(seen.rings[0].depth) == parts(seen.all.depth));
    CHECK(feed.done[0].file == 7);
    // Equal parts of 400 ns.
    REQUIRE(seen.over_time.size() == InFlight::kParts);
    CHECK(seen.over_time[0] == doctest::Approx(2));
    CHECK(seen.over_time[InFlight::kParts - 1] == doctest::Approx(1));
    double sum = 0;
    for (const double part : seen.over_time) {
        sum += part;
    }
    CHECK(sum / InFlight::kParts == doctest::Approx(1.5));
}

TEST_CASE("requests in flight: rings are told apart, and the whole is what they have together") {
    Feed feed;
    feed.submit(1, 1, 0);
    feed.enter(1, 5, 0);
    feed.submit(1, 2, 10);
    feed.enter(1, 6, 10);
    feed.complete(1, 1, 30);
    feed.complete(1, 2, 40);
    feed.submit(3, 3, 20);
    feed.enter(3, 5, 20);  // the same handle in another process
    feed.complete(3, 3, 50);
    const InFlight seen = feed.finish();
    REQUIRE(seen.rings.size() == 3);
    CHECK(seen.rings[0].ring.handle == 5);
    CHECK(seen.rings[1].ring.handle == 6);
    CHECK(seen.rings[2].ring.process == 2);
    for (const RingFigures& ring : seen.rings) {
        CHECK(parts(ring.depth) == Parts{{1, 30}});
    }
    // 0..10: 1, ..20: 2, ..30: 3, ..40: 2, ..50: 1
    CHECK(parts(seen.all.depth) == Parts{{1, 20}, {2, 20}, {3, 10}});
}

TEST_CASE("requests in flight: what does not occupy the storage, never ends or never began is in no depth") {
    Feed feed;
    feed.submit(1, 1, 0, IORING_OP_TIMEOUT);
    feed.submit(1, 2, 0, IORING_OP_NOP);
    feed.submit(1, 3, 0);
    feed.submit(1, 4, 0, IORING_OP_FSYNC);
    feed.enter(1, 5, 0);
    feed.complete(1, 1, 1000);
    feed.complete(1, 2, 1000);
    feed.complete(1, 4, 20, 0, 0);
    feed.complete(1, 99, 30);
    feed.submit(1, 0, 40);
    const InFlight seen = feed.finish();
    CHECK(seen.unfinished == 1);
    CHECK(seen.all.requests == 1);
    CHECK((seen.all.reads == 0 && seen.all.writes == 0));
    CHECK(parts(seen.all.depth) == Parts{{1, 20}});
    CHECK(seen.by_kind[static_cast<size_t>(AsyncRequest::Does::other)] == 1);
    CHECK(seen.by_kind[static_cast<size_t>(AsyncRequest::Does::nothing)] == 1);
    CHECK(seen.by_kind[static_cast<size_t>(AsyncRequest::Does::sync)] == 1);
    CHECK(seen.by_kind[static_cast<size_t>(AsyncRequest::Does::read)] == 0);
}

TEST_CASE("requests in flight: libaio is one ring per process, reaped by any of its tasks") {
    Feed feed;
    feed.aio(1, 2, 60, true);  // task 2, whose ops come later, submits it
    feed.aio(2, 1, 0, false);
    feed.aio(2, 2, 10, false);
    feed.aio(2, 1, 40, true);
    feed.aio(3, 3, 0, false);
    feed.aio(4, 3, 5, true);
    const InFlight seen = feed.finish();
    REQUIRE(seen.rings.size() == 2);
    CHECK(seen.rings[0].ring.aio);
    CHECK(ring_name(seen.rings[0].ring) == "libaio");
    CHECK(seen.rings[0].requests == 2);
    CHECK(seen.rings[0].bytes_written == 1024);
    CHECK(parts(seen.rings[0].depth) == Parts{{1, 30}, {2, 30}});
    CHECK(parts(seen.rings[1].depth) == Parts{{1, 5}});
}

TEST_CASE("requests in flight: a polled ring that its task enters late, or never") {
    Feed feed;
    feed.submit(1, 1, 0, IORING_OP_READ, kUringPolled);
    feed.complete(1, 1, 10);
    CHECK(feed.done.empty());
    feed.enter(1, 5, 20);
    CHECK(feed.done.size() == 1);
    feed.submit(3, 2, 0, IORING_OP_READ, kUringPolled);
    feed.complete(3, 2, 10);
    const InFlight seen = feed.finish();
    REQUIRE(seen.rings.size() == 2);
    CHECK((seen.rings[0].ring.polled && seen.rings[1].ring.polled));
    CHECK(seen.rings[0].ring.handle == 5);
    CHECK(seen.rings[1].ring.handle == 0);
    CHECK(ring_name(seen.rings[1].ring) == "io_uring");
}

TEST_CASE("requests in flight: many of them, in any order, as a plain count says") {
    Feed feed;
    std::mt19937_64 random(7);
    std::vector<std::pair<int64_t, int>> changes;
    uint32_t number = 0;
    for (int n = 0; n < 60'000; ++n) {
        DoneRequest request;
        request.number = ++number;
        request.what.does = AsyncRequest::Does::read;
        // Mostly in order; every 5,000th a stretch from before.
        request.begin = 50 * static_cast<int64_t>(n % 5'000 < 100 ? n / 2 : n) + static_cast<int64_t>(random() % 50);
        request.end = request.begin + static_cast<int64_t>(random() % 2'000);
        feed.counter.add(request);
        changes.emplace_back(request.begin, 1);
        changes.emplace_back(request.end, -1);
    }
    feed.aio(1, 1, 0, false);  // the ring's name
    std::sort(changes.begin(), changes.end());
    Histogram plain;
    int64_t now = 0, since = 0;
    for (const auto& [at, by] : changes) {
        if (now > 0 && at > since) {
            plain.add(now, static_cast<uint64_t>(at - since));
        }
        since = at;
        now += by;
    }
    const InFlight seen = feed.finish();
    CHECK(seen.all.requests == 60'000);
    CHECK(parts(seen.all.depth) == parts(plain));
}

TEST_CASE("shares of the time by depth: each for itself up to 128, or doubling") {
    Histogram depth;
    depth.add(1, 10);
    depth.add(3, 20);
    depth.add(4, 30);
    depth.add(128, 20);
    depth.add(129, 10);
    depth.add(250, 10);
    const auto exact = depth_shares(depth), doubling = depth_shares(depth, true);
    REQUIRE(exact.size() == 5);
    CHECK((exact[1].from == 3 && exact[1].to == 3 && exact[1].share == doctest::Approx(0.2)));
    CHECK((exact[3].from == 128 && exact[3].to == 128));
    CHECK((exact[4].from == 129 && exact[4].to == 256 && exact[4].share == doctest::Approx(0.2)));
    REQUIRE(doubling.size() == 4);
    CHECK((doubling[1].from == 3 && doubling[1].to == 4 && doubling[1].share == doctest::Approx(0.5)));
    CHECK((doubling[2].from == 65 && doubling[2].to == 128));
    CHECK(depth_shares(Histogram()).empty());
}

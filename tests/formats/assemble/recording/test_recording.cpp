// SPDX-License-Identifier: MIT
// Raw recordings to op logs: time between calls, edges, touches, losses.
#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "formats/import/importer.h"
#include "formats/support/error.h"
#include "tests/formats/assemble/recording/raw_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr uint64_t t0 = RawJob::kStart;

std::vector<OpKind> kinds(const AssembledLog& log, TaskId task = 1) {
    std::vector<OpKind> out;
    for (const Op& op : log.ops(task)) {
        out.push_back(op.kind);
    }
    return out;
}

}  // namespace

TEST_CASE("a file is opened, read and closed") {
    RawJob job;
    job.open("data/a", 3, 0xf1, 7, 10000);
    job.pread(3, 0xf1, 7, 4096, 4096);
    RawBytes& at_position = job.call(SYS_read, {3, 0x9000, 4096}, 1808);
    raw_fd fd = RawJob::fd_of(3, 0xf1, 7);
    fd.position = 10000;
    at_position.fd(0, fd);
    job.call(SYS_close, {3}, 0).fd(0, fd);
    const AssembledLog log = job.assemble();
    using enum OpKind;
    CHECK(kinds(log) == std::vector{open, compute, pread, compute, OpKind::read, compute, close});
    CHECK(log.path_of(log.ops()[0]) == "/home/me/data/a");
    const Op got = log.of_kind(OpKind::read)[0];
    CHECK(got.offset == 8192);
    CHECK(got.result == 1808);
    CHECK(got.handle == log.of_kind(open)[0].handle);
    const FileRow file = log.file("/home/me/data/a");
    CHECK(file.size == 10000);
    CHECK(file.size_exact);
    CHECK(file.inode == 7);
    CHECK(file.device == 0x801);
    CHECK(file.origin == Origin::existed);
    CHECK(file.role == Role::dataset);
    CHECK(log.reader.header().source == "capture");
    CHECK(log.reader.header().command == "job");
    CHECK(log.tables().losses() == 0);
    CHECK(log.ops()[1].begin == log.ops()[0].end());
    CHECK(log.ops()[1].duration == 9000);
    CHECK(log.ops()[1].flags == 3);
}

TEST_CASE("time between calls: computing, waiting for a processor, idling") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);  // t0+9..10 us
    const uint64_t from = job.now;
    job.off(from + 10 * kUs, 0, from + 30 * kUs, 0xffff, RAW_OFF_RUNNABLE);  // preempted for 20 us
    job.off(from + 50 * kUs, from + 150 * kUs, from + 160 * kUs, 0xffff);    // stopped: idle 100 us
    job.off(from + 200 * kUs, from + 300 * kUs, from + 310 * kUs, SYS_ioctl,
            RAW_OFF_SLEEPING);  // ioctl, not in the table
    job.call_at(from + 400 * kUs, from + 401 * kUs, SYS_pread64, {3, 0x9000, 10, 0}, 10)
        .fd(0, RawJob::fd_of(3, 0xf1, 7));
    const AssembledLog log = job.assemble();
    const auto ops = log.ops();
    using enum OpKind;
    REQUIRE(kinds(log) == std::vector{open, compute, idle, compute, wait, compute, pread});
    CHECK(ops[1].duration == 30 * kUs);  // 10 before and 20 after the preemption
    CHECK(ops[2].duration == 100 * kUs);
    CHECK(ops[3].duration == 40 * kUs);
    CHECK(ops[4].arg == 0);
    CHECK(ops[4].duration == 100 * kUs);
    CHECK(ops[5].duration == 90 * kUs);
    CHECK(log.reader.header().extra.at("capture.run_queue_ns") == "40000");
    SUBCASE("short stretches are only distance") {
        RawAssembleOptions options;
        options.least_compute_ns = 35 * kUs;
        const AssembledLog coarse = job.assemble(options);
        CHECK(kinds(coarse) == std::vector{open, idle, compute, wait, compute, pread});
    }
}

TEST_CASE("the memory that the largest process held is kept") {
    RawJob job;
    raw_spawn spawn{};
    spawn.head.time = job.now + 1;
    spawn.child_pid = spawn.child_tid = 200;
    job.add(RawBytes(RAW_SPAWN, spawn));
    job.call(SYS_fork, {}, 200);
    job.as(200, 200);
    job.exit(0, true, 0, 3 << 20);
    job.as(100, 100);
    job.exit(0, true, 0, 2 << 20);
    CHECK(job.assemble().reader.header().extra.at("capture.peak_memory_bytes") == "3145728");
}

TEST_CASE("what the recorder takes between calls is not computing") {
    RawJob job;
    job.open("data/a", 3, 0xf1, 7, 10000);
    for (int i = 0; i < 3000; ++i) {
        job.pread(3, 0xf1, 7, 4096, 4096);
        job.now -= 8'600;  // 400 ns to the next call, then now and then 2.4 us
        if (i % 10 == 0) {
            job.now += 2'000;
        }
    }
    const AssembledLog log = job.assemble();
    CHECK(log.reader.header().extra.at("capture.call_gap_ns") == "400");
    const std::vector<Op> computed = log.of_kind(OpKind::compute);
    REQUIRE(computed.size() >= 299);
    CHECK(computed[5].duration == 2'000);
}

namespace {

// Calls whose distances are `before` + `own` + `computing` + now and then 2 us.
AssembledLog calls_apart(uint64_t before, uint32_t own, uint64_t computing, const std::string& meta) {
    RawJob job(meta);
    job.open("data/a", 3, 0xf1, 7, 10000);
    job.own = own;
    for (int i = 0; i < 3000; ++i) {
        job.now = job.now - 9'000 + before + own + computing;
        if (i % 10 == 0) {
            job.now += 2'000;
        }
        job.pread(3, 0xf1, 7, 4096, 4096);
    }
    return job.assemble();
}

}  // namespace

TEST_CASE("what the recorder took after a call is told by the next one, and is not computing") {
    const AssembledLog log = calls_apart(300, 700, 0, R"({"command":["job"]})");
    CHECK(log.reader.header().extra.at("capture.call_gap_ns") == "1000");
    const std::vector<Op> computed = log.of_kind(OpKind::compute);
    REQUIRE(computed.size() >= 299);
    CHECK(computed[5].duration == 2'000);
}

TEST_CASE("how much longer a call takes bounds what is taken for the recorder's") {
    const std::string meta = R"({"command":["job"],"more_per_call_ns":250})";
    const auto at = [&](uint64_t before, uint64_t computing) { return calls_apart(before, 100, computing, meta); };
    const auto gap = [](const AssembledLog& log) { return log.reader.header().extra.at("capture.call_gap_ns"); };
    CHECK(gap(at(300, 0)) == "400");
    CHECK(gap(at(100, 0)) == "350");             // not less than what was measured
    const AssembledLog always = at(300, 1'500);  // computes before every call: some of that would be the recorder's
    CHECK(gap(always) == "650");
    const std::vector<Op> computed = always.of_kind(OpKind::compute);
    REQUIRE(computed.size() >= 2'990);
    CHECK(computed[5].duration == 1'250);
    CHECK(gap(at(300, 8'000)) == "450");  // no short distance at all: the usual
    const AssembledLog strange = calls_apart(300, 100, 0, R"({"command":["job"],"more_per_call_ns":"many"})");
    CHECK(gap(strange) == "400");
}

TEST_CASE("what the recorder took around calls that are no ops is not computing either") {
    RawJob job(R"({"command":["job"],"more_per_call_ns":300})");
    job.open("/d/a", 3, 0xf1, 7);
    const uint64_t from = job.now;
    job.own = 600;
    for (uint64_t i = 1; i <= 10; ++i) {
        job.call_at(from + i * 2 * kUs, from + i * 2 * kUs + 500, SYS_poll, {0, 0, 0}, 1);  // polls
    }
    job.call_at(from + 30 * kUs, from + 31 * kUs, SYS_pread64, {3, 0x9000, 10, 0}, 10).fd(0, RawJob::fd_of(3, 0xf1, 7));
    const AssembledLog log = job.assemble();
    const std::vector<Op> computed = log.of_kind(OpKind::compute);
    REQUIRE(computed.size() == 1);
    CHECK(computed[0].duration == 30 * kUs - 11 * (400 + 600));
}

TEST_CASE("what the host took from a processor is not computing") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    const uint64_t from = job.now;
    job.stolen(from + 80 * kUs, 30 * kUs);
    job.off(from + 100 * kUs, from + 200 * kUs, from + 200 * kUs, 0xffff);
    job.stolen(from + 250 * kUs, 50 * kUs);  // all since it went on
    job.call_at(from + 251 * kUs, from + 252 * kUs, SYS_pread64, {3, 0x9000, 10, 0}, 10)
        .fd(0, RawJob::fd_of(3, 0xf1, 7));
    const AssembledLog log = job.assemble();
    const auto ops = log.ops();
    using enum OpKind;
    REQUIRE(kinds(log) == std::vector{open, compute, idle, compute, pread});
    CHECK(ops[1].duration == 70 * kUs);
    CHECK(ops[3].duration == 1 * kUs);
    CHECK(ops[4].begin == ops[0].end() + static_cast<int64_t>(251 * kUs));  // nothing moves
    CHECK(log.reader.header().extra.at("capture.stolen_ns") == "80000");
    CHECK_FALSE(log.reader.header().extra.contains("capture.run_queue_ns"));
}

TEST_CASE("waits that did not block are computing; others know who woke them") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    const uint64_t from = job.now;
    job.call_at(from + 5 * kUs, from + 6 * kUs, SYS_poll, {0, 0, 0}, 1);  // poll that did not sleep
    // Task 200 sleeps in a futex wait until task 100 wakes it, and returns before the waking call does.
    job.as(100, 200);
    job.woken(from + 10 * kUs, from + 102 * kUs, from + 103 * kUs, SYS_futex, 100, 100, SYS_futex, from + 100 * kUs);
    job.call_at(from + 9 * kUs, from + 104 * kUs, SYS_futex, {0x7000, 0x80, 5, 0}, 0);
    job.as(100, 100);
    job.call_at(from + 100 * kUs, from + 110 * kUs, SYS_futex, {0x7000, 0x81, 1}, 1);
    const AssembledLog log = job.assemble();
    using enum OpKind;
    CHECK(kinds(log, 1) == std::vector{open, compute, wait});
    CHECK(log.ops(1)[1].duration == 100 * kUs);
    CHECK(log.ops(1)[2].arg == 6);
    REQUIRE(kinds(log, 2) == std::vector{wait});
    CHECK(log.ops(2)[0].arg == 1);
    CHECK(edges_of(log, 2, 0) == std::vector<Edge>{{1, EdgeKind::wake, 100, 2}});
}

TEST_CASE("a waker whose call goes on and on stands for what it did before") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    const uint64_t from = job.now;
    job.as(100, 200);
    job.woken(from + 10 * kUs, from + 102 * kUs, from + 103 * kUs, SYS_read, 100, 100, SYS_write, from + 100 * kUs);
    job.call_at(from + 9 * kUs, from + 104 * kUs, SYS_read, {5, 0x9000, 100}, 0).fd(0, RawJob::pipe_of(5, 0xf5, 50));
    job.as(100, 100);
    job.off(from + 120 * kUs, from + 400 * kMs, from + 499 * kMs, SYS_write);
    job.call_at(from + 100 * kUs, from + 500 * kMs, SYS_write, {6, 0x9000, 100}, 100)
        .fd(0, RawJob::pipe_of(6, 0xf6, 51));
    const AssembledLog log = job.assemble();
    using enum OpKind;
    CHECK(kinds(log, 1) == std::vector{open, compute, send});
    // op 1 computes until the write
    CHECK(edges_of(log, 2, 0) == std::vector<Edge>{{1, EdgeKind::wake, 100, 1}});
}

TEST_CASE("messages are matched by their bytes") {
    RawJob job;
    const auto pipe_end = [](int fd) { return RawJob::pipe_of(fd, fd == 5 ? 0xf5 : 0xf6, 50); };
    job.call(SYS_pipe2, {0x1000, 0}, 0).fd(RAW_WHICH_RESULT, pipe_end(5)).fd(RAW_WHICH_RESULT2, pipe_end(6));
    job.spawn(200, 200, 0x1200011);
    job.call(SYS_write, {6, 0x9000, 100}, 100).fd(0, pipe_end(6));
    job.call(SYS_write, {6, 0x9000, 50}, 50).fd(0, pipe_end(6));
    job.as(200, 200);
    job.call(SYS_read, {5, 0x9000, 80}, 80).fd(0, pipe_end(5));
    job.call(SYS_read, {5, 0x9000, 80}, 70).fd(0, pipe_end(5));
    // One that is read before its write has returned.
    job.call_at(job.now + 10 * kUs, job.now + 20 * kUs, SYS_read, {5, 0x9000, 80}, 30).fd(0, pipe_end(5));
    job.as(100, 100);
    job.call_at(job.now - 5 * kUs, job.now + 5 * kUs, SYS_write, {6, 0x9000, 30}, 30).fd(0, pipe_end(6));
    const AssembledLog log = job.assemble();
    using enum OpKind;
    const uint64_t first = number_of(log, 1, send), second = number_of(log, 1, send, 1);
    const auto message = [](uint64_t op) { return std::vector<Edge>{{1, EdgeKind::message, 100, op}}; };
    CHECK(edges_of(log, 2, number_of(log, 2, receive)) == message(first));
    CHECK(edges_of(log, 2, number_of(log, 2, receive, 1)) == message(second));
    CHECK(edges_of(log, 2, number_of(log, 2, receive, 2)) == message(number_of(log, 1, send, 2)));
    CHECK(log.of_kind(receive)[1].offset == 80);
    // Op 0 of the child depends on its spawn.
    CHECK(edges_of(log, 2, 0) == std::vector<Edge>{{1, EdgeKind::lifecycle, 100, number_of(log, 1, OpKind::spawn)}});
    CHECK(log.of_kind(OpKind::spawn)[0].peer == 2);
    CHECK(log.tables().processes[2].parent == 1);
}

TEST_CASE("bytes read before their writes returned wait for the write that holds the last of them") {
    RawJob job;
    const auto pipe_end = [](int fd) { return RawJob::pipe_of(fd, fd == 5 ? 0xf5 : 0xf6, 50); };
    job.call(SYS_pipe2, {0x1000, 0}, 0).fd(RAW_WHICH_RESULT, pipe_end(5)).fd(RAW_WHICH_RESULT2, pipe_end(6));
    const uint64_t from = job.now;
    job.as(100, 200);
    job.call_at(from + 60 * kUs, from + 100 * kUs, SYS_read, {5, 0x9000, 80}, 10).fd(0, pipe_end(5));
    job.as(100, 201);
    job.call_at(from + 80 * kUs, from + 120 * kUs, SYS_write, {6, 0x9000, 5}, 5).fd(0, pipe_end(6));
    job.as(100, 202);
    job.call_at(from + 90 * kUs, from + 130 * kUs, SYS_write, {6, 0x9000, 5}, 5).fd(0, pipe_end(6));
    const AssembledLog log = job.assemble();
    CHECK(edges_of(log, 2, number_of(log, 2, OpKind::receive)) ==
          std::vector<Edge>{{4, EdgeKind::message, 100, number_of(log, 4, OpKind::send)}});
}

TEST_CASE("bytes of a sender that is not recorded are given up after a while, and later ones follow them") {
    RawJob job;
    const auto pipe_end = [](int fd) { return RawJob::pipe_of(fd, fd == 5 ? 0xf5 : 0xf6, 50); };
    job.call(SYS_pipe2, {0x1000, 0}, 0).fd(RAW_WHICH_RESULT, pipe_end(5)).fd(RAW_WHICH_RESULT2, pipe_end(6));
    job.as(100, 200);
    job.call(SYS_read, {5, 0x9000, 80}, 10).fd(0, pipe_end(5));
    job.as(100, 100);
    for (int i = 0; i < 300; ++i) {  // time is looked at now and then
        job.now += 100 * kUs;
        job.pread(3, 0xf1, 7, 0, 10);
    }
    job.as(100, 201);
    job.call(SYS_write, {6, 0x9000, 5}, 5).fd(0, pipe_end(6));
    job.as(100, 200);
    job.call(SYS_read, {5, 0x9000, 80}, 5).fd(0, pipe_end(5));
    const AssembledLog log = job.assemble();
    CHECK(edges_of(log, 2, number_of(log, 2, OpKind::receive)).empty());
    CHECK(edges_of(log, 2, number_of(log, 2, OpKind::receive, 1)) ==
          std::vector<Edge>{{3, EdgeKind::message, 100, number_of(log, 3, OpKind::send)}});
}

TEST_CASE("whoever reads an eventfd depends on the last that added to it") {
    RawJob job;
    const auto counter = [] {
        raw_fd fd = RawJob::fd_of(5, 0xf5, 50, 0, 0);
        fd.info = RAW_FD_EVENTFD;
        return fd;
    };
    const auto add = [&] { job.call(1, {5, 0x9000, 8}, 8).fd(0, counter()); };
    const auto take = [&] { job.call(0, {5, 0x9000, 8}, 8).fd(0, counter()); };
    job.call(290, {0, 0}, 5).fd(RAW_WHICH_RESULT, counter());
    job.as(100, 200);
    take();  // what is in it from the start
    job.as(100, 100);
    add();
    add();
    job.as(100, 200);
    take();
    job.as(100, 100);
    add();
    job.as(100, 200);
    take();
    const AssembledLog log = job.assemble();
    using enum OpKind;
    const auto edges = [&](size_t n) { return edges_of(log, 2, number_of(log, 2, receive, n)); };
    const auto message = [&](size_t n) {
        return std::vector<Edge>{{1, EdgeKind::message, 100, number_of(log, 1, send, n)}};
    };
    REQUIRE(log.of_kind(receive).size() == 3);
    CHECK(edges(0).empty());
    CHECK(edges(1) == message(1));
    CHECK(edges(2) == message(2));
}

TEST_CASE("a message larger than the pipe makes no circle") {
    RawJob job;
    const auto pipe_end = [](int fd) { return RawJob::pipe_of(fd, fd == 5 ? 0xf5 : 0xf6, 50); };
    job.call(SYS_pipe2, {0x1000, 0}, 0).fd(RAW_WHICH_RESULT, pipe_end(5)).fd(RAW_WHICH_RESULT2, pipe_end(6));
    const uint64_t from = job.now;
    job.as(100, 200);
    job.call_at(from + 20 * kUs, from + 30 * kUs, SYS_read, {5, 0x9000, 65536}, 65536).fd(0, pipe_end(5));
    job.as(100, 100);
    job.woken(from + 15 * kUs, from + 25 * kUs, from + 35 * kUs, SYS_write, 100, 200, SYS_read, from + 20 * kUs);
    job.call_at(from + 10 * kUs, from + 40 * kUs, SYS_write, {6, 0x9000, 100000}, 100000).fd(0, pipe_end(6));
    job.as(100, 200);
    job.call_at(from + 50 * kUs, from + 60 * kUs, SYS_read, {5, 0x9000, 65536}, 34464).fd(0, pipe_end(5));
    const AssembledLog log = job.assemble();
    const uint64_t write = number_of(log, 1, OpKind::send);
    // The first read came before the write was done: it depends on what lies before the write.
    CHECK(edges_of(log, 2, number_of(log, 2, OpKind::receive)) ==
          std::vector<Edge>{{1, EdgeKind::message, 100, write - 1}});
    CHECK(edges_of(log, 1, write) == std::vector<Edge>{{2, EdgeKind::wake, 100, number_of(log, 2, OpKind::receive)}});
    CHECK(edges_of(log, 2, number_of(log, 2, OpKind::receive, 1)) ==
          std::vector<Edge>{{1, EdgeKind::message, 100, write}});
}

TEST_CASE("an exit tells a signal from a code of the same number") {
    for (const auto& [how, arg, result] : {std::tuple{15, 143, -4}, {9 | 0x80, 137, -4}, {143 << 8, 143, 0}}) {
        RawJob job;
        job.open("/d/a", 3, 0xf1, 7);
        job.killed(how);
        const AssembledLog log = job.assemble();
        CHECK(log.ops(1).back().arg == arg);
        CHECK(log.ops(1).back().result == result);
    }
}

TEST_CASE("exit, wait and the end of a task") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    job.spawn(200, 200, 17);
    job.as(200, 200);
    job.call(SYS_close, {3}, 0).fd(0, RawJob::fd_of(3, 0xf1, 7));
    job.exit(3);
    job.as(100, 100);
    job.call(SYS_wait4, {uint64_t(-1), 0, 0}, 200);
    job.call(SYS_wait4, {uint64_t(-1), 0, 0}, -10);
    const AssembledLog log = job.assemble();
    using enum OpKind;
    CHECK(log.ops(2).back().kind == OpKind::exit);
    CHECK(log.ops(2).back().arg == 3);
    const uint64_t join_at = number_of(log, 1, join);
    REQUIRE(join_at != UINT64_MAX);
    CHECK(log.ops(1)[join_at].peer == 2);
    CHECK(edges_of(log, 1, join_at) == std::vector<Edge>{{2, EdgeKind::lifecycle, 100, log.ops(2).size() - 1}});
    CHECK(log.of_kind(wait).empty());
    CHECK(log.of_kind(close)[0].handle == log.of_kind(open)[0].handle);
}

TEST_CASE("a wait for a signal depends on who sent it, by whatever call") {
    for (const uint16_t sends : {SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_pidfd_send_signal}) {
        CAPTURE(sends);
        RawJob job;
        job.open("/d/a", 3, 0xf1, 7);
        job.as(100, 200);
        job.open("/d/b", 4, 0xf2, 8);
        const uint64_t from = job.now;
        job.as(100, 100);
        job.woken(from + 10 * kUs, from + 102 * kUs, from + 103 * kUs, SYS_rt_sigtimedwait, 100, 200, sends,
                  from + 100 * kUs);
        job.call_at(from + 9 * kUs, from + 104 * kUs, SYS_rt_sigtimedwait, {0x1000, 0, 0, 8}, 17);
        job.as(100, 200);
        job.call_at(from + 100 * kUs, from + 105 * kUs, sends, {100, 17}, 0);
        const AssembledLog log = job.assemble();
        const std::vector<Edge> edges = edges_of(log, 1, number_of(log, 1, OpKind::wait));
        REQUIRE(edges.size() == 1);
        CHECK((edges[0].task == 2 && edges[0].kind == EdgeKind::wake));
        CHECK(log.ops(2)[edges[0].op].end() <= log.ops(1)[number_of(log, 1, OpKind::wait)].end());
        CHECK(log.counter("wakes_unmatched") == 0);
    }
}

TEST_CASE("locks are not causes") {
    RawJob job;
    job.call(SYS_getpid, {}, 0);
    const auto wait_on = [&](uint32_t tid, uint64_t word, uint64_t value, uint64_t timeout, int64_t result = 0) {
        const uint64_t from = job.now;
        job.as(100, tid);
        job.woken(from + 2 * kUs, from + 50 * kUs, from + 51 * kUs, SYS_futex, 100, tid == 1 ? 2 : 1, SYS_futex,
                  from + 40 * kUs);
        job.call_at(from + 1 * kUs, from + 52 * kUs, SYS_futex, {word, 0x189, value, timeout}, result);
    };
    const auto wake = [&](uint32_t tid, uint64_t word) {
        job.as(100, tid);
        job.call_at(job.now + 1 * kUs, job.now + 2 * kUs, SYS_futex, {word, 0x81, 1}, 1);
    };
    wait_on(1, 0x5000, 2, 0);  // a mutex
    wake(2, 0x5000);
    for (int i = 0; i < 12; ++i) {  // the interpreter lock: all waits timed, and those who wait also wake
        wait_on(1, 0x6000, 0, 0x7fff);
        wake(1, 0x6000);
        wait_on(2, 0x6000, 0, 0x7fff, i % 2 ? -110 : 0);
        wake(2, 0x6000);
    }
    wait_on(1, 0x6030, 7, 0);  // beside it
    wait_on(1, 0x9000, 0, 0);  // something else
    wake(2, 0x9000);
    const AssembledLog log = job.assemble();
    size_t locks = 0, others = 0, wakes = 0, edges = 0;
    for (TaskId task = 1; task < log.tables().tasks.size(); ++task) {
        log.reader.for_each(task, [&](const Op& op, uint64_t) {
            locks += op.kind == OpKind::wait && op.arg == 5;
            others += op.kind == OpKind::wait && op.arg == 1;
            wakes += op.kind == OpKind::wait && op.arg == 6;
            if (op.arg == 5) {
                CHECK(op.edges.empty());
            }
            edges += op.edges.size();
        });
    }
    CHECK(locks == 26);
    CHECK(others == 1);
    CHECK(wakes == 1);
    CHECK(log.counter("locks_dropped") == 26);
}

TEST_CASE("page faults become touches of the right mapping") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7, 1 << 20);
    job.call(SYS_mmap, {0, 1 << 20, 1, 2, 3, 8192}, 0x700000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
    const uint64_t from = job.now;
    job.fault(from + 100 * kUs, from + 110 * kUs, 0x700000 + 5 * 4096 + 17);
    job.off(from + 102 * kUs, from + 108 * kUs, from + 109 * kUs, 0xffff, RAW_OFF_UNINTERRUPTIBLE);
    job.fault(from + 120 * kUs, from + 121 * kUs, 0x700000 + 6 * 4096);
    job.fault(from + 130 * kUs, from + 131 * kUs, 0x700000 + 2 * 4096);
    job.fault(from + 900 * kUs, from + 901 * kUs, 0x700000, true);
    job.fault(from + 950 * kUs, from + 951 * kUs, 0x123456000);  // no mapping that is known
    job.call_at(from + 1000 * kUs, from + 1001 * kUs, SYS_munmap, {0x700000, 1 << 20}, 0);
    std::swap(job.records()[2], job.records()[3]);  // emitted within the fault, by time
    const AssembledLog log = job.assemble();
    using enum OpKind;
    REQUIRE(kinds(log) == std::vector{open, compute, mmap, compute, touch, compute, touch, compute, munmap});
    const auto ops = log.ops();
    const auto& rows = log.rows.at(1);
    CHECK(ops[4].map == 1);
    CHECK(ops[4].offset == 5 * 4096);
    CHECK(ops[4].duration == 12 * kUs);
    CHECK(rows[4].list == std::vector<int64_t>{0, 8192, -5 * 4096, 4096});
    CHECK(ops[3].duration == 100 * kUs);
    CHECK(ops[5].duration == (900 - 131 + 9 + 10 - 9 + 9) * kUs - 0);
    CHECK(ops[6].flags == 1);
    CHECK(ops[6].offset == 0);
    CHECK(rows[6].list.empty());
    CHECK(log.counter("faults_outside_mappings") == 1);
}

TEST_CASE("faults on several mappings in turn take no more time than passed, and what follows keeps its place") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7, 1 << 20);
    job.call(SYS_mmap, {0, 1 << 20, 1, 2, 3, 0}, 0x700000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
    job.call(SYS_mmap, {0, 1 << 20, 1, 2, 3, 0}, 0xa00000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
    const uint64_t from = job.now;
    for (uint64_t i = 0; i < 10; ++i) {
        job.fault(from + (10 + 20 * i) * kUs, from + (11 + 20 * i) * kUs, (i % 2 ? 0x700000 : 0xa00000) + i * 4096);
    }
    // Asleep for 5 us, and another fault at once after it.
    job.off(from + 195 * kUs, from + 199 * kUs, from + 200 * kUs, 0xffff, RAW_OFF_SLEEPING);
    job.fault(from + 201 * kUs, from + 202 * kUs, 0x700000 + 100 * 4096);
    job.call_at(from + 210 * kUs, from + 212 * kUs, SYS_munmap, {0x700000, 1 << 20}, 0);
    const AssembledLog log = job.assemble();
    const auto ops = log.ops();
    CHECK(std::count_if(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::touch; }) == 11);
    REQUIRE(ops.back().kind == OpKind::munmap);
    CHECK(ops.back().duration == 2 * kUs);
    for (size_t i = 1; i < ops.size(); ++i) {
        CHECK(ops[i].begin >= ops[i - 1].end());
    }
}

TEST_CASE("reads into memory that nothing has filled yet are marked") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7, 1 << 20);
    job.call(SYS_mmap, {0, 65536, 3, 0x22, uint64_t(-1), 0}, 0x700000);
    job.pread(3, 0xf1, 7, 0, 32768, 0x700000);
    job.pread(3, 0xf1, 7, 0, 32768, 0x700000);
    job.pread(3, 0xf1, 7, 0, 32768, 0x708000);
    job.call(SYS_madvise, {0x700000, 65536, 4}, 0);
    job.pread(3, 0xf1, 7, 0, 4096, 0x701000);
    job.call(SYS_brk, {0}, 0x20000000);
    job.call(SYS_brk, {0x20008000}, 0x20008000);
    job.pread(3, 0xf1, 7, 0, 16384, 0x20001000);
    job.call(SYS_munmap, {0x700000, 65536}, 0);
    job.pread(3, 0xf1, 7, 0, 4096, 0x702000);
    const AssembledLog log = job.assemble();
    std::vector<bool> fresh;
    for (const Op& op : log.of_kind(OpKind::pread)) {
        fresh.push_back(op.flags & kFreshMemory);
    }
    CHECK(fresh == std::vector<bool>{true, false, true, true, true, false});
}

TEST_CASE("mappings that end, move, or were filled by the kernel are not fresh; what failed changes nothing") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7, 1 << 20);
    const auto map = [&](uint64_t address, uint64_t flags, int64_t result) {
        job.call(SYS_mmap, {address, 65536, 3, flags, uint64_t(-1), 0}, result);
    };
    const auto read = [&](uint64_t buffer) { job.pread(3, 0xf1, 7, 0, 4096, buffer); };
    map(0, 0x22, 0x700000);
    job.call(SYS_munmap, {0x700000, 65536}, 0);
    read(0x700000);  // not fresh
    map(0, 0x22, 0x700000);
    job.call(SYS_munmap, {0x700000, 65536}, -22);
    read(0x70f000);  // fresh
    job.call(SYS_mremap, {0x700000, 65536, 65536, 1, 0}, 0x800000);
    read(0x700000);            // not fresh
    map(0, 0x8022, 0x900000);  // MAP_POPULATE
    read(0x900000);            // not fresh
    map(0x900000, 0x32, -12);
    read(0x901000);  // not fresh
    job.call(SYS_madvise, {0x900000, 65536, 8}, 0);
    read(0x902000);  // fresh
    job.call(SYS_madvise, {0x900000, 65536, 3}, 0);
    read(0x902000);  // not fresh
    job.call(SYS_mmap, {0x900000, 65536, 3, 0x12, 3, 0}, 0x900000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
    job.call(SYS_madvise, {0x900000, 65536, 4}, 0);
    read(0x903000);  // not fresh: a file's pages
    std::vector<bool> fresh;
    for (const Op& op : job.assemble().of_kind(OpKind::pread)) {
        fresh.push_back(op.flags & kFreshMemory);
    }
    CHECK(fresh == std::vector<bool>{false, true, false, false, false, true, false, false});
}

TEST_CASE("the address of an open file that is used again means another file") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    const uint64_t from = job.now;
    job.call_at(from + 1 * kUs, from + 10 * kUs, SYS_close, {3}, 0).fd(0, RawJob::fd_of(3, 0xf1, 7));
    // Another thread gets number and address while the close is still under way.
    job.as(100, 101);
    job.call_at(from + 5 * kUs, from + 8 * kUs, SYS_openat, {uint64_t(-100), 0x1000, 0, 0}, 3)
        .path(1, "/d/b")
        .fd(RAW_WHICH_RESULT, RawJob::fd_of(3, 0xf1, 8));
    job.pread(3, 0xf1, 8, 0, 100);
    const AssembledLog log = job.assemble();
    CHECK(log.path_of(log.of_kind(OpKind::close)[0]) == "/d/a");
    CHECK(log.path_of(log.of_kind(OpKind::pread)[0]) == "/d/b");
}

TEST_CASE("descriptors that came over a socket are the sender's") {
    RawJob job;
    job.open("/dev/shm/torch_1", 3, 0xf1, 7, 4096, 0102).head();
    job.spawn(200, 200, 17);
    job.as(200, 200);
    raw_fd socket = RawJob::fd_of(9, 0xf9, 90, 0, 0140777);
    job.call(SYS_recvmsg, {9, 0x1000, 0}, 1).fd(0, socket).fd(RAW_WHICH_RECEIVED, RawJob::fd_of(12, 0xf1, 7));
    job.call(SYS_mmap, {0, 4096, 3, 1, 12, 0}, 0x800000).fd(4, RawJob::fd_of(12, 0xf1, 7));
    const AssembledLog log = job.assemble();
    CHECK(log.of_kind(OpKind::mmap)[0].handle == log.of_kind(OpKind::open)[0].handle);
    CHECK(log.of_kind(OpKind::receive).size() == 1);
}

TEST_CASE("sockets pass their bytes to the peer") {
    RawJob job;
    raw_fd one = RawJob::fd_of(5, 0xf5, 50, 0, 0140777), two = RawJob::fd_of(6, 0xf6, 60, 0, 0140777);
    one.peer_or_pages = 60;
    two.peer_or_pages = 50;
    job.call(SYS_socketpair, {1, 1, 0, 0x1000}, 0).fd(RAW_WHICH_RESULT, one).fd(RAW_WHICH_RESULT2, two);
    job.call(SYS_sendto, {5, 0x9000, 10, 0}, 10).fd(0, one);
    job.call(SYS_sendto, {6, 0x9000, 20, 0}, 20).fd(0, two);
    job.as(100, 101);
    job.call(SYS_recvfrom, {6, 0x9000, 100, 2}, 10).fd(0, two);  // a look only
    job.call(SYS_recvfrom, {6, 0x9000, 100, 0}, 10).fd(0, two);
    job.call(SYS_read, {5, 0x9000, 100}, 20).fd(0, one);
    const AssembledLog log = job.assemble();
    const auto message = [](uint64_t op) { return std::vector<Edge>{{1, EdgeKind::message, 100, op}}; };
    CHECK(edges_of(log, 2, number_of(log, 2, OpKind::receive)).empty());
    CHECK(edges_of(log, 2, number_of(log, 2, OpKind::receive, 1)) == message(number_of(log, 1, OpKind::send)));
    CHECK(edges_of(log, 2, number_of(log, 2, OpKind::receive, 2)) == message(number_of(log, 1, OpKind::send, 1)));
}

TEST_CASE("a batch depends on the fetch that made it") {
    RawJob job;
    const auto mark = [&](std::string_view name, uint64_t number, uint64_t phase) {
        job.call(SYS_prctl, {RAW_MARKER_PRCTL, 0x1000, number, phase, RAW_MARKER_MAGIC}, -22).string(1, name);
    };
    job.spawn(200, 200, 17);
    job.as(200, 200);
    mark("fetch", 0, 1);
    mark("fetch", 0, 2);
    mark("fetch", 1, 1);
    mark("fetch", 1, 2);
    mark("fetch.2", 0, 2);
    job.as(100, 100);
    mark("batch", 0, 0);
    mark("batch", 1, 0);
    mark("batch", 2, 0);
    mark("batch.2", 0, 0);
    job.call(SYS_prctl, {15, 0x1000, 0, 0, 0}, 0);  // another prctl
    const AssembledLog log = job.assemble();
    const auto batch_edges = [&](size_t n) { return edges_of(log, 1, number_of(log, 1, OpKind::marker, n)); };
    const auto marker = [&](size_t n) {
        return std::vector<Edge>{{2, EdgeKind::marker, 100, number_of(log, 2, OpKind::marker, n)}};
    };
    CHECK(batch_edges(0) == marker(1));
    CHECK(batch_edges(1) == marker(3));
    CHECK(batch_edges(2).empty());
    CHECK(batch_edges(3) == marker(4));
    CHECK(log.of_kind(OpKind::marker).size() == 9);
}

TEST_CASE("names of markers are kept whole, and those that are too long are counted") {
    const auto named = [](size_t bytes, bool truncated) {
        RawJob job;
        RawBytes& call = job.call(SYS_prctl, {RAW_MARKER_PRCTL, 0x1000, 1, 0, RAW_MARKER_MAGIC}, -22);
        call.string(1, std::string(bytes, 'x')).head().flags |= truncated ? RAW_FLAG_TRUNCATED : 0;
        const AssembledLog log = job.assemble();
        return std::pair(log.tables().strings[log.of_kind(OpKind::marker).at(0).text].size(),
                         log.counter("marker_names_cut"));
    };
    CHECK(named(200, true) == std::pair(size_t{200}, uint64_t{0}));  // something else of the call did not fit
    CHECK(named(200, false) == std::pair(size_t{200}, uint64_t{0}));
    CHECK(named(4'095, false) == std::pair(size_t{4'095}, uint64_t{0}));
    CHECK(named(4'103, true) == std::pair(size_t{4'095}, uint64_t{1}));
}

TEST_CASE("records out of order, and records that are missing") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    for (uint64_t i = 0; i < 500; ++i) {
        job.pread(3, 0xf1, 7, i * 100, 100);
    }
    auto& records = job.records();
    for (size_t i = 1; i + 8 < records.size(); i += 7) {
        std::reverse(records.begin() + i, records.begin() + i + 6);
    }
    {
        const AssembledLog log = job.assemble();
        const auto reads = log.of_kind(OpKind::pread);
        REQUIRE(reads.size() == 500);
        bool in_order = true;
        for (size_t i = 0; i < reads.size(); ++i) {
            in_order = in_order && reads[i].offset == int64_t(i) * 100;
        }
        CHECK(in_order);
        CHECK(log.tables().losses() == 0);
    }
    records.erase(records.begin() + 100, records.begin() + 105);
    {
        const AssembledLog log = job.assemble();
        CHECK(log.counter("capture_records_missing") == 5);
        CHECK(log.tables().losses() == 5);
    }
    raw_loss loss{};
    loss.head.time = job.now;
    loss.failed_reserves = 5;
    loss.untracked = 2;
    records.emplace_back(RAW_LOSS, loss);
    const AssembledLog log = job.assemble();
    CHECK(log.counter("capture_ring_full") == 5);
    CHECK(log.counter("capture_untracked_tasks") == 2);
    CHECK(log.counter("capture_records_missing") == 0);
}

TEST_CASE("records of a thread in an exec, which has taken its process's number over, are not missing ones") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    const uint32_t first = job.tid, other = first + 1;
    raw_spawn spawn{};
    spawn.head.time = job.now;
    spawn.child_pid = job.pid;
    spawn.child_tid = other;
    spawn.flags = 0x10000;
    job.add(RawBytes(RAW_SPAWN, spawn));
    job.tid = other;
    job.pread(3, 0xf1, 7, 0, 100);
    job.tid = first;
    raw_exit end{};
    end.head.time = job.now += 10'000;
    job.add(RawBytes(RAW_EXIT, end));
    // Now the kernel has given the number of the process to the thread, and so have records; its own numbers go on.
    job.off(job.now + 1000, job.now + 2000, job.now + 3000, SYS_execve).head().sequence = 1;
    raw_exec exec{};
    exec.head.time = job.now += 10'000;
    exec.old_tid = other;
    job.add(RawBytes(RAW_EXEC, exec)).head().sequence = 2;
    job.pread(3, 0xf1, 7, 100, 100).head().sequence = 3;
    CHECK(job.assemble().counter("capture_records_missing") == 0);
    job.pread(3, 0xf1, 7, 200, 100).head().sequence = 7;
    CHECK(job.assemble().counter("capture_records_missing") == 3);
}

TEST_CASE("a call of minutes holds nothing up") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    const uint64_t enter = job.now + kUs;
    job.as(100, 101);
    for (uint64_t i = 0; i < 30000; ++i) {
        job.pread(3, 0xf1, 7, i, 1);
    }
    job.as(100, 100);
    job.off(enter + kUs, job.now, job.now + kUs, SYS_read);
    job.call_at(enter, job.now + 2 * kUs, SYS_read, {5, 0x9000, 10}, 10).fd(0, RawJob::pipe_of(5, 0xf5, 50));
    const AssembledLog log = job.assemble();
    CHECK(log.ops(2).size() == 60000 - 1);
    REQUIRE(log.of_kind(OpKind::receive).size() == 1);
    CHECK(log.of_kind(OpKind::receive)[0].begin == int64_t(enter - t0 - 9 * kUs));
}

TEST_CASE("a raw log that was cut is assembled as far as it goes") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    job.pread(3, 0xf1, 7, 0, 100);
    job.write(job.dir / "cut.raw", false);
    const std::vector<std::filesystem::path> inputs = {job.dir / "cut.raw"};
    const Importer& importer = find_importer(inputs, "");
    CHECK(importer.name == "raw");
    ImportOptions options;
    options.roles = RoleOverrides::parse({"/d/*=checkpoint"});
    importer.import(inputs, job.dir / "cut.oplog", options);
    const AssembledLog log(job.dir / "cut.oplog");
    CHECK(log.of_kind(OpKind::pread).size() == 1);
    CHECK(log.counter("capture_cut") == 1);
    CHECK(log.tables().losses() == 1);
    CHECK(log.file("/d/a").role == Role::checkpoint);
    write_file(job.dir / "no.raw", "RPR");
    CHECK_THROWS_AS(assemble_raw_file(job.dir / "no.raw", job.dir / "no.oplog"), Error);
    CHECK_FALSE(std::filesystem::exists(job.dir / "no.oplog.partial"));
}

TEST_CASE("what ends the assembling early leaves no log") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    job.write(job.dir / "job.raw");
    RawAssembleOptions options;
    options.progress = [](uint64_t, uint64_t) { throw std::runtime_error("stopped"); };
    CHECK_THROWS_AS(assemble_raw_file(job.dir / "job.raw", job.dir / "job.oplog", options), std::runtime_error);
    CHECK_FALSE(std::filesystem::exists(job.dir / "job.oplog"));
}

TEST_CASE("what was open before the recording") {
    RawJob job;
    raw_seed_task task{};
    std::strcpy(task.name, "python");
    job.add(RawBytes(RAW_SEED_TASK, task)).string(0, "python train.py").string(1, "/start");
    raw_seed_map seed{};
    job.add(RawBytes(RAW_SEED_FD, seed.head)).fd(0, RawJob::fd_of(3, 0xf1, 7)).string(0, "/d/a");
    seed.address = 0x700000;
    seed.size = 8192;
    seed.inode = 9;
    seed.device = 8 << 20 | 1;
    seed.prot = 1;
    seed.flags = 2;
    job.add(RawBytes(RAW_SEED_MAP, seed)).numbers(RAW_PART_VALUES, 0, {5000}).path(0, "/d/mapped");
    job.pread(3, 0xf1, 7, 0, 100);
    job.open("b", 4, 0xf2, 8);
    // The file of the mapping, of which the mapping tells no generation.
    raw_fd mapped = RawJob::fd_of(5, 0xf3, 9);
    mapped.generation = 77;
    job.call(SYS_openat, {uint64_t(-100), 0x1000, 0, 0}, 5).path(1, "/d/mapped").fd(RAW_WHICH_RESULT, mapped);
    job.fault(job.now + 1 * kUs, job.now + 2 * kUs, 0x701000);
    job.call(SYS_munmap, {0x700000, 8192}, 0);
    const AssembledLog log = job.assemble();
    const Op read = log.of_kind(OpKind::pread)[0];
    CHECK(log.path_of(read) == "/d/a");
    CHECK(log.tables().handles[read.handle].inherited);
    CHECK(log.path_of(log.of_kind(OpKind::open)[0]) == "/start/b");
    REQUIRE(log.of_kind(OpKind::touch).size() == 1);
    CHECK(log.of_kind(OpKind::touch)[0].map == log.of_kind(OpKind::mmap)[0].map);
    CHECK(log.path_of(log.of_kind(OpKind::mmap)[0]) == "/d/mapped");
    CHECK(log.of_kind(OpKind::mmap)[0].size == 8192);
    CHECK(log.files("/d/mapped").size() == 1);
    CHECK(log.file("/d/a").size == 8192);  // not what was read of it
    CHECK(log.file("/d/a").size_exact);
    CHECK(log.file("/d/mapped").size == 5000);  // not the mapping's
    CHECK(log.file("/d/mapped").size_exact);
    CHECK(log.counter("files_replaced_unseen") == 0);
    CHECK(log.counter("descriptors_inherited") == 1);  // the mapping is none
    CHECK(log.tables().strings[log.tables().processes[1].command] == "python train.py");
}

TEST_CASE("another process put another file in the place of one") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7, 100);
    job.open("/d/a", 4, 0xf2, 8, 200);
    const AssembledLog log = job.assemble();
    REQUIRE(log.files("/d/a").size() == 2);
    CHECK(log.files("/d/a")[0].size == 100);
    CHECK(log.files("/d/a")[1].size == 200);
    CHECK(log.counter("files_replaced_unseen") == 1);
}

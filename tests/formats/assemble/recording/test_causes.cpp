// SPDX-License-Identifier: MIT
// Raw recordings to op logs: what a task waited for, where others go on meanwhile or its number is given again.
#include <doctest/doctest.h>

#include "tests/formats/assemble/recording/raw_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

raw_fd end_of_pipe(int fd) { return RawJob::pipe_of(fd, fd == 5 ? 0xf5 : 0xf6, 50); }

// Reads of another task until `until`: what waits is looked at now and then.
void meanwhile(RawJob& job, uint64_t until, uint64_t apart) {
    job.as(100, 900);
    while (job.now + apart < until) {
        job.now += apart;
        job.pread(3, 0xf1, 7, 0, 10);
    }
}

std::vector<OpKind> waits(const AssembledLog& log) {
    std::vector<OpKind> out;
    for (const Op& op : log.ops()) {
        if (op.kind == OpKind::wait || op.kind == OpKind::join) {
            out.push_back(op.kind);
        }
    }
    return out;
}

}  // namespace

TEST_CASE("who reads waits 10 ms for the write of its bytes to return") {
    for (const uint64_t later : {9, 11}) {
        CAPTURE(later);
        RawJob job;
        job.call(SYS_pipe2, {0x1000, 0}, 0).fd(RAW_WHICH_RESULT, end_of_pipe(5)).fd(RAW_WHICH_RESULT2, end_of_pipe(6));
        const uint64_t from = job.now;
        job.as(100, 200);
        job.call_at(from + 50 * kUs, from + 100 * kUs, SYS_read, {5, 0x9000, 80}, 10).fd(0, end_of_pipe(5));
        meanwhile(job, from + later * kMs + 50 * kUs, 10 * kUs);
        job.as(100, 201);
        job.call_at(from + 60 * kUs, from + later * kMs + 100 * kUs, SYS_write, {6, 0x9000, 10}, 10)
            .fd(0, end_of_pipe(6));
        meanwhile(job, from + 30 * kMs, 10 * kUs);
        const AssembledLog log = job.assemble();
        CHECK(log.counter("messages_unmatched") == (later > 10 ? 1 : 0));
        const TaskId writer = log.of_kind(OpKind::send).empty() ? 0 : 4;
        const std::vector<Edge> edges = edges_of(log, 2, number_of(log, 2, OpKind::receive));
        CHECK(edges.size() == (later > 10 ? 0 : 1));
        CHECK((edges.empty() || (edges[0].task == writer && edges[0].kind == EdgeKind::message)));
    }
}

TEST_CASE("a call that returns later than 10 ms after it woke somebody is no cause, but what was before it") {
    for (const uint64_t later : {9, 11}) {
        CAPTURE(later);
        RawJob job;
        job.open("/d/a", 3, 0xf1, 7);
        const uint64_t from = job.now;
        job.as(100, 200);
        job.woken(from + 10 * kUs, from + 102 * kUs, from + 103 * kUs, SYS_read, 100, 100, SYS_write, from + 100 * kUs);
        job.call_at(from + 9 * kUs, from + 104 * kUs, SYS_read, {5, 0x9000, 100}, 0)
            .fd(0, RawJob::pipe_of(5, 0xf5, 50));
        meanwhile(job, from + later * kMs + 50 * kUs, 10 * kUs);
        job.as(100, 100);
        job.call_at(from + 100 * kUs, from + later * kMs + 104 * kUs, SYS_write, {6, 0x9000, 100}, 100)
            .fd(0, RawJob::pipe_of(6, 0xf6, 51));
        meanwhile(job, from + 30 * kMs, 10 * kUs);
        const AssembledLog log = job.assemble();
        const uint64_t write = number_of(log, 1, OpKind::send);
        REQUIRE(write == 2);  // after the open and computing
        CHECK(edges_of(log, 2, 0) == std::vector<Edge>{{1, EdgeKind::wake, 100, later > 10 ? write - 1 : write}});
        CHECK(log.counter("wakes_unmatched") == 0);
    }
}

TEST_CASE("what a call without an op woke depends on what its task had done before, not after it") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    job.as(100, 200);
    job.open("/d/b", 4, 0xf2, 8);
    const uint64_t kill = job.now + 20 * kUs;
    job.call_at(kill, kill + 5 * kUs, SYS_kill, {100, 17}, 0);
    for (int i = 0; i < 5; ++i) {
        job.pread(4, 0xf2, 8, 0, 10);
    }
    const uint64_t back = job.now + 10 * kUs;
    job.as(100, 100);
    job.woken(kill - 10 * kUs, kill + 2 * kUs, back, SYS_rt_sigtimedwait, 100, 200, SYS_kill, kill);
    job.call_at(kill - 11 * kUs, back + kUs, SYS_rt_sigtimedwait, {0x1000, 0, 0, 8}, 17);
    const AssembledLog log = job.assemble();
    const uint64_t before = number_of(log, 2, OpKind::compute);
    REQUIRE(before == 1);
    CHECK(edges_of(log, 1, number_of(log, 1, OpKind::wait)) == std::vector<Edge>{{2, EdgeKind::wake, 100, before}});
    CHECK(log.counter("wakes_unmatched") == 0);
}

TEST_CASE("a child whose number is another's by the time its parent's call returns") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    const uint64_t from = job.now;
    const auto spawned = [&](uint32_t parent, uint64_t time) {
        raw_spawn record{};
        record.head.time = time;
        record.child_pid = record.child_tid = 200;
        record.flags = 0x4011;  // CLONE_VFORK
        std::strcpy(record.name, "child");
        job.as(parent, parent);
        job.add(RawBytes(RAW_SPAWN, record));
    };
    spawned(100, from + 10 * kUs);
    job.now = from + 20 * kUs;
    job.as(200, 200);
    job.exit(0);
    job.as(300, 300);
    job.call_at(from + 45 * kUs, from + 46 * kUs, SYS_pread64, {3, 0x9000, 10, 0}, 10).fd(0, RawJob::fd_of(3, 0xf1, 7));
    spawned(300, from + 50 * kUs);
    job.as(200, 200);
    job.call_at(from + 60 * kUs, from + 61 * kUs, SYS_close, {3}, 0).fd(0, RawJob::fd_of(3, 0xf1, 7));
    job.as(100, 100);
    job.call_at(from + 9 * kUs, from + 70 * kUs, SYS_vfork, {}, 200);
    job.as(300, 300);
    job.call_at(from + 49 * kUs, from + 80 * kUs, SYS_vfork, {}, 200);
    const AssembledLog log = job.assemble();
    std::map<TaskId, std::vector<Edge>> first;
    for (TaskId task = 1; task < log.tables().tasks.size(); ++task) {
        if (log.tables().tasks[task].tid == 200) {
            first[task] = edges_of(log, task, 0);
        }
    }
    REQUIRE(first.size() == 2);
    const TaskId other = log.of_kind(OpKind::spawn).at(1).peer;
    CHECK(first.rbegin()->first == other);
    REQUIRE(first[other].size() == 1);
    CHECK(log.tables().tasks[first[other][0].task].tid == 300);
    CHECK(first[other][0].kind == EdgeKind::lifecycle);
}

TEST_CASE("a thread that no call spawned waits for what its parent had done by then, however late it is seen") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    const uint64_t from = job.now;
    raw_spawn record{};
    record.head.time = from + 10 * kUs;
    record.child_pid = 100;
    record.child_tid = 200;
    record.flags = 0x10000;  // CLONE_THREAD
    std::strcpy(record.name, "iou-wrk-100");
    job.add(RawBytes(RAW_SPAWN, record));
    for (uint64_t i = 1; i <= 5; ++i) {
        const uint64_t at = from + i * 20'000 * kUs;
        job.call_at(at, at + kUs, SYS_pread64, {3, 0x9000, 10, 0}, 10).fd(0, RawJob::fd_of(3, 0xf1, 7));
    }
    job.now = from + 110'000 * kUs;
    job.as(100, 200);
    job.exit(0);
    const AssembledLog log = job.assemble();
    const TaskId worker = 2;
    REQUIRE(log.tables().tasks.size() == 3);
    REQUIRE(log.tables().tasks[worker].tid == 200);
    CHECK(edges_of(log, worker, 0) ==
          std::vector<Edge>{{1, EdgeKind::lifecycle, 100, number_of(log, 1, OpKind::open)}});
}

TEST_CASE("waiting for children that have not ended is no op unless it took time or asked not to wait") {
    const auto seen = [](uint16_t nr, int64_t result, bool slept, uint64_t options = 0) {
        RawJob job;
        job.open("/d/a", 3, 0xf1, 7);
        const uint64_t from = job.now;
        if (slept) {
            job.off(from + 11 * kUs, from + 90 * kUs, from + 95 * kUs, nr);
        } else {
            job.off(from + 2 * kUs, 0, from + 3 * kUs, 0xffff, RAW_OFF_RUNNABLE);
        }
        job.call_at(from + 10 * kUs, from + 100 * kUs, nr, {uint64_t(-1), 0, options, 4}, result);
        return waits(job.assemble());
    };
    using enum OpKind;
    CHECK(seen(SYS_wait4, 0, false, 1) == std::vector{wait});  // WNOHANG
    CHECK(seen(SYS_wait4, 0, false).empty());
    CHECK(seen(SYS_wait4, -10, false).empty());
    CHECK(seen(SYS_wait4, 0, true) == std::vector{wait});
    CHECK(seen(SYS_wait4, 77, false) == std::vector{wait});  // one that is not recorded
    CHECK(seen(SYS_waitid, 0, false) == std::vector{wait});
}

TEST_CASE("waitid names the child that it found") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    job.spawn(200, 200, 17);
    job.as(200, 200);
    job.exit(3);
    job.as(100, 100);
    job.call(SYS_waitid, {1, 200, 0x1000, 4}, 0).numbers(RAW_PART_VALUES, 2, {200, 1, 3});
    job.call(SYS_waitid, {1, 200, 0x1000, 5}, 0).numbers(RAW_PART_VALUES, 2, {0, 0, 0});
    const AssembledLog log = job.assemble();
    const uint64_t join = number_of(log, 1, OpKind::join);
    REQUIRE(join != UINT64_MAX);
    CHECK(log.ops()[join].peer == 2);
    CHECK(edges_of(log, 1, join) == std::vector<Edge>{{2, EdgeKind::lifecycle, 100, log.ops(2).size() - 1}});
    CHECK(log.of_kind(OpKind::wait).size() == 1);
}

TEST_CASE("messages longer than their buffers have their own length, vectors the length of their buffers") {
    const auto size_of = [](uint16_t nr, int64_t result, const std::vector<raw_s64>& buffers) {
        RawJob job;
        job.call(nr, {5, 0x1000, buffers.size(), 0}, result).fd(0, end_of_pipe(5)).numbers(RAW_PART_LIST, 1, buffers);
        return job.assemble().of_kind(OpKind::receive).at(0).size;
    };
    CHECK(size_of(SYS_recvmsg, 100, {4, 6}) == 100);  // MSG_TRUNC
    CHECK(size_of(SYS_recvmsg, 3, {4, 6}) == 10);
    CHECK(size_of(SYS_recvmsg, -11, {4, 6}) == 10);
    CHECK(size_of(SYS_recvmsg, 100, {}) == 100);
    CHECK(size_of(SYS_readv, 3, {4, 6}) == 10);
    CHECK(size_of(SYS_readv, 100, {4, 6}) == 10);
    CHECK(size_of(SYS_readv, -11, {4, -6}) == 4);
}

TEST_CASE("requests of libaio are for the open file that the record shows, whatever its number was before") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    job.open("/d/b", 9, 0xf9, 8);
    raw_iocb block{};
    block.length = 100;
    RawBytes& submit = job.call(SYS_io_submit, {1, 3, 0x1000}, 3);
    for (const auto& [fd, iocb] : {std::pair{4, 0x10}, std::pair{9, 0x20}, std::pair{4, 0x30}}) {
        block.fd = fd;
        block.iocb = static_cast<raw_u64>(iocb);
        submit.part(RAW_PART_IOCB, 2, &block, sizeof block, 1);
        // 4 is another number of the first file, which no call has told.
        submit.fd(2, fd == 4 ? RawJob::fd_of(4, 0xf1, 7) : RawJob::fd_of(9, 0xf9, 8));
    }
    const AssembledLog log = job.assemble();
    std::vector<std::string> paths;
    for (const Op& op : log.of_kind(OpKind::aio_submit)) {
        paths.push_back(log.path_of(op));
    }
    CHECK(paths == std::vector<std::string>{"/d/a", "/d/b", "/d/a"});
    // All are in flight from the begin of the call on; the last one has its time.
    const std::vector<Op> requests = log.of_kind(OpKind::aio_submit);
    CHECK(requests.at(0).begin == requests.at(2).begin);
    CHECK(requests.at(1).duration == 0);
    CHECK(requests.at(2).duration == 1000);
    CHECK(log.of_kind(OpKind::aio_submit).at(0).handle == log.of_kind(OpKind::open).at(0).handle);
}

TEST_CASE("who finds no message asks who woke it: at the end of a pipe, and before the write has returned") {
    const auto cause = [](bool counter, int64_t got, uint64_t write_ends) {
        const auto file = [&](int fd) {
            raw_fd out = end_of_pipe(fd);
            if (counter) {
                out = RawJob::fd_of(fd, 0xf5, 50, 0, 0);
                out.info = RAW_FD_EVENTFD;
            }
            return out;
        };
        RawJob job;
        job.open("/d/a", 3, 0xf1, 7);
        const uint64_t from = job.now, enter = from + 40 * kUs;
        const uint16_t nr = got ? SYS_write : SYS_close;
        job.as(100, 200);
        job.woken(from + 10 * kUs, enter + 2 * kUs, from + 50 * kUs, SYS_read, 100, 100, nr, enter);
        job.call_at(from + 9 * kUs, from + 51 * kUs, SYS_read, {5, 0x9000, 8}, got).fd(0, file(5));
        job.as(100, 100);
        job.call_at(enter, from + write_ends * kUs, nr, {6, 0x9000, 8}, got).fd(0, file(6));
        const AssembledLog log = job.assemble();
        std::string out;
        for (const Edge& edge : edges_of(log, 2, 0)) {
            out += edge.kind == EdgeKind::wake ? "wake " : "message ";
            out += info(log.ops(edge.task).at(edge.op).kind).name;
        }
        return out;
    };
    CHECK(cause(true, 8, 60) == "wake send");
    CHECK(cause(true, 8, 45) == "message send");
    CHECK(cause(false, 0, 60) == "wake close");
    CHECK(cause(false, 0, 45) == "wake close");
}

TEST_CASE("a wait that a signal cut short has its length") {
    const auto ops = [](uint16_t nr, bool slept, int64_t result) {
        RawJob job;
        job.open("/d/a", 3, 0xf1, 7);
        const uint64_t from = job.now;
        job.off(from + 20 * kUs, from + 90 * kUs, from + 91 * kUs, slept ? nr : 0xffff,
                slept ? RAW_OFF_SLEEPING : RAW_OFF_RUNNABLE);
        job.call_at(from + 10 * kUs, from + 100 * kUs, nr, {0x5000, 0x80, 7, 0}, result);
        const AssembledLog log = job.assemble();
        std::string out;
        for (const Op& op : log.of_kind(OpKind::wait)) {
            out += std::to_string(op.arg) + " " + std::to_string(op.duration) + " " + std::to_string(op.result);
        }
        return out + (log.counter("calls_cut") ? " cut" : "");
    };
    CHECK(ops(SYS_futex, true, -512) == "1 90000 -4 cut");
    CHECK(ops(SYS_futex, true, -516) == "1 90000 -4 cut");
    CHECK(ops(SYS_futex, false, -512).empty());
    CHECK(ops(SYS_futex, true, -511) == "1 90000 -511");
    CHECK(ops(SYS_futex, true, -517) == "1 90000 -517");
    CHECK(ops(SYS_read, true, -512) == "0 90000 -4 cut");
}

TEST_CASE("a word that counts is no lock, though it was 2 in a wait: Rust's condition variables, barriers") {
    struct Case {
        std::vector<uint64_t> values;  // of the waits
        size_t locks;
    };
    // The last one: memory of a mutex that was used for something else before.
    for (const Case& each :
         {Case{{0, 1, 2, 3, 4}, 0}, Case{{1, 2}, 0}, Case{{2, 2, 2}, 3}, Case{{2}, 1}, Case{{0, 2, 2, 2}, 4}}) {
        CAPTURE(each.values);
        RawJob job;
        job.call(SYS_getpid, {}, 0);
        for (const uint64_t value : each.values) {
            const uint64_t from = job.now;
            job.as(100, 1);
            job.woken(from + 2 * kUs, from + 50 * kUs, from + 51 * kUs, SYS_futex, 100, 2, SYS_futex, from + 40 * kUs);
            job.call_at(from + kUs, from + 52 * kUs, SYS_futex, {0x6000, 0x89, value, 0}, 0);
            job.as(100, 2);
            job.call_at(job.now + kUs, job.now + 2 * kUs, SYS_futex, {0x6000, 0x81, 1}, 1);
        }
        size_t locks = 0, others = 0;
        for (const Op& op : job.assemble().of_kind(OpKind::wait)) {
            locks += op.arg == kWaitLock;
            others += op.arg == kWaitFutex;
        }
        CHECK(locks == each.locks);
        CHECK(others == each.values.size() - each.locks);
    }
}

TEST_CASE("a condition that others signal is no interpreter lock, however often it is waited for") {
    for (const bool waiters_wake : {false, true}) {
        RawJob job;
        job.call(SYS_getpid, {}, 0);
        for (int i = 0; i < 12; ++i) {
            const uint64_t from = job.now;
            job.as(100, 1);
            job.woken(from + 2 * kUs, from + 50 * kUs, from + 51 * kUs, SYS_futex, 100, 2, SYS_futex, from + 40 * kUs);
            job.call_at(from + kUs, from + 52 * kUs, SYS_futex, {0x6000, 0x189, 0, 0x7fff}, 0);
            job.as(100, waiters_wake ? 1 : 2);
            job.call_at(job.now + kUs, job.now + 2 * kUs, SYS_futex, {0x6000, 0x81, 1}, 1);
        }
        size_t locks = 0, others = 0;
        for (const Op& op : job.assemble().of_kind(OpKind::wait)) {
            locks += op.arg == kWaitLock;
            others += op.arg == kWaitFutex;
        }
        CHECK(locks == (waiters_wake ? 12 : 0));
        CHECK(others == (waiters_wake ? 0 : 12));
    }
}

TEST_CASE("two tasks that wait for the interpreter lock in turn: each has a word of its condition for itself") {
    // Words 4 bytes apart are of one condition of glibc.
    for (const uint64_t apart : {4U, 64U}) {
        CAPTURE(apart);
        RawJob job;
        job.call(SYS_getpid, {}, 0);
        for (int i = 0; i < 12; ++i) {
            const uint32_t waiter = i % 2 ? 2 : 1, waker = 3 - waiter;
            const uint64_t word = 0x6000 + (i % 2) * apart, from = job.now;
            job.as(100, waiter);
            job.woken(from + 2 * kUs, from + 50 * kUs, from + 51 * kUs, SYS_futex, 100, waker, SYS_futex,
                      from + 40 * kUs);
            job.call_at(from + kUs, from + 52 * kUs, SYS_futex, {word, 0x189, 0, 0x7fff}, 0);
            job.as(100, waker);
            job.call_at(job.now + kUs, job.now + 2 * kUs, SYS_futex, {word, 0x81, 1}, 1);
        }
        size_t locks = 0;
        for (const Op& op : job.assemble().of_kind(OpKind::wait)) {
            locks += op.arg == kWaitLock ? 1 : 0;
        }
        CHECK(locks == (apart == 4 ? 12 : 0));
    }
}

TEST_CASE("who waits for the interpreter lock of a thread that blocks waits for that, and not while one computes") {
    struct Case {
        uint64_t blocked_us;  // of the 6 ms for which the other waits
        bool gives = false;   // the lock back in between, and blocks without it
        bool faults = false;  // it reads through a page fault, and not by a call
        uint64_t held_us = 6000;
        bool is_cause = false;
    };
    for (const Case& each : {Case{5000, false, false, 6000, true}, Case{5000, false, true, 6000, true}, Case{2000},
                             Case{0}, Case{5000, true}, Case{80, false, false, 120}}) {
        CAPTURE(each.blocked_us);
        CAPTURE(each.gives);
        CAPTURE(each.faults);
        CAPTURE(each.held_us);
        constexpr uint64_t kGil = 0x6000;
        RawJob job;
        job.call(SYS_getpid, {}, 0);
        job.as(100, 2);
        job.open("/data/a", 3, 0x10, 50);
        job.call(SYS_mmap, {0, 1 << 20, 3, 1, 3, 0}, 0x700000).fd(4, job.fd_of(3, 0x10, 50));
        for (int i = 0; i < 10; ++i) {
            // Task 1 asks for the lock after 10 us, again after 5 ms, and has it after held_us.
            const uint64_t from = job.now + 20 * kUs, until = from + each.held_us * kUs;
            const bool twice = each.held_us > 5000;
            if (each.gives) {
                job.as(100, 2);
                job.call_at(from + 20 * kUs, from + 21 * kUs, SYS_futex, {kGil, 0x81, 1}, 1);
            }
            if (twice) {
                job.as(100, 1);
                job.off(from + 11 * kUs, from + 5011 * kUs, from + 5012 * kUs, SYS_futex);
                job.call_at(from + 10 * kUs, from + 5012 * kUs, SYS_futex, {kGil, 0x189, 0, 0x7fff}, -ETIMEDOUT);
            }
            const uint64_t blocks = until - (each.blocked_us + 5) * kUs;
            job.as(100, 2);
            if (each.faults) {
                job.fault(blocks, until - 5 * kUs, 0x700000 + static_cast<uint64_t>(i) * 4096, 0, true);
            } else if (each.blocked_us != 0) {
                job.call_at(blocks, until - 5 * kUs, SYS_pread64, {3, 0x9000, 4096, 0}, 4096)
                    .fd(0, job.fd_of(3, 0x10, 50));
            }
            job.as(100, 1);
            const uint64_t again = from + (twice ? 5013 : 10) * kUs;
            job.woken(again + kUs, until, until + kUs, SYS_futex, 100, 2, SYS_futex, until - 2 * kUs);
            job.call_at(again, until + 2 * kUs, SYS_futex, {kGil, 0x189, 0, 0x7fff}, 0);
            job.as(100, 2);
            job.call_at(until - 2 * kUs, until + 2 * kUs, SYS_futex, {kGil, 0x81, 1}, 1);
            job.as(100, 1);
            job.call_at(job.now + 5 * kUs, job.now + 6 * kUs, SYS_futex, {kGil, 0x81, 1}, 1);
        }
        size_t causes = 0, waits = 0;
        const AssembledLog log = job.assemble();
        for (const auto& [task, rows] : log.rows) {
            for (size_t n = 0; n < rows.size(); ++n) {
                const Op& op = rows[n].op;
                if (op.kind == OpKind::wait && op.arg != kWaitWokeOthers) {
                    CHECK(op.arg == kWaitLock);
                    waits += op.result == 0 ? 1 : 0;
                    causes += edges_of(log, task, n).size();
                }
            }
        }
        CHECK(waits == 10);
        CHECK(causes == (each.is_cause ? 10 : 0));
    }
}

TEST_CASE("a lock that is held during calls on files: its waits say so") {
    struct Case {
        uint64_t value;     // of the word in the waits
        uint64_t read_us;   // of the 100 us for which the other waits
        bool waiter_wakes;  // the word is one that tasks both wait for and wake others on
        int64_t arg;
    };
    constexpr int64_t kHeld = kWaitHeldInCalls;
    for (const Case& each :
         {Case{2, 80, false, kWaitLock + kHeld}, Case{2, 30, false, kWaitLock}, Case{2, 0, false, kWaitLock},
          Case{0, 80, true, kWaitFutex + kHeld}, Case{0, 80, false, kWaitFutex}, Case{0, 30, true, kWaitFutex}}) {
        CAPTURE(each.value);
        CAPTURE(each.read_us);
        CAPTURE(each.waiter_wakes);
        RawJob job;
        job.call(SYS_getpid, {}, 0);
        job.as(100, 2);
        job.open("/data/a", 3, 0x10, 50);
        for (int i = 0; i < 3; ++i) {
            const uint64_t from = job.now + 20 * kUs;
            // Task 1 waits from 10 to 110 us; task 2 reads in the meantime, then wakes it.
            if (each.read_us != 0) {
                job.as(100, 2);
                job.call_at(from + (105 - each.read_us) * kUs, from + 105 * kUs, SYS_pread64, {3, 0x9000, 4096, 0},
                            4096)
                    .fd(0, job.fd_of(3, 0x10, 50));
            }
            job.as(100, 1);
            job.woken(from + 10 * kUs, from + 110 * kUs, from + 120 * kUs, SYS_futex, 100, 2, SYS_futex,
                      from + 108 * kUs);
            job.call_at(from + 9 * kUs, from + 121 * kUs, SYS_futex, {0x6000, 0x80, each.value, 0}, 0);
            job.as(100, 2);
            job.call_at(from + 108 * kUs, from + 122 * kUs, SYS_futex, {0x6000, 0x81, 1}, 1);
            if (each.waiter_wakes) {
                job.as(100, 1);
                job.call_at(job.now + 5 * kUs, job.now + 6 * kUs, SYS_futex, {0x6000, 0x81, 1}, 0);
            }
        }
        size_t waits = 0;
        for (const Op& op : job.assemble().of_kind(OpKind::wait)) {
            if (op.arg != kWaitWokeOthers) {
                CHECK(op.arg == each.arg);
                ++waits;
            }
        }
        CHECK(waits == 3);
    }
}

// SPDX-License-Identifier: MIT
// Raw recordings to op logs: waits that signals end, children by their numbers inside a PID namespace, and what
// messages, sockets and locks wake.
#include <doctest/doctest.h>

#include <fcntl.h>

#include "tests/formats/assemble/recording/two_tasks.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int64_t kRestart = -512, kNoHandler = -514, kRestartBlock = -516, kIntr = -4;
constexpr uint32_t kSocket = 0140777;

}  // namespace

TEST_CASE("a wait that the end of a task interrupts depends on that end") {
    struct Case {
        int nr;
        int64_t result, kind;
    };
    for (const Case& each : {Case{SYS_rt_sigsuspend, kNoHandler, kWaitUnknown},
                             {SYS_pause, kNoHandler, kWaitUnknown},
                             {SYS_ppoll, kNoHandler, kWaitPoll},
                             {SYS_epoll_pwait, kIntr, kWaitEpoll},
                             {SYS_rt_sigtimedwait, kIntr, kWaitUnknown},
                             {SYS_wait4, kRestart, kWaitChild},
                             {SYS_futex, kRestart, kWaitFutex},
                             {SYS_msgrcv, kNoHandler, kWaitUnknown}}) {
        CAPTURE(each.nr);
        Two job;
        const uint64_t exit = job.ends();
        job.sleeps(static_cast<uint16_t>(each.nr), {0, 0, 0, 0}, each.result, SYS_exit_group, exit);
        job.goes_on();
        const AssembledLog log = job.assemble();
        CHECK(wait_class(wait_of(log).arg) == each.kind);
        CHECK(wait_of(log).result == kIntr);
        CHECK(of_wait(log) == Edges{{2, EdgeKind::lifecycle, 100, number_of(log, 2, OpKind::exit)}});
        CHECK(log.counter("wakes_unmatched") == 0);
    }
}

TEST_CASE("a wait that a call interrupts depends on what was done before that call") {
    for (const uint16_t nr : {SYS_kill, SYS_tgkill, SYS_pidfd_send_signal}) {
        Two job;
        const uint64_t kill = job.from + 50 * kUs;
        job.call_at(kill, kill + 6 * kUs, nr, {100, 10}, 0);
        job.sleeps(SYS_pselect6, {}, kNoHandler, nr, kill);
        job.goes_on();
        const AssembledLog log = job.assemble();
        CHECK(of_wait(log) == Edges{{2, EdgeKind::wake, 100, number_of(log, 2, OpKind::compute, 1)}});
    }
}

TEST_CASE("a wait that a timer or nobody recorded interrupts has no cause") {
    Two job;
    const uint64_t exit = job.ends();
    job.sleeps(SYS_rt_sigsuspend, {}, kNoHandler, kNobody, exit);
    job.goes_on();
    const AssembledLog log = job.assemble();
    CHECK(of_wait(log).empty());
}

TEST_CASE("a soft interrupt in a task's call sends no signal of its own") {
    Two job;
    const uint64_t exit = job.ends();
    job.sleeps(SYS_rt_sigsuspend, {}, kNoHandler, SYS_exit_group, exit, RAW_FLAG_DEFERRED);
    job.goes_on();
    CHECK(of_wait(job.assemble()).empty());
}

TEST_CASE("an interrupted sleep depends on the signal, unless it goes on") {
    enum class Then { reads, sleeps_on, ends };
    for (const Then then : {Then::reads, Then::sleeps_on, Then::ends}) {
        CAPTURE(static_cast<int>(then));
        Two job;
        const uint64_t exit = job.ends();
        job.sleeps(SYS_clock_nanosleep, {}, kNoHandler, SYS_exit_group, exit);
        if (then == Then::sleeps_on) {
            job.call(SYS_getpid, {}, 100);  // no recorded call
            const uint64_t at = job.now + kUs;
            job.off(at + kUs, at + 50 * kUs, at + 50 * kUs, SYS_clock_nanosleep);
            job.call_at(at, at + 51 * kUs, SYS_clock_nanosleep, {}, 0);
        }
        then == Then::ends ? job.exit(0) : job.goes_on();
        const AssembledLog log = job.assemble();
        CHECK(wait_of(log).arg == kWaitSleep);
        CHECK(of_wait(log).size() == (then == Then::sleeps_on ? 0 : 1));
        if (then == Then::sleeps_on) {
            CHECK(of_wait(log, 1).empty());
        }
    }
}

TEST_CASE("a sleep without a switch, as earlier versions recorded some, is a sleep") {
    for (const int64_t result : {0, -EINVAL}) {
        Two job;
        const uint64_t off = job.now + kUs;
        job.off(off, off + 50 * kUs, off + 50 * kUs, SYS_pause);  // others have switches
        job.ends();
        job.as(100, 100);
        const uint64_t at = job.now + kUs;
        job.call_at(at, at + 40'000 * kUs, SYS_clock_nanosleep, {}, result);
        job.goes_on();
        const AssembledLog log = job.assemble();
        const uint64_t wait = number_of(log, 1, OpKind::wait);
        CHECK((wait != UINT64_MAX) == (result == 0));
        if (result == 0) {
            CHECK(log.rows.at(1)[wait].op.arg == kWaitSleep);
            CHECK(log.rows.at(1)[wait].op.duration >= 39'900 * int64_t{kUs});
        }
    }
}

TEST_CASE("a call that the kernel restarts after a stop is the call it was") {
    Two job;
    const uint64_t write = job.from + 90 * kUs;
    job.call_at(write, write + 6 * kUs, SYS_write, {6, 0x9000, 10}, 10).fd(0, RawJob::pipe_of(6, 0xf6, 50));
    job.sleeps(SYS_poll, {0x1000, 1, 5000}, kRestartBlock, kNobody, job.from + 20 * kUs);
    job.woken(job.from + 40 * kUs, write + 5 * kUs, write + 7 * kUs, SYS_restart_syscall, 200, 200, SYS_write, write);
    job.call_at(job.from + 39 * kUs, write + 8 * kUs, SYS_restart_syscall, {0x1000, 1, 5000}, 1);
    job.goes_on();
    const AssembledLog log = job.assemble();
    CHECK(of_wait(log).empty());
    CHECK(wait_of(log, 1).arg == kWaitPoll);
    CHECK(of_wait(log, 1) == Edges{{2, EdgeKind::wake, 100, number_of(log, 2, OpKind::send)}});
    CHECK(number_of(log, 1, OpKind::wait, 2) == UINT64_MAX);
}

TEST_CASE("children have other numbers inside a PID namespace") {
    for (const bool by_id : {false, true}) {
        CAPTURE(by_id);
        Two job;
        const uint64_t exit = job.ends();
        const uint16_t nr = by_id ? SYS_waitid : SYS_wait4;
        RawBytes& call = job.sleeps(nr, {2, 0, 0x1000}, by_id ? 0 : 2, SYS_exit_group, exit);
        if (by_id) {
            call.numbers(RAW_PART_VALUES, 2, {2, 1, 0});
        }
        call.numbers(RAW_PART_VALUES, RAW_WHICH_RESULT, {200});
        job.goes_on();
        const AssembledLog log = job.assemble();
        const uint64_t join = number_of(log, 1, OpKind::join);
        REQUIRE(join != UINT64_MAX);
        CHECK(log.rows.at(1)[join].op.peer == 2);
        CHECK(edges_of(log, 1, join) == Edges{{2, EdgeKind::lifecycle, 100, number_of(log, 2, OpKind::exit)}});
    }
}

TEST_CASE("a number inside a PID namespace is nobody's outside it") {
    Two job;
    const uint64_t exit = job.ends();
    job.sleeps(SYS_wait4, {2}, 2, SYS_exit_group, exit);
    job.goes_on();
    const AssembledLog log = job.assemble();
    CHECK(number_of(log, 1, OpKind::join) == UINT64_MAX);
    CHECK(wait_of(log).arg == kWaitChild);
}

TEST_CASE("who sends a message wakes who waits for one, and nobody else") {
    struct Case {
        int send, wait;
        bool wakes;
    };
    for (const Case& each : {Case{SYS_msgsnd, SYS_msgrcv, true},
                             {SYS_semop, SYS_semop, true},
                             {SYS_semtimedop, SYS_semop, true},
                             {SYS_msgrcv, SYS_msgsnd, true},
                             {SYS_mq_timedsend, SYS_mq_timedreceive, true},
                             {SYS_mq_timedreceive, SYS_mq_timedsend, true},
                             {SYS_mq_timedsend, SYS_poll, false},
                             {SYS_kill, SYS_msgrcv, false}}) {
        CAPTURE(each.send);
        CAPTURE(each.wait);
        Two job;
        const uint64_t enter = job.from + 50 * kUs;
        job.call_at(enter, enter + 6 * kUs, static_cast<uint16_t>(each.send), {5, 0x9000, 8}, 8);
        job.sleeps(static_cast<uint16_t>(each.wait), {5, 0x9000, 8}, 8, static_cast<uint16_t>(each.send), enter);
        job.goes_on();
        const AssembledLog log = job.assemble();
        const EdgeKind kind = each.send == SYS_msgsnd ? EdgeKind::message : EdgeKind::wake;
        const bool takes = each.send == SYS_msgrcv || each.send == SYS_mq_timedreceive;  // which is an op
        const uint64_t source = takes ? number_of(log, 2, OpKind::wait) : number_of(log, 2, OpKind::compute, 1);
        CHECK(of_wait(log) == (each.wakes ? Edges{{2, kind, 100, source}} : Edges{}));
    }
}

TEST_CASE("what soft interrupts in a call wake depends on it where it is on a socket") {
    struct Case {
        uint32_t mode;
        uint16_t state;
        bool wakes;
    };
    for (const bool late : {false, true}) {  // the waker's call returns after the sleeper's
        for (const Case& each : {Case{kSocket, RAW_OFF_SLEEPING, true},
                                 {0010600U, RAW_OFF_SLEEPING, false},
                                 {kSocket, RAW_OFF_UNINTERRUPTIBLE, false}}) {
            CAPTURE(late);
            CAPTURE(each.mode);
            CAPTURE(each.state);
            Two job;
            const uint64_t enter = job.from + 50 * kUs;
            const auto send = [&] {
                job.as(200, 200);
                job.call_at(enter, enter + (late ? 20 : 6) * kUs, SYS_write, {6, 0x9000, 8}, 8)
                    .fd(0, RawJob::fd_of(6, 0xf6, 50, 0, each.mode));
            };
            if (!late) {
                send();
            }
            job.sleeps(SYS_ppoll, {}, 1, SYS_write, enter, RAW_FLAG_DEFERRED, each.state);
            if (late) {
                send();
            }
            job.goes_on();
            const AssembledLog log = job.assemble();
            CHECK(of_wait(log).size() == (each.wakes ? 1 : 0));
            CHECK((!each.wakes || log.rows.at(2)[of_wait(log).at(0).op].op.kind == OpKind::send));
        }
    }
}

TEST_CASE("a change of names or files wakes who watches for it, and no other sleep in the kernel") {
    struct Case {
        int nr;
        std::vector<uint64_t> args;
        OpKind kind;
    };
    const std::vector<Case> cases = {{SYS_openat, {uint64_t(-100), 0x1000, O_RDONLY}, OpKind::open},
                                     {SYS_mkdir, {0x1000, 0700}, OpKind::mkdir},
                                     {SYS_rmdir, {0x1000}, OpKind::rmdir},
                                     {SYS_unlink, {0x1000}, OpKind::unlink},
                                     {SYS_rename, {0x1000, 0x2000}, OpKind::rename},
                                     {SYS_link, {0x1000, 0x2000}, OpKind::link},
                                     {SYS_chmod, {0x1000, 0640}, OpKind::chmod},
                                     {SYS_truncate, {0x1000, 5}, OpKind::truncate},
                                     {SYS_symlinkat, {0x3000, uint64_t(-100), 0x1000}, OpKind::symlink}};
    for (const Case& each : cases) {
        for (const uint16_t nr : {SYS_read, SYS_poll}) {
            for (const uint16_t state : {RAW_OFF_SLEEPING, RAW_OFF_UNINTERRUPTIBLE}) {
                CAPTURE(each.nr);
                CAPTURE(nr);
                CAPTURE(state);
                Two job;
                const uint64_t enter = job.from + 50 * kUs;
                RawBytes& call = job.call_at(enter, enter + 7 * kUs, static_cast<uint16_t>(each.nr), each.args, 0);
                for (uint16_t i = 0; i < each.args.size(); ++i) {
                    if (each.args[i] == 0x1000 || each.args[i] == 0x2000) {
                        call.path(i, each.args[i] == 0x1000 ? "/d/b" : "/d/c");
                    }
                }
                job.sleeps(nr, {5, 0x9000, 64}, 16, static_cast<uint16_t>(each.nr), enter, 0, state)
                    .fd(0, RawJob::fd_of(5, 0xf5, 51, 0, 0600));
                job.goes_on();
                const AssembledLog log = job.assemble();
                const Edge edge{2, EdgeKind::wake, 100,
                                number_of(log, 2, each.kind, each.kind == OpKind::open ? 1 : 0)};
                const uint64_t waits = number_of(log, 1, nr == SYS_read ? OpKind::receive : OpKind::wait);
                REQUIRE(waits != UINT64_MAX);
                CHECK(edges_of(log, 1, waits) == (state == RAW_OFF_SLEEPING ? Edges{edge} : Edges{}));
            }
        }
    }
}

TEST_CASE("a lock of a range is had once it is given back") {
    for (const int command : {F_SETLKW, F_OFD_SETLKW, F_SETLK}) {
        CAPTURE(command);
        Two job;
        const uint64_t enter = job.from + 50 * kUs;
        job.call_at(enter, enter + 6 * kUs, SYS_fcntl, {4, F_SETLK, 0x1000}, 0).fd(0, RawJob::fd_of(4, 0xf2, 8));
        job.sleeps(SYS_fcntl, {3, uint64_t(command), 0x1000}, 0, SYS_fcntl, enter).fd(0, RawJob::fd_of(3, 0xf1, 7));
        job.goes_on();
        const AssembledLog log = job.assemble();
        const uint64_t lock = number_of(log, 1, OpKind::fcntl), wait = number_of(log, 1, OpKind::wait);
        REQUIRE(lock != UINT64_MAX);
        if (command == F_SETLK) {  // does not wait for a lock
            CHECK(wait == UINT64_MAX);
            continue;
        }
        CHECK(lock == wait + 1);
        CHECK(of_wait(log) == Edges{{2, EdgeKind::wake, 100, number_of(log, 2, OpKind::fcntl)}});
        // What it waited is not in the call any more.
        CHECK(wait_of(log).duration > 50'000);
        CHECK(log.rows.at(1)[lock].op.duration <= 2'000);
    }
}

TEST_CASE("who reads from a terminal waits for what was written to it, then reads") {
    for (const uint32_t mode : {0020620U, 0100644U}) {
        CAPTURE(mode);
        Two job;
        const uint64_t enter = job.from + 50 * kUs;
        // The write returns before a worker of the kernel delivers what was written.
        job.call_at(enter, enter + 3 * kUs, SYS_write, {6, 0x9000, 8}, 8).fd(0, RawJob::fd_of(6, 0xf6, 50, 0, mode));
        job.sleeps(SYS_read, {5, 0x9000, 8}, 8, SYS_write, enter, RAW_FLAG_DEFERRED)
            .fd(0, RawJob::fd_of(5, 0xf5, 51, 0, mode));
        job.goes_on();
        const AssembledLog log = job.assemble();
        const uint64_t read = number_of(log, 1, OpKind::read), wait = number_of(log, 1, OpKind::wait);
        REQUIRE(read != UINT64_MAX);
        CHECK(edges_of(log, 1, read).empty());
        if ((mode & 0170000) == 0100000) {
            CHECK(wait == UINT64_MAX);
            continue;
        }
        CHECK(read == wait + 1);
        CHECK(of_wait(log) == Edges{{2, EdgeKind::wake, 100, number_of(log, 2, OpKind::write)}});
        CHECK(log.rows.at(1)[read].op.duration <= 2'000);
    }
}

TEST_CASE("the open of a FIFO waits for whoever opens its other end; other opens wait for locks") {
    for (const uint32_t mode : {0010600U, 0100600U}) {
        const bool fifo = mode == 0010600U;
        Two job;
        const uint64_t enter = job.from + 100 * kUs;
        job.as(200, 200);
        job.call_at(enter, enter + 7 * kUs, SYS_openat, {uint64_t(-100), 0x1000, O_WRONLY}, 5)
            .path(1, "/d/ff")
            .fd(RAW_WHICH_RESULT, RawJob::fd_of(5, 0xf5, 9, 0, mode));
        job.sleeps(SYS_openat, {uint64_t(-100), 0x1000, O_RDONLY}, 6, SYS_openat, enter)
            .path(1, "/d/ff")
            .fd(RAW_WHICH_RESULT, RawJob::fd_of(6, 0xf6, 9, 0, mode));
        job.goes_on();
        const AssembledLog log = job.assemble();
        CHECK(log.of_kind(OpKind::wait).size() == (fifo ? 1 : 0));
        if (!fifo) {
            CHECK(edges_of(log, 1, number_of(log, 1, OpKind::open, 1)).empty());
            continue;
        }
        CHECK(wait_of(log).duration == static_cast<int64_t>(105 * kUs));
        const Edges edges = of_wait(log);
        REQUIRE(edges.size() == 1);
        CHECK(edges[0].task == 2);
        CHECK(edges[0].op == number_of(log, 2, OpKind::open, 1));
        const std::vector<Op> ops = log.ops(1);
        CHECK(ops[number_of(log, 1, OpKind::open, 1)].duration < static_cast<int64_t>(10 * kUs));
    }
}

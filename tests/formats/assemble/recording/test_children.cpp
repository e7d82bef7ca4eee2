// SPDX-License-Identifier: MIT
// Raw recordings to op logs: processes that a signal stops, looks for a process's end, queues whose messages lie ready.
#include <doctest/doctest.h>

#include <sys/wait.h>

#include <csignal>
#include <initializer_list>

#include "tests/formats/assemble/recording/two_tasks.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr uint16_t kNoCallAtAll = 0xffff;
constexpr raw_s64 kExited = CLD_EXITED, kStopped = CLD_STOPPED, kContinued = CLD_CONTINUED;

// Task 2 reads at 40 us and stops itself 10 us later, for which task 1 waits.
struct Stop : Two {
    uint64_t stop = from + 50 * kUs;
    explicit Stop(bool comes_late = false) {
        as(200, 200);
        call_at(from + 40 * kUs, from + 41 * kUs, SYS_pread64, {4, 0x9000, 10, 0}, 10).fd(0, fd_of(4, 0xf2, 8));
        if (comes_late) {
            now = stop + 100 * kUs;
        } else {
            as(100, 100);
            off(from + 2 * kUs, stop, stop + kUs, SYS_waitid);
            now = from + kUs;
        }
    }
    RawBytes& told(uint16_t nr, uint64_t options, raw_s64 code = kStopped) {
        as(100, 100);
        const bool by_id = nr == SYS_waitid;
        const std::vector<uint64_t> args =
            by_id ? std::vector<uint64_t>{1, 200, 0x1000, options} : std::vector<uint64_t>{200, 0x1000, options};
        RawBytes& call = call_at(now, std::max(now, stop) + 2 * kUs, nr, args, by_id ? 0 : 200);
        if (by_id) {
            call.numbers(RAW_PART_VALUES, 2, {200, code, SIGSTOP});
        }
        return call;
    }
};

}  // namespace

TEST_CASE("a wait for a child's stop depends on what it did until then") {
    for (const uint16_t nr : {SYS_waitid, SYS_wait4}) {
        CAPTURE(nr);
        Stop job;
        job.told(nr, WUNTRACED);
        job.goes_on();
        const AssembledLog log = job.assemble();
        // It computed between the read and the stop.
        const uint64_t last = log.rows.at(2).size() - 1;
        CHECK(log.rows.at(2)[last].op.kind == OpKind::compute);
        CHECK(of_wait(log) == Edges{{2, EdgeKind::wake, 100, last}});
        CHECK(wait_of(log).arg == kWaitChild);
    }
}

TEST_CASE("a child that had stopped before its parent waits had done its calls") {
    Stop job(true);
    job.told(SYS_wait4, WUNTRACED);
    job.goes_on();
    const AssembledLog log = job.assemble();
    CHECK(of_wait(log) == Edges{{2, EdgeKind::wake, 100, number_of(log, 2, OpKind::pread)}});
}

TEST_CASE("a wait that tells of something else than a stop has no such cause") {
    struct Told {
        uint16_t nr;
        uint64_t options;
        int code;
    };
    // No structured binding: clang 14 does not let the lambdas of CAPTURE name one.
    for (const Told& told :
         {Told{SYS_waitid, WEXITED | WSTOPPED, kContinued}, Told{SYS_waitid, WEXITED | WSTOPPED, kExited},
          Told{SYS_wait4, WCONTINUED | WUNTRACED, kStopped}, Told{SYS_wait4, 0, kStopped}}) {
        CAPTURE(told.nr);
        CAPTURE(told.code);
        Stop job;
        job.told(told.nr, told.options, told.code);
        job.goes_on();
        CHECK(of_wait(job.assemble()).empty());
    }
}

TEST_CASE("who was stopped goes on once a signal is sent") {
    for (const uint16_t waker : std::initializer_list<uint16_t>{SYS_kill, SYS_tgkill, SYS_write, kNoCallAtAll}) {
        CAPTURE(waker);
        Two job;
        const uint64_t kill = job.from + 50 * kUs;
        job.call_at(kill, kill + 6 * kUs, waker, {100, SIGCONT}, 0);
        job.as(100, 100);
        const uint64_t stop = job.from + 5 * kUs;
        waker == kNoCallAtAll ? job.off(stop, kill, kill + kUs, kNoCallAtAll)
                              : job.woken(stop, kill + 2 * kUs, kill + 3 * kUs, kNoCallAtAll, 200, 200, waker, kill);
        job.now = kill + 20 * kUs;
        job.goes_on();
        const AssembledLog log = job.assemble();
        const bool sent = waker == SYS_kill || waker == SYS_tgkill;
        CHECK((number_of(log, 1, OpKind::idle) == UINT64_MAX) == sent);
        REQUIRE((number_of(log, 1, OpKind::wait) != UINT64_MAX) == sent);
        if (sent) {
            CHECK(of_wait(log) == Edges{{2, EdgeKind::wake, 100, number_of(log, 2, OpKind::compute, 1)}});
        }
    }
}

TEST_CASE("a look whether a process has ended is one, and finds its end") {
    for (const uint16_t nr : {SYS_wait4, SYS_waitid, SYS_kill}) {
        CAPTURE(nr);
        Two job;
        const auto look = [&](bool ended) {
            job.as(100, 100);
            if (nr == SYS_kill) {
                job.call(nr, {200, 0}, ended ? -ESRCH : 0);
            } else if (nr == SYS_wait4) {
                job.call(nr, {200, 0x1000, WNOHANG}, ended ? 200 : 0);
            } else {
                job.call(nr, {1, 200, 0x1000, WEXITED | WNOHANG}, 0)
                    .numbers(RAW_PART_VALUES, 2, {ended ? 200 : 0, ended ? kExited : 0, 0});
            }
        };
        look(false);
        job.ends();
        look(true);
        job.goes_on();
        const AssembledLog log = job.assemble();
        CHECK(wait_of(log).arg == kWaitChild + kWaitLooked);
        CHECK(number_of(log, 1, OpKind::wait, 1) == UINT64_MAX);
        const uint64_t join = number_of(log, 1, OpKind::join);
        REQUIRE(join != UINT64_MAX);
        CHECK(log.rows.at(1)[join].op.peer == 2);
        CHECK(log.rows.at(1)[join].op.result == (nr == SYS_waitid ? 0 : 200));
        CHECK(edges_of(log, 1, join) == Edges{{2, EdgeKind::lifecycle, 100, number_of(log, 2, OpKind::exit)}});
    }
}

TEST_CASE("signals that are sent, and questions for nobody who is recorded, are no ops") {
    Two job;
    job.as(100, 100);
    job.call(SYS_kill, {200, SIGUSR1}, 0);
    job.call(SYS_kill, {200, SIGUSR1}, -ESRCH);
    job.call(SYS_kill, {999, 0}, -ESRCH);
    job.call(SYS_kill, {uint64_t(-1), 0}, 0);
    job.call(SYS_wait4, {200, 0x1000, 0}, 0);
    job.goes_on();
    const AssembledLog log = job.assemble();
    CHECK(number_of(log, 1, OpKind::wait) == UINT64_MAX);
    CHECK(number_of(log, 1, OpKind::join) == UINT64_MAX);
}

TEST_CASE("a message that lies ready was sent before") {
    struct Case {
        uint16_t send, receive;
    };
    for (const Case& each : {Case{SYS_mq_timedsend, SYS_mq_timedreceive}, {SYS_msgsnd, SYS_msgrcv}}) {
        CAPTURE(each.send);
        Two job;
        const auto call = [&](uint16_t nr, int64_t result) {
            job.call(nr, {5, 0x9000, 8}, result).fd(0, RawJob::fd_of(5, 0xf5, 77, 0, 0100600));
        };
        job.as(200, 200);
        job.pread(4, 0xf2, 8, 0, 10);
        call(each.send, 0);
        job.pread(4, 0xf2, 8, 10, 10);
        call(each.send, 0);
        job.pread(4, 0xf2, 8, 20, 10);
        job.as(100, 100);
        call(each.receive, -EAGAIN);
        call(each.receive, 8);
        call(each.receive, 8);
        job.goes_on();
        const AssembledLog log = job.assemble();
        for (size_t n = 0; n < 2; ++n) {  // the op before the send, which is none
            const uint64_t before = number_of(log, 2, OpKind::pread, n) + 1;
            CHECK(log.rows.at(2)[before].op.kind == OpKind::compute);
            CHECK(of_wait(log, n) == Edges{{2, EdgeKind::message, 100, before}});
        }
        CHECK(number_of(log, 1, OpKind::wait, 2) == UINT64_MAX);
    }
}

TEST_CASE("a message of nobody who is recorded has no cause") {
    Two job;
    job.as(100, 100);
    job.call(SYS_msgrcv, {5, 0x9000, 8}, 8);
    job.goes_on();
    CHECK(of_wait(job.assemble()).empty());
}

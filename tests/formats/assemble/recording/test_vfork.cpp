// SPDX-License-Identifier: MIT
// Raw recordings to op logs: a parent that sleeps until its child has another program or ends.
#include <doctest/doctest.h>

#include <cstring>

#include "tests/formats/assemble/recording/raw_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

TEST_CASE("vfork: the parent waits for the program or the end of its child") {
    for (const bool executes : {true, false}) {
        CAPTURE(executes);
        RawJob job;
        job.open("/d/a", 3, 0xf1, 7);
        const uint64_t from = job.now, slow = 8'000 * kUs;
        raw_spawn record{};
        record.head.time = from + 10 * kUs;
        record.child_pid = record.child_tid = 200;
        record.flags = 0x4111;  // CLONE_VM, CLONE_VFORK
        std::strcpy(record.name, "child");
        job.add(RawBytes(RAW_SPAWN, record));
        job.as(200, 200);
        job.call_at(from + 20 * kUs, from + slow, SYS_pread64, {3, 0x9000, 10, 0}, 10).fd(0, RawJob::fd_of(3, 0xf1, 7));
        const uint64_t leaves = job.now + 9 * kUs;
        if (executes) {
            raw_exec program{};
            program.head.time = leaves + 20 * kUs;
            job.add(RawBytes(RAW_EXEC, program)).path(0, "/bin/true");
            job.call_at(leaves, leaves + 30 * kUs, SYS_execve, {}, 0);
        } else {
            job.exit(0);
        }
        const uint64_t back = leaves + 25 * kUs;
        job.as(100, 100);
        job.woken(from + 12 * kUs, leaves + 5 * kUs, back, SYS_vfork, 200, 200, executes ? SYS_execve : SYS_exit_group,
                  leaves);
        job.records().back().head().time = back;
        reinterpret_cast<raw_switch&>(job.records().back().head()).state = RAW_OFF_UNINTERRUPTIBLE;
        job.call_at(from + 9 * kUs, back + kUs, SYS_vfork, {}, 200);
        const AssembledLog log = job.assemble();
        const uint64_t spawn = number_of(log, 1, OpKind::spawn), wait = number_of(log, 1, OpKind::wait);
        REQUIRE(spawn != UINT64_MAX);
        REQUIRE(wait == spawn + 1);
        CHECK(log.ops(1)[spawn].duration == static_cast<int64_t>(3 * kUs));
        CHECK(log.ops(1)[wait].arg == kWaitChild);
        CHECK(log.ops(1)[wait].duration == static_cast<int64_t>(back - from - 12 * kUs));
        const uint64_t leave = number_of(log, 2, executes ? OpKind::exec : OpKind::exit);
        CHECK(edges_of(log, 1, wait) == std::vector<Edge>{{2, EdgeKind::lifecycle, 100, leave}});
        CHECK(edges_of(log, 2, 0) == std::vector<Edge>{{1, EdgeKind::lifecycle, 100, spawn}});
    }
}

// SPDX-License-Identifier: MIT
// Looks that are taken again after a sleep.
#include "formats/oplog/repeated_looks.h"

#include <fcntl.h>

#include <cerrno>

#include "tests/replay/job_builder.h"

namespace reprise::test {
namespace {

/// A task opens, reads and closes /status, sleeps 20 ms, and so on.
struct Looker {
    OpKind look = OpKind::pread;
    int64_t result = -ENOENT;  // of other looks
    size_t times = 4;
    int64_t computes = 100'000;  // ns, after each look
    int64_t step = 0;            // bytes, by which each read goes on
    bool opens = true;           // each time
    bool writes = false;         // between
    int64_t sleep_class = kWaitSleep;

    TempDir dir{};
    JobBuilder job{dir / "job.oplog"};

    LooksOfTask looks() {
        const TaskId task = job.lone_task();
        const FileId status = job.file("/status");
        const HandleId open = opens ? 0 : job.open(task, status);
        for (size_t i = 0; i < times; ++i) {
            if (look == OpKind::pread) {
                const HandleId h = opens ? job.open(task, status) : open;
                job.pread(task, h, static_cast<int64_t>(i) * step, 4);
                if (opens) {
                    job.close(task, h);
                }
            } else {
                job.add(task, {.kind = look, .result = result, .file = status});
            }
            if (writes) {
                job.add(task, {.kind = OpKind::mkdir, .file = job.file("/made")});
            }
            job.add(task, {.kind = OpKind::compute, .duration = computes});
            job.add(task, {.kind = OpKind::wait, .duration = 20'000'000, .arg = sleep_class});
            job.add(task, {.kind = OpKind::wait, .duration = 1'000, .arg = kWaitLock});
        }
        job.add(task, {.kind = OpKind::stat, .file = job.file("/other")});
        const LogReader log = job.finish();
        RepeatedLooks found(log.tables());
        OpBlock block;
        for (const BlockInfo& where : log.blocks_of(task)) {
            log.decode(where, block);
            for (size_t i = 0; i < block.count(); ++i) {
                found.see(block, i);
            }
        }
        return found.take();
    }
};

}  // namespace

TEST_CASE("the same look after a sleep: all but the last are taken again") {
    Looker looker;
    SUBCASE("calls of which each look has three") {}
    SUBCASE("a name that is not there") { looker.look = OpKind::access; }
    SUBCASE("a lock that is a directory") { looker.look = OpKind::mkdir, looker.result = -EEXIST; }
    SUBCASE("of a file that is opened each time, more of it") { looker.step = 4; }
    const LooksOfTask looks = looker.looks();
    REQUIRE(looks.sleeps.size() == 3);
    const uint64_t calls = looker.look == OpKind::pread ? 3 : 1;
    for (size_t i = 0; i < 3; ++i) {
        const LookSleep& sleep = looks.sleeps[i];
        CHECK(sleep.ns == 20'000'000);
        CHECK(sleep.last - sleep.first + 1 == calls);
        CHECK(sleep.first == sleep.op + 2);
        CHECK(sleep.follows == (i > 0 || calls > 0));
    }
    const uint64_t each = calls + 3;
    for (uint64_t op = 0; op < each * 4; ++op) {
        const bool look = op % each < calls;
        CHECK(looks.has(op) == (look && op < each * 3));
    }
}

TEST_CASE("what is no look that is taken again") {
    Looker looker;
    SUBCASE("once") { looker.times = 1; }
    SUBCASE("it reads on") { looker.step = 4, looker.opens = false; }
    SUBCASE("it changes something each time") { looker.writes = true; }
    SUBCASE("it makes something each time") { looker.look = OpKind::mkdir, looker.result = 0; }
    SUBCASE("it computes as well") { looker.computes = 5'000'000; }
    SUBCASE("it waits for somebody") { looker.sleep_class = kWaitFutex; }
    const LooksOfTask looks = looker.looks();
    CHECK(looks.sleeps.empty());
    CHECK(looks.repeated.empty());
}

TEST_CASE("what a look found may be there or not, but no error") {
    CHECK(is_found_or_not(0));
    CHECK(is_found_or_not(17));
    CHECK(is_found_or_not(-ENOENT));
    CHECK_FALSE(is_found_or_not(-EIO));
}

}  // namespace reprise::test

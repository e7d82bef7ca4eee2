// SPDX-License-Identifier: MIT
#include "formats/oplog/job_end.h"

#include <doctest/doctest.h>

#include <cerrno>

#include "tests/replay/job_builder.h"

using namespace reprise;
using namespace reprise::test;

TEST_CASE("job end: the code or signal of the process that was started first") {
    TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const ProcessId process = job.process();
    const TaskId task = job.task(process), thread = job.task(process);
    ProcessRow row = job.writer().tables().processes[process];
    row.pid = job.writer().tables().tasks[task].tid;
    job.writer().update_process(process, row);
    const auto ends = [&](TaskId who, int64_t code, int64_t result) {
        job.add(who, {.kind = OpKind::exit, .result = result, .arg = code});
    };
    const auto how = [&] { return failed_end(job.finish()); };
    SUBCASE("well") {
        ends(thread, 1, 0);
        ends(task, 0, 0);
        CHECK(how().empty());
    }
    SUBCASE("by its code") {
        ends(task, 3, 0);
        CHECK(how() == "exit code 3");
    }
    SUBCASE("by a signal") {
        ends(task, 128 + 9, -EINTR);
        CHECK(how() == "signal 9");
    }
    SUBCASE("not in the log") {
        job.add(task, {.kind = OpKind::compute});
        CHECK(how().empty());
    }
    SUBCASE("of two jobs none is the job") {
        job.task(job.process());
        ends(task, 3, 0);
        CHECK(how().empty());
    }
}

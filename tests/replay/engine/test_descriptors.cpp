// SPDX-License-Identifier: MIT
// Descriptors: how they are duplicated and closed, and how much is read and written through them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "formats/support/unique_fd.h"
#include "replay/engine/posix.h"
#include "replay/engine/run_context.h"
#include "tests/replay/engine/run_fixture.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE_FIXTURE(RunInRoot, "duplicates: the recorded number where one was made, the recorded error where none was") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/d/in"));
    const auto dup = [&](int64_t how, int fd2, int64_t result, int64_t flags = 0) {
        job.add(t, {.kind = OpKind::dup,
                    .result = result,
                    .handle = h,
                    .fd = job.fd(h),
                    .fd2 = fd2,
                    .flags = flags,
                    .arg = how});
    };
    const std::vector<int64_t> results{70, 71, 3, 72, 73, 74, -EINVAL, -EINVAL, -EBADF, -EBADF, 75};
    dup(kDup, -1, results[0]);
    dup(kDup2, 71, results[1]);
    dup(kDup2, job.fd(h), results[2]);  // onto itself
    dup(kDup3, 72, results[3], O_CLOEXEC);
    dup(kDupFd, -1, results[4]);
    dup(kDupFd, -1, results[5], O_CLOEXEC);
    dup(kDup3, job.fd(h), results[6]);
    dup(kDupFd, -1, results[7]);
    dup(kDup2, 1'000'000, results[8]);
    dup(kDup3, -5, results[9]);
    dup(kDup2, 75, results[10]);
    job.add(t, {.kind = OpKind::exec, .file = job.file("/d/in")});  // 12
    const auto read = [&](int fd, int64_t result) {                 // 13 on
        job.add(t, {.kind = OpKind::fcntl, .result = result, .handle = h, .fd = fd, .arg = F_GETFD});
        job.add(t, {.kind = OpKind::close, .result = result, .handle = h, .fd = fd});
    };
    for (const int fd : {3, 70, 71, 73, 75}) {  // 72 and 74 were closed by exec
        read(fd, 0);
    }
    read(3, -EBADF);
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    for (size_t i = 0; i < results.size(); ++i) {
        CAPTURE(i);
        CHECK(result_of(t, 1 + i) == results[i]);
    }
}

TEST_CASE_FIXTURE(RunInRoot, "close-on-exec is set for one descriptor of several") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/d/in"));
    for (const int copy : {11, 12}) {
        job.add(t, {.kind = OpKind::dup, .result = copy, .handle = h, .fd = job.fd(h), .fd2 = -1, .arg = kDupFd});
        job.add(t, {.kind = OpKind::fcntl, .handle = h, .fd = copy, .flags = FD_CLOEXEC, .arg = F_SETFD});
    }
    job.add(t, {.kind = OpKind::exec, .file = job.file("/d/in")});
    job.add(t, {.kind = OpKind::close, .handle = h, .fd = job.fd(h)});
    job.add(t, {.kind = OpKind::close, .result = -EBADF, .handle = h, .fd = 11});
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(result_of(t, 7) == -EBADF);
}

TEST_CASE_FIXTURE(RunInRoot, "duplicates of what was recorded as an error, and of a file that is closed") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/d/in"));
    const auto dup = [&](int64_t how, int fd2, int64_t result) {
        job.add(t, {.kind = OpKind::dup, .result = result, .handle = h, .fd = job.fd(h), .fd2 = fd2, .arg = how});
    };
    dup(kDup, -1, -EMFILE);  // 1 and 2: work here
    dup(kDupFd, -1, -EMFILE);
    job.close(t, h);  // 3
    for (const int64_t how : {kDup, kDup2, kDup3, kDupFd}) {
        dup(how, 90, -EBADF);
        dup(how, 90, 90);
    }
    dup(kDup2, job.fd(h), -EBADF);
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result_of(t, 1) >= 0);
    CHECK(result_of(t, 2) == result_of(t, 1));  // not kept open
    CHECK(result.mismatches == 2 + 4);
    for (uint64_t op = 4; op < 13; ++op) {
        CAPTURE(op);
        CHECK(result_of(t, op) == -EBADF);
    }
}

TEST_CASE_FIXTURE(RunInRoot, "reads and writes move as many bytes as recorded, whatever the size") {
    for (const int64_t size : {1, 4'095, 4'096, 4'097, 8'191, 8'192, 8'193, 12'289, 16'385}) {
        CAPTURE(size);
        JobBuilder job(dir / "job.oplog");
        const TaskId t = job.lone_task();
        const HandleId in = job.open(t, job.file("/d/in"));
        const HandleId out = job.open(t, job.file("/d/out", Origin::created), O_RDWR | O_CREAT | O_TRUNC);
        job.pread(t, in, 0, size);
        job.read(t, in, 0, size);
        job.write(t, out, 0, size);
        job.pwrite(t, out, size, size);
        const std::vector<int64_t> half{size / 2, size - size / 2};
        for (const OpKind kind : {OpKind::preadv, OpKind::pwritev}) {
            job.add(t, {.kind = kind, .result = size, .handle = out, .fd = job.fd(out), .size = size, .list = half});
        }
        const ReplayResult result = run(job);
        INFO(describe(result));
        CHECK(result.mismatches == 0);
        CHECK(fs::file_size(root / "d/out") == static_cast<uint64_t>(2 * size));
        fs::remove(run_log);
        fs::remove(root / "d/out");
    }
}

TEST_CASE_FIXTURE(RunInRoot, "lists of sizes that say more than the op moves no more than there is memory for") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId in = job.open(t, job.file("/d/in"));
    const auto read = [&](std::vector<int64_t> list, int64_t result) {
        job.add(t, {.kind = OpKind::preadv, .result = result, .handle = in, .fd = 3, .size = 100, .list = list});
    };
    read({60, 60}, 100);
    read({200}, 100);
    read({100, 1, 1}, 100);
    read({-5, 60, INT64_MAX}, 100);
    read({10, 0, 20}, 30);
    read({}, 100);
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
}

TEST_CASE_FIXTURE(RunInRoot, "a copy that cannot be written leaves nothing behind for those after it") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId in = job.open(t, job.file("/d/in"));
    const HandleId out = job.open(t, job.file("/d/out", Origin::created), O_RDWR | O_CREAT);
    const auto copy = [&](HandleId to, int64_t result) {
        job.add(t, {.kind = OpKind::splice,
                    .result = result,
                    .fd = 3,
                    .handle2 = to,
                    .fd2 = 4,
                    .offset2 = -1,
                    .size = 100'000});
    };
    for (int i = 0; i < 40; ++i) {
        copy(in, -EBADF);  // open for reading only
    }
    copy(out, 100'000);
    job.add(t, {.kind = OpKind::sendfile, .result = 20'000, .handle = in, .fd = 3, .offset = 0, .size = 30'000});
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(fs::file_size(root / "d/out") == 100'000);
    CHECK(fs::file_size(root / "d/in") == 20'000);
}

TEST_CASE_FIXTURE(RunInRoot, "fcntl: flags are got and set, what is not recorded whole is left out") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId in = job.open(t, job.file("/d/in"));
    const HandleId out = job.open(t, job.file("/d/out", Origin::created), O_RDWR | O_CREAT);
    const auto fcntl = [&](HandleId h, int64_t call, int64_t flags, int64_t result) {
        job.add(t,
                {.kind = OpKind::fcntl, .result = result, .handle = h, .fd = job.fd(h), .flags = flags, .arg = call});
    };
    fcntl(in, F_GETFD, 0, 1);                   // 2
    fcntl(in, F_GETFL, 0, 0100000);             // 3
    fcntl(out, F_SETFL, O_APPEND | O_RDWR, 0);  // 4
    job.write(t, out, 0, 10);                   // 5
    job.pwrite(t, out, 0, 10);                  // 6: at the end, as Linux does it
    fcntl(out, F_SETFL, O_RDWR, 0);             // 7
    job.pwrite(t, out, 0, 10);                  // 8
    fcntl(out, F_SETFD, FD_CLOEXEC, 0);         // 9
    fcntl(in, F_SETFD, 0, 0);                   // 10
    fcntl(in, F_SETLK, 0, 0);                   // 12
    fcntl(in, F_ADD_SEALS, 0, 0);               // 12
    job.add(t, {.kind = OpKind::exec, .file = job.file("/d/in")});
    fcntl(out, F_GETFD, 0, -EBADF);  // 14
    fcntl(in, F_GETFD, 0, 0);        // 15
    fcntl(in, F_GETFD, 0, -EBADF);   // 16: works here
    fcntl(out, F_GETFD, 0, 1);       // 17: does not
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 2);
    CHECK(result_of(t, 16) == 0);
    CHECK(result_of(t, 17) == -EBADF);
    CHECK(result.left_out[static_cast<size_t>(LeftOut::unsupported)] == 2);
    CHECK(result_of(t, 2) == 1);
    CHECK(result_of(t, 3) == 0100000);
    CHECK(fs::file_size(root / "d/out") == 20);
}

TEST_CASE_FIXTURE(RunInRoot,
                  "opens that failed where they were recorded and work here are differences, and are closed") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    for (int i = 0; i < 3; ++i) {
        job.add(t, {.kind = OpKind::open, .result = -ENOENT, .fd = -1, .file = job.file("/d/in")});
    }
    const ReplayResult result = run(job);
    CHECK(result.mismatches == 3);
    CHECK(result_of(t, 0) >= 0);
    CHECK(result_of(t, 1) >= 0);  // keeps the directory open
    CHECK(result_of(t, 2) == result_of(t, 1));
}

TEST_CASE_FIXTURE(RunInRoot, "the memory that a task reads into holds the largest read, in whole pages") {
    struct : RunContext {
        bool stopped() const override { return false; }
        bool ended(TaskId) const override { return true; }
        PassSlot& pass(size_t) override { return slot; }
        PassSlot slot;
    } nothing;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    const WritePattern pattern(0);
    WorkerState worker(plan, -1, false, pattern, nothing);
    const UniqueFd statm(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
    const auto pages = [&] {  // of this process; allocates nothing
        char text[200] = {};
        REQUIRE(::pread(statm.get(), text, sizeof text - 1, 0) > 0);
        return std::atol(text);
    };
    const long page = sysconf(_SC_PAGESIZE);
    TaskPlan task = plan.tasks[t];
    for (const size_t bytes : {0, 1, 4'095, 4'096, 4'097, 8'192, 8'193, 12'288, 12'289, 20'481}) {
        CAPTURE(bytes);
        task.read_bytes = bytes;
        std::optional<PosixEngine> engine;
        const long before = pages();
        engine.emplace(EngineContext{plan, task, &worker});
        const long during = pages();
        engine.reset();
        const long after = pages();
        CHECK(during - before == std::max<long>((static_cast<long>(bytes) + page - 1) / page, 1));
        CHECK(after == before);
    }
}

}  // namespace reprise::test

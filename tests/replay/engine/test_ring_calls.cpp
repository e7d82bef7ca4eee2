// SPDX-License-Identifier: MIT
// Opens, closes and calls on names that a job sent through its ring: requests of the replay's ring, beneath its root.
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "formats/oplog/async_request.h"
#include "tests/replay/engine/held_file.h"
#include "tests/replay/engine/run_fixture.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

struct RingCalls : RunInRoot {
    JobBuilder job{dir / "job.oplog"};
    TaskId t = job.lone_task();
    HandleId in = job.open(t, job.file("/d/in"));  // op 0
    HandleId ring = job.handle(0, O_RDWR, HandleKind::other);
    uint32_t requests = 0;
    uint64_t ops = 1;

    struct Call {
        int64_t code;
        Op op;
        int64_t order = 0;
    };
    /// Submitted together, and waited for together; the number of each call's op.
    std::vector<uint64_t> together(const std::vector<Call>& calls) {
        const uint32_t first = requests + 1;
        const auto count = static_cast<int64_t>(calls.size());
        for (const Call& each : calls) {
            job.add(t, {.kind = OpKind::uring_submit, .flags = each.order, .arg = each.code, .request = ++requests});
        }
        job.add(t,
                {.kind = OpKind::uring_enter, .result = count, .handle = ring, .fd = 4, .size = count, .arg = count});
        ops += calls.size() + 1;
        std::vector<uint64_t> out;
        for (size_t i = 0; i < calls.size(); ++i) {
            out.push_back(ops);
            job.add(t, calls[i].op);
            job.add(t, {.kind = OpKind::uring_complete,
                        .result = std::min<int64_t>(calls[i].op.result, 0),
                        .request = first + static_cast<uint32_t>(i)});
            ops += 2;
        }
        return out;
    }
    Op on(OpKind kind, const char* path, int64_t result = 0) {
        Op op;
        op.kind = kind;
        op.result = result;
        op.file = job.file(path, Origin::created, Role::dataset, FileType::unknown);
        return op;
    }
    Op on(OpKind kind, const char* path, const char* path2, int64_t result = 0) {
        Op op = on(kind, path, result);
        op.file2 = job.file(path2, Origin::created, Role::dataset, FileType::unknown);
        return op;
    }
    Op opens(HandleId handle, const char* path, int64_t flags, int64_t result) {
        Op op = on(OpKind::open, path, result);
        op.handle = handle;
        op.flags = flags;
        op.mode = 0640;
        return op;
    }
    Op mkdir(const char* path, int64_t result = 0) {
        Op op = on(OpKind::mkdir, path, result);
        op.mode = 0700;
        return op;
    }
    HandleId made_by_open(const char* path, int64_t flags) {
        return job.handle(job.file(path, Origin::created, Role::dataset, FileType::unknown), flags);
    }
    bool exists(const char* path) const { return fs::exists(fs::symlink_status(root / path)); }
    int64_t unsupported(const ReplayResult& result) const {
        return static_cast<int64_t>(result.left_out[static_cast<size_t>(LeftOut::unsupported)]);
    }
};

constexpr int64_t kTmpFd = 9;

}  // namespace

TEST_CASE_FIXTURE(RingCalls, "calls of a ring: each does what the call of its name does") {
    const HandleId made = made_by_open("/d/made", O_RDWR | O_CREAT);
    std::vector<uint64_t> all;
    const auto one = [&](int64_t code, const Op& op) { all.push_back(together({{code, op}})[0]); };
    one(IORING_OP_OPENAT, opens(made, "/d/made", O_RDWR | O_CREAT, kTmpFd));
    job.pwrite(t, made, 0, 700);
    const uint64_t wrote = ops++;
    one(IORING_OP_CLOSE, {.kind = OpKind::close, .handle = made, .fd = kTmpFd});
    job.pread(t, made, 0, 10);
    const uint64_t closed = ops++;
    one(IORING_OP_STATX, on(OpKind::statx, "/d/made"));
    one(IORING_OP_STATX, {.kind = OpKind::statx, .handle = in, .fd = 3});
    one(IORING_OP_OPENAT2, opens(0, "/d/missing", O_RDONLY, -ENOENT));
    one(IORING_OP_MKDIRAT, mkdir("/d/new"));
    one(IORING_OP_MKDIRAT, mkdir("/d/new", -EEXIST));
    one(IORING_OP_RENAMEAT, on(OpKind::rename, "/d/made", "/d/new/moved"));
    one(IORING_OP_LINKAT, on(OpKind::link, "/d/new/moved", "/d/second"));
    Op link = on(OpKind::symlink, "/d/soft");
    link.text = job.text("second");
    one(IORING_OP_SYMLINKAT, link);
    one(IORING_OP_UNLINKAT, on(OpKind::unlink, "/d/new/moved"));
    one(IORING_OP_UNLINKAT, on(OpKind::rmdir, "/d/new"));
    one(IORING_OP_UNLINKAT, on(OpKind::unlink, "/d/new", -ENOENT));
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(unsupported(result) == 0);
    CHECK(result.mismatches == 1);  // the read of what is closed, which is none of the ring's
    CHECK(result_of(t, closed) == -EBADF);
    CHECK(result_of(t, wrote) == 700);
    CHECK(fs::file_size(root / "d/second") == 700);
    CHECK((fs::status(root / "d/second").permissions() & fs::perms::all) == fs::perms(0640));
    CHECK(fs::read_symlink(root / "d/soft") == "second");
    CHECK_FALSE(exists("d/made"));
    CHECK_FALSE(exists("d/new"));
}

// Only a ring cancels what is linked to a request that failed.
TEST_CASE_FIXTURE(RingCalls, "calls of a ring are requests of a ring: what is linked to one that fails is not made") {
    std::ofstream(root / "d/kept") << "kept";
    const HandleId none = made_by_open("/d/kept", O_RDWR | O_TRUNC);
    std::vector<uint64_t> cancelled;
    const auto after_failure = [&](int64_t code, Op op) {
        op.result = -ECANCELED;
        const Call fails{IORING_OP_OPENAT, opens(0, "/d/missing", O_RDONLY, -ENOENT), IOSQE_IO_LINK};
        cancelled.push_back(together({fails, {code, op}})[1]);
    };
    Op link = on(OpKind::symlink, "/d/c");
    link.text = job.text("in");
    after_failure(IORING_OP_OPENAT, opens(none, "/d/kept", O_RDWR | O_TRUNC, 0));
    after_failure(IORING_OP_STATX, on(OpKind::statx, "/d/in"));
    after_failure(IORING_OP_MKDIRAT, mkdir("/d/a"));
    after_failure(IORING_OP_RENAMEAT, on(OpKind::rename, "/d/in", "/d/b"));
    after_failure(IORING_OP_LINKAT, on(OpKind::link, "/d/in", "/d/b"));
    after_failure(IORING_OP_SYMLINKAT, link);
    after_failure(IORING_OP_UNLINKAT, on(OpKind::unlink, "/d/in"));
    after_failure(IORING_OP_UNLINKAT, on(OpKind::rmdir, "/d/sub"));
    after_failure(IORING_OP_CLOSE, {.kind = OpKind::close, .handle = in, .fd = job.fd(in)});
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    for (const uint64_t op : cancelled) {
        CAPTURE(op);
        CHECK(result_of(t, op + 1) == -ECANCELED);
    }
    for (const char* path : {"d/in", "d/sub"}) {
        CHECK(exists(path));
    }
    for (const char* path : {"d/a", "d/b", "d/c"}) {
        CHECK_FALSE(exists(path));
    }
    CHECK(read_file(root / "d/kept") == "kept");
}

// Again by what is linked to a request that fails: calls are made, requests are cancelled.
TEST_CASE_FIXTURE(RingCalls, "calls of a ring: advice goes through it; copies, and advice that takes memory, do not") {
    constexpr int64_t kPage = 4096;
    constexpr uint32_t kMap = 1;
    const HandleId in_pipe = job.handle(0, O_WRONLY, HandleKind::pipe);
    job.add(t, {.kind = OpKind::mmap,
                .handle = in,
                .fd = job.fd(in),
                .size = 4 * kPage,
                .flags = MAP_SHARED,
                .mode = PROT_READ,
                .map = kMap});
    ++ops;
    const auto advice = [&](int64_t what, int64_t offset = 0, int64_t bytes = 4 * 4096) {
        return Op{.kind = OpKind::madvise, .offset = offset, .size = bytes, .arg = what, .map = kMap};
    };
    const auto after_failure = [&](int64_t code, Op op) {
        op.result = -ECANCELED;
        const Call fails{IORING_OP_OPENAT, opens(0, "/d/missing", O_RDONLY, -ENOENT), IOSQE_IO_LINK};
        return together({fails, {code, op}})[1] + 1;
    };
    const uint64_t will_need = after_failure(IORING_OP_MADVISE, advice(MADV_WILLNEED));
    const uint64_t beyond = after_failure(IORING_OP_MADVISE, advice(MADV_WILLNEED, 0, 1000 * kPage));
    const uint64_t drops = after_failure(IORING_OP_MADVISE, advice(MADV_DONTNEED));
    Op copy{.kind = OpKind::splice, .result = 100, .handle = in, .fd = job.fd(in), .size = 100};
    copy.handle2 = in_pipe;
    copy.fd2 = 9;
    const uint64_t copies = after_failure(IORING_OP_SPLICE, copy);
    const auto one = [&](int64_t code, const Op& op) { return together({Call{code, op}})[0]; };
    const uint64_t works = one(IORING_OP_MADVISE, advice(MADV_WILLNEED));
    const uint64_t copied = one(IORING_OP_SPLICE, copy);
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(unsupported(result) == 0);
    CHECK(result_of(t, will_need) == -ECANCELED);
    CHECK(result_of(t, beyond) == -ENOMEM);
    CHECK(result_of(t, drops) == 0);
    CHECK(result_of(t, copies) == 0);
    CHECK(result_of(t, works) == 0);
    CHECK(result_of(t, copied) == 100);
}

TEST_CASE_FIXTURE(RingCalls, "calls of a ring: a hostile log does not get out of the root") {
    const fs::path outside = dir / "outside";
    fs::create_directories(outside / "empty");
    write_file(outside / "victim", "whole");
    fs::create_directory_symlink(outside, root / "d/out");
    fs::create_symlink(outside / "victim", root / "d/leak");
    const auto open_and_write = [&](const char* path, int64_t flags) {
        const HandleId handle = made_by_open(path, flags);
        const uint64_t op = together({{IORING_OP_OPENAT, opens(handle, path, flags, kTmpFd)}})[0];
        job.pwrite(t, handle, 0, 100);
        ++ops;
        return op;
    };
    std::vector<uint64_t> refused{open_and_write("/d/out/victim", O_RDWR), open_and_write("/d/leak", O_RDWR | O_TRUNC),
                                  open_and_write("/d/out/planted", O_RDWR | O_CREAT)};
    const auto one = [&](int64_t code, const Op& op) { refused.push_back(together({{code, op}})[0]); };
    one(IORING_OP_UNLINKAT, on(OpKind::unlink, "/d/out/victim"));
    one(IORING_OP_UNLINKAT, on(OpKind::rmdir, "/d/out/empty"));
    one(IORING_OP_MKDIRAT, mkdir("/d/out/dir"));
    one(IORING_OP_RENAMEAT, on(OpKind::rename, "/d/in", "/d/out/in"));
    one(IORING_OP_RENAMEAT, on(OpKind::rename, "/d/out/victim", "/d/victim"));
    one(IORING_OP_LINKAT, on(OpKind::link, "/d/in", "/d/out/in"));
    one(IORING_OP_LINKAT, on(OpKind::link, "/d/out/victim", "/d/victim"));
    Op link = on(OpKind::symlink, "/d/out/soft");
    link.text = job.text("victim");
    one(IORING_OP_SYMLINKAT, link);
    one(IORING_OP_STATX, on(OpKind::statx, "/d/out/victim"));
    const ReplayResult result = run(job);
    INFO(describe(result));
    for (const uint64_t op : refused) {
        CAPTURE(op);
        CHECK(result_of(t, op) < 0);
    }
    CHECK(read_file(outside / "victim") == "whole");
    std::vector<std::string> left;
    for (const auto& each : fs::directory_iterator(outside)) {
        left.push_back(each.path().filename());
    }
    std::sort(left.begin(), left.end());
    CHECK(left == std::vector<std::string>{"empty", "victim"});
    CHECK_FALSE(exists("d/victim"));
    CHECK(exists("d/in"));
}

TEST_CASE_FIXTURE(RingCalls, "calls of a ring: numbers that a log uses twice, and results of nothing") {
    // The read in flight has the number of the call after it.
    const auto number = ++requests;
    job.add(t, {.kind = OpKind::uring_submit,
                .handle = in,
                .fd = 3,
                .size = 100,
                .flags = IOSQE_ASYNC | IOSQE_CQE_SKIP_SUCCESS,
                .arg = IORING_OP_READ,
                .request = number});
    requests = number - 1;
    ++ops;
    together({{IORING_OP_STATX, on(OpKind::statx, "/d/in")}});
    // Two submissions, one call; a call whose result another op stands before.
    job.add(t, {.kind = OpKind::uring_submit, .arg = IORING_OP_MKDIRAT, .request = ++requests});
    job.add(t, {.kind = OpKind::uring_submit, .arg = IORING_OP_MKDIRAT, .request = requests});
    job.add(t, {.kind = OpKind::uring_enter, .handle = ring, .fd = 4, .size = 2});
    job.add(t, mkdir("/d/twice"));
    job.add(t, {.kind = OpKind::uring_complete, .request = requests});
    job.add(t, {.kind = OpKind::uring_complete, .request = requests});
    job.add(t, {.kind = OpKind::uring_submit, .arg = IORING_OP_MKDIRAT, .request = ++requests});
    job.add(t, mkdir("/d/plain"));
    job.add(t, {.kind = OpKind::fstat, .handle = in, .fd = 3});
    job.add(t, {.kind = OpKind::uring_complete, .request = requests});
    // Of another kind than was asked for.
    job.add(t, {.kind = OpKind::uring_submit, .arg = IORING_OP_STATX, .request = ++requests});
    job.add(t, mkdir("/d/other"));
    job.add(t, {.kind = OpKind::uring_complete, .request = requests});
    const ReplayResult result = run(job);
    INFO(describe(result));
    for (const char* path : {"d/twice", "d/plain", "d/other"}) {
        CHECK(exists(path));
    }
}

TEST_CASE_FIXTURE(RingCalls, "calls of a ring: what uses a descriptor waits for the open in flight that makes it") {
    constexpr int kFiles = 50;
    std::vector<std::string> paths;
    for (int i = 0; i < kFiles; ++i) {
        paths.push_back("/d/new" + std::to_string(i));
        const HandleId made = made_by_open(paths.back().c_str(), O_RDWR | O_CREAT);
        const auto submit = [&](int64_t code, int64_t order) {
            job.add(t, {.kind = OpKind::uring_submit, .flags = order, .arg = code, .request = ++requests});
            job.add(t, {.kind = OpKind::uring_enter, .result = 1, .handle = ring, .fd = 4, .size = 1});
        };
        submit(IORING_OP_OPENAT, IOSQE_ASYNC);  // not done at once
        job.add(t, opens(made, paths.back().c_str(), O_RDWR | O_CREAT, kTmpFd));
        job.add(t, {.kind = OpKind::uring_complete, .request = requests});
        if (i % 2 == 0) {
            job.pwrite(t, made, 0, 10);
        }
        submit(IORING_OP_CLOSE, 0);
        job.add(t, {.kind = OpKind::close, .handle = made, .fd = kTmpFd});
        job.add(t, {.kind = OpKind::uring_complete, .request = requests});
    }
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(unsupported(result) == 0);
    for (int i = 0; i < kFiles; ++i) {
        CAPTURE(i);
        CHECK(fs::file_size(root / paths[static_cast<size_t>(i)].substr(1)) == (i % 2 == 0 ? 10 : 0));
    }
}

TEST_CASE_FIXTURE(RingCalls,
                  "calls of a ring: a task goes on while an open is in flight whose descriptor requests use") {
    const FileId slow = job.file("/d/slow");
    const HandleId made = job.handle(slow, O_RDONLY);
    const auto submit = [&](Op op) {
        op.kind = OpKind::uring_submit;
        op.request = ++requests;
        job.add(t, op);
        job.add(t, {.kind = OpKind::uring_enter, .result = 1, .handle = ring, .fd = 4, .size = 1});
        return requests;
    };
    const auto done = [&](uint32_t request, int64_t result = 0) {
        job.add(t, {.kind = OpKind::uring_complete, .result = result, .size = result, .request = request});
    };
    job.pread(t, in, 0, 4096);
    const auto open = [&](HandleId handle, FileId file) {
        Op op;
        op.kind = OpKind::open;
        op.result = kTmpFd;
        op.file = file;
        op.handle = handle;
        job.add(t, op);
    };
    // Not done at once. What the job does after one of the two results may come after the other one here.
    const uint32_t opened = submit({.flags = IOSQE_ASYNC, .arg = IORING_OP_OPENAT});
    const FileId fast = job.file("/d/in");
    const HandleId beside = job.handle(fast, O_RDONLY);
    const uint32_t opened_beside = submit({.flags = IOSQE_ASYNC, .arg = IORING_OP_OPENAT});
    open(made, slow);
    done(opened);
    const uint32_t looked = submit({.arg = IORING_OP_STATX});
    const uint32_t read = submit({.handle = made, .fd = kTmpFd, .size = 4096, .arg = IORING_OP_READ});
    open(beside, fast);
    done(opened_beside);
    job.add(t, mkdir("/d/after"));
    Op look;
    look.kind = OpKind::statx;
    look.handle = made;
    job.add(t, look);
    done(looked);
    done(read, 4096);
    const uint32_t closed = submit({.arg = IORING_OP_CLOSE});
    job.add(t, {.kind = OpKind::close, .handle = made, .fd = kTmpFd});
    done(closed);
    const LogReader log = job.finish();
    write_file(root / "d/slow", std::string(20'000, 'a'));

    HeldFile held(root / "d/slow", 20'000);
    if (!held.held()) {
        REPRISE_SKIP("no FUSE file system can be mounted");
    }
    std::atomic<bool> went_on = false;
    std::thread holder([&] {
        for (int i = 0; i < 1000 && !went_on; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            went_on = exists("d/after");
        }
        held.let_go();
    });
    const ReplayResult result = replay(log, afap(root));
    holder.join();
    INFO(describe(result));
    CHECK(went_on);
    CHECK(result.mismatches == 0);
    CHECK(unsupported(result) == 0);
}

TEST_CASE_FIXTURE(RingCalls,
                  "calls of a ring: where requests are made at once, or nothing is changed, they are calls") {
    const HandleId made = made_by_open("/d/made", O_RDWR | O_CREAT);
    job.pread(t, in, 0, 4096);
    together({{IORING_OP_MKDIRAT, mkdir("/d/new")}, {IORING_OP_STATX, on(OpKind::statx, "/d/in")}});
    together({{IORING_OP_OPENAT, opens(made, "/d/made", O_RDWR | O_CREAT, kTmpFd)}});
    const LogReader log = job.finish();
    ReplayOptions options = afap(root);
    bool changes = true;
    SUBCASE("at once") { options.access.direct = true; }
    SUBCASE("nothing") {
        options.read_only = true;
        changes = false;
    }
    const ReplayResult result = replay(log, options);
    INFO(describe(result));
    CHECK(exists("d/new") == changes);
    CHECK(exists("d/made") == changes);
    CHECK(unsupported(result) == 0);
    CHECK(result.mismatches == 0);
    // Two calls that change, and the results of their requests.
    CHECK(result.left_out[static_cast<size_t>(LeftOut::read_only)] == (changes ? 0 : 4));
}

}  // namespace reprise::test

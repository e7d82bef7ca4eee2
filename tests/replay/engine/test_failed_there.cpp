// SPDX-License-Identifier: MIT
// Calls that failed in the recording for a reason that a root does not have: what they would do here is not the job's.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

#include "tests/replay/engine/run_fixture.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE_FIXTURE(RunInRoot, "what failed between two file systems, or for want of clones, is not done in one root") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId in = job.file("/d/in"), out = job.file("/mnt/out", Origin::created), aside = job.file("/d/aside"),
                 far = job.file("/mnt/far", Origin::absent);
    fs::create_directories(root / "mnt");
    write_file(root / "d/aside", std::string(100, 'b'));
    job.add(t, {.kind = OpKind::rename, .result = -EXDEV, .file = aside, .file2 = far});
    job.add(t, {.kind = OpKind::link, .result = -EXDEV, .file = aside, .file2 = far});
    const HandleId from = job.open(t, in), to = job.open(t, out, O_RDWR | O_CREAT | O_EXCL);
    const auto copy = [&](int64_t result, int64_t flags) {
        job.add(t, {.kind = OpKind::copy_file_range,
                    .result = result,
                    .handle = from,
                    .fd = job.fd(from),
                    .handle2 = to,
                    .fd2 = job.fd(to),
                    .size = 20'000,
                    .flags = flags});
    };
    for (const int64_t error : {EXDEV, EOPNOTSUPP, EINVAL, ENOTTY}) {
        copy(-error, kCopyClones);
    }
    for (const int64_t error : {EXDEV, EOPNOTSUPP, ENOSYS}) {
        copy(-error, 0);
    }
    job.read(t, from, 0, 4'000);  // neither position moved
    job.write(t, to, 0, 4'000);
    job.add(t, {.kind = OpKind::lseek, .result = 4'000, .handle = from, .fd = job.fd(from), .arg = SEEK_CUR});
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(result.not_same_job.empty());
    CHECK(fs::file_size(root / "mnt/out") == 4'000);
    CHECK(fs::exists(root / "d/aside"));
    CHECK_FALSE(fs::exists(root / "mnt/far"));
    CHECK(result_of(t, 0) == -EXDEV);
}

TEST_CASE_FIXTURE(RunInRoot, "a copy or a rename that failed for another reason is tried here, too") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId in = job.file("/d/in"), moved = job.file("/d/moved", Origin::absent);
    const HandleId from = job.open(t, in), to = job.open(t, job.file("/d/out", Origin::created), O_RDWR | O_CREAT);
    job.add(t, {.kind = OpKind::copy_file_range,
                .result = -ENOSPC,
                .handle = from,
                .fd = job.fd(from),
                .handle2 = to,
                .fd2 = job.fd(to),
                .size = 20'000});
    job.add(t, {.kind = OpKind::rename, .result = -EBUSY, .file = in, .file2 = moved});
    const ReplayResult result = run(job);
    CHECK(result.mismatches == 2);
    CHECK(fs::exists(root / "d/moved"));
}

TEST_CASE_FIXTURE(RunInRoot, "a FIFO is left out as a pipe is: nobody is at its other end") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task(), u = job.lone_task();
    REQUIRE(mkfifo((root / "d/ff").c_str(), 0600) == 0);
    const FileId fifo = job.file("/d/ff", Origin::existed, Role::ipc, FileType::fifo), in = job.file("/d/in");
    for (const HandleKind kind : {HandleKind::pipe, HandleKind::file}) {  // the latter of sources that do not tell
        for (const int64_t flags : {O_WRONLY, O_RDONLY}) {
            const HandleId end = job.handle(fifo, flags, kind);
            const TaskId task = flags == O_WRONLY ? t : u;
            job.add(task, {.kind = OpKind::open, .result = 7, .handle = end, .fd = -1, .file = fifo, .flags = flags});
            job.add(task, {.kind = OpKind::fstat, .handle = end, .fd = 7});
            job.add(task, {.kind = OpKind::lseek, .result = -ESPIPE, .handle = end, .fd = 7, .arg = SEEK_CUR});
            job.add(task, {.kind = flags == O_WRONLY ? OpKind::send : OpKind::receive,
                           .result = 100,
                           .handle = end,
                           .fd = 7,
                           .size = 100});
            job.add(task, {.kind = OpKind::close, .handle = end, .fd = 7});
        }
    }
    job.pread(t, job.open(t, in), 0, 1'000);
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(result.left_out[static_cast<size_t>(LeftOut::not_a_file)] == 16);
    CHECK(result.not_same_job.empty());
}

TEST_CASE_FIXTURE(RunInRoot, "what the recording's user had no permission for, and this one has, is no difference") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId in = job.file("/d/in"), made = job.file("/d/made", Origin::absent);
    job.add(t, {.kind = OpKind::open, .result = -EACCES, .fd = -1, .file = made, .flags = O_WRONLY | O_CREAT});
    job.add(t, {.kind = OpKind::open, .result = -EACCES, .fd = -1, .file = in, .flags = O_WRONLY | O_TRUNC});
    job.add(t, {.kind = OpKind::unlink, .result = -EACCES, .file = in});
    job.add(t, {.kind = OpKind::rename, .result = -EPERM, .file = in, .file2 = made});
    job.add(t, {.kind = OpKind::open, .result = -EACCES, .fd = -1, .file = in});
    job.add(t, {.kind = OpKind::stat, .result = -EACCES, .file = in});
    job.add(t, {.kind = OpKind::stat, .result = -EACCES, .file = made});                // which is not even there
    job.add(t, {.kind = OpKind::access, .result = -EACCES, .file = in, .mode = X_OK});  // nobody may
    job.pread(t, job.open(t, in), 0, 1'000);
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(result.not_same_job.empty());
    CHECK(result.left_out[static_cast<size_t>(LeftOut::refused)] == 7);
    CHECK(result_of(t, 7) == -EACCES);
    CHECK(fs::file_size(root / "d/in") == 20'000);
    CHECK_FALSE(fs::exists(root / "d/made"));
}

TEST_CASE_FIXTURE(RunInRoot, "what the kernel refused for how it was asked is not done: the log has not all of that") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId in = job.file("/d/in"), made = job.file("/d/made", Origin::absent);
    const OpKind names[] = {OpKind::access, OpKind::statx, OpKind::chmod, OpKind::utimens, OpKind::unlink};
    for (const OpKind kind : names) {
        for (const int64_t error : {EBADF, EINVAL}) {  // a bad directory, flags or times
            job.add(t, {.kind = kind, .result = -error, .file = in});
        }
    }
    job.add(t, {.kind = OpKind::mkdir, .result = -EBADF, .file = made});
    job.add(t, {.kind = OpKind::link, .result = -EINVAL, .file = in, .file2 = made});
    job.add(t, {.kind = OpKind::rename, .result = -EBADF, .file = in, .file2 = made});
    job.add(t, {.kind = OpKind::rename, .result = -EINVAL, .file = in, .file2 = made, .flags = 64});
    job.add(t,
            {.kind = OpKind::open, .result = -EAGAIN, .fd = -1, .file = in, .flags = O_WRONLY | O_TRUNC});  // a lease
    const HandleId open = job.open(t, in, O_RDWR);
    const auto on_open = [&](OpKind kind, int64_t result, int64_t size, int64_t arg = 0) {
        job.add(t, {.kind = kind, .result = result, .handle = open, .fd = job.fd(open), .size = size, .arg = arg});
    };
    for (const OpKind kind : {OpKind::truncate, OpKind::ftruncate, OpKind::fallocate, OpKind::fadvise}) {
        if (kind == OpKind::truncate) {
            job.add(t, {.kind = kind, .result = -EINVAL, .file = in, .size = INT64_MAX});
        } else {
            on_open(kind, -EINVAL, INT64_MAX);
        }
    }
    on_open(OpKind::readahead, -EINVAL, INT64_MAX);
    on_open(OpKind::sync_file_range, -EINVAL, INT64_MAX);
    on_open(OpKind::utimens, -ENOENT, 0);  // of an empty name in an open directory
    job.add(t, {.kind = OpKind::setxattr, .result = -ENOSPC, .file = in, .size = 9, .text = job.text("user.one")});
    on_open(OpKind::flock, 0, 0, 32);   // LOCK_MAND
    on_open(OpKind::write, -EPERM, 8);  // append-only, by a flag of the inode
    const int64_t sizes[] = {1, 1};
    for (const OpKind kind : {OpKind::readv, OpKind::writev}) {  // a list that was too long
        job.add(t, {.kind = kind, .result = -EINVAL, .handle = open, .fd = job.fd(open), .size = 2, .list = sizes});
    }
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(result.not_same_job.empty());
    CHECK(result.no_space == 0);  // as there
    CHECK(result.left_out[static_cast<size_t>(LeftOut::no_place)] == 1);
    CHECK(result.left_out[static_cast<size_t>(LeftOut::refused)] == 1);
    CHECK(fs::file_size(root / "d/in") == 20'000);
    CHECK_FALSE(fs::exists(root / "d/made"));
}

TEST_CASE_FIXTURE(RunInRoot, "what is refused for what it is about is tried here, too") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId in = job.file("/d/in");
    job.add(t, {.kind = OpKind::readlink, .result = -EINVAL, .file = in, .size = 100});
    job.add(t, {.kind = OpKind::rename, .result = -EINVAL, .file = in, .file2 = job.file("/d/there", Origin::absent)});
    const ReplayResult result = run(job);
    CHECK(result_of(t, 0) == -EINVAL);
    CHECK(result.mismatches == 1);
}

TEST_CASE_FIXTURE(RunInRoot, "parents of a mapped folder are looked at only where the root has them") {
    bool shared = false;
    SUBCASE("nothing else lies there") {}
    SUBCASE("something else lies there") { shared = true; }
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId above = job.file("/jobs", Origin::existed, Role::dataset, FileType::unknown),
                 between = job.file("/jobs/deep", Origin::unknown, Role::dataset, FileType::unknown),
                 in = job.file("/jobs/deep/d/in");
    const PathMap maps = PathMap::parse({"/jobs/deep/d=d"});
    if (shared) {
        job.file("/jobs/else");  // prepare makes it, and its folder
        fs::create_directories(root / "jobs");
    }
    for (const FileId file : {above, between}) {
        job.add(t, {.kind = OpKind::readlink, .result = -EINVAL, .file = file, .size = 100});
    }
    job.add(t, {.kind = OpKind::stat, .file = in});
    const LogReader log = job.finish();
    mark_prepared(root, maps);
    ReplayOptions options = afap(root);
    options.maps = maps;
    const ReplayResult result = replay(log, options);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(result.left_out[static_cast<size_t>(LeftOut::no_place)] == (shared ? 1 : 2));
}

TEST_CASE("calls on an empty name are left out: no descriptor and no directory stands for it") {
    const TempDir dir;
    const fs::path root = dir / "root";
    fs::create_directories(root);
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const OpKind kinds[] = {OpKind::open,  OpKind::stat,  OpKind::unlink, OpKind::mkdir,
                            OpKind::chmod, OpKind::chown, OpKind::statfs, OpKind::rename};
    for (const OpKind kind : kinds) {
        job.add(t, {.kind = kind, .result = -ENOENT, .fd = -1});
    }
    const LogReader log = job.finish();
    mark_prepared(root, {});
    const ReplayResult result = replay(log, afap(root));
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(result.left_out[static_cast<size_t>(LeftOut::no_place)] == std::size(kinds));
}

}  // namespace reprise::test

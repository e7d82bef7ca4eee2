// SPDX-License-Identifier: MIT
// Opens in one directory after another: from the second on they start at its descriptor, and find the same files.
#include <unistd.h>

#include <cerrno>

#include "formats/support/unique_fd.h"
#include "tests/replay/job_builder.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

struct Fixture : PreparedRoot {
    Fixture() {
        fs::create_directories(root / "d/sub");
        fs::create_directories(root / "other");
        fs::create_directories(dir / "outside");
        for (const char* name : {"d/a", "d/b", "d/c", "other/a"}) {
            write_file(root / name, std::string(100, 'a'));
        }
        write_file(dir / "outside/secret", "secret");
    }
    ReplayResult run(JobBuilder& job) const { return replay(job.finish(), afap(root)); }
};

void fails(JobBuilder& job, TaskId task, FileId file, int error, int64_t flags = O_RDONLY) {
    job.add(task, {.kind = OpKind::open, .result = -error, .fd = -1, .file = file, .flags = flags});
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "opens in a directory find what they find from the root, each time") {
    fs::create_symlink("b", root / "d/near");
    fs::create_symlink("../other/a", root / "d/far");
    fs::create_directory_symlink("d", root / "way");
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    for (int round = 0; round < 3; ++round) {
        for (const char* name : {"/d/a", "/d/near", "/d/far", "/d/c", "/way/far", "/way/a", "/other/a"}) {
            const HandleId handle = job.open(t, job.file(name));
            job.pread(t, handle, 0, 100);
            job.close(t, handle);
        }
        fails(job, t, job.file("/d/none"), ENOENT);
        fails(job, t, job.file("/d/a/b"), ENOTDIR);
        fails(job, t, job.file("/nowhere/a"), ENOENT);
        fails(job, t, job.file("/d/a"), EEXIST, O_CREAT | O_EXCL | O_WRONLY);
    }
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.mismatches == 0);
}

TEST_CASE_FIXTURE(Fixture, "a look for a lock takes it only where it did") {
    for (const OpKind kind : {OpKind::open, OpKind::mkdir, OpKind::symlink, OpKind::link}) {
        CAPTURE(std::string(info(kind).name));
        fs::remove_all(root / "d/lock");
        JobBuilder job(dir / "job.oplog");
        const TaskId t = job.lone_task();
        const FileId lock = job.file("/d/lock", Origin::created), other = job.file("/d/a");
        for (int look = 0; look < 3; ++look) {
            const bool takes = look == 2;
            Op op{.kind = kind, .result = takes ? 0 : -EEXIST, .file = lock};
            if (kind == OpKind::link) {
                op.file = other;
                op.file2 = lock;
            } else if (kind == OpKind::open) {
                op.flags = O_CREAT | O_EXCL | O_WRONLY;
            } else if (kind == OpKind::symlink) {
                op.text = job.writer().intern("a");
            }
            if (takes && kind == OpKind::open) {
                job.open(t, lock, op.flags);
            } else {
                job.add(t, op);
            }
            if (!takes) {
                job.add(t, {.kind = OpKind::wait, .duration = 1'000'000, .arg = kWaitSleep});
            }
        }
        // Here nobody has it.
        const ReplayResult result = run(job);
        INFO(describe(result));
        CHECK(result.ended == "complete");
        CHECK(result.mismatches == 0);
        CHECK(fs::exists(fs::symlink_status(root / "d/lock")));
    }
}

TEST_CASE_FIXTURE(Fixture, "a link in a directory that leads out of the root is refused, the first time and later") {
    fs::create_symlink("../../outside/secret", root / "d/out");
    fs::create_symlink(dir / "outside/secret", root / "d/absolute");
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    for (int round = 0; round < 3; ++round) {
        job.close(t, job.open(t, job.file("/d/a")));
        for (const char* name : {"/d/out", "/d/absolute"}) {
            fails(job, t, job.file(name), EXDEV, O_WRONLY | O_TRUNC);
            job.add(t, {.kind = OpKind::truncate, .result = -EXDEV, .file = job.file(name), .size = 1});
        }
    }
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(read_file(dir / "outside/secret") == "secret");
}

TEST_CASE_FIXTURE(Fixture, "a directory that the log moves is looked for again at each open") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId there = job.file("/d", Origin::existed, Role::dataset, FileType::directory);
    const FileId moved = job.file("/moved", Origin::created, Role::dataset, FileType::directory);
    const FileId a = job.file("/d/a"), b = job.file("/d/b");
    job.close(t, job.open(t, a));
    job.close(t, job.open(t, b));
    job.close(t, job.open(t, a));
    job.add(t, {.kind = OpKind::rename, .file = there, .file2 = moved});
    fails(job, t, a, ENOENT);
    fails(job, t, b, ENOENT);
    const FileId elsewhere = job.file("/moved/a", Origin::created);
    job.close(t, job.open(t, elsewhere));
    job.close(t, job.open(t, elsewhere));
    job.add(t, {.kind = OpKind::mkdir, .file = there, .mode = 0755});
    job.close(t, job.open(t, a, O_WRONLY | O_CREAT | O_EXCL));
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.mismatches == 0);
    CHECK(fs::file_size(root / "d/a") == 0);
    CHECK(fs::file_size(root / "moved/a") == 100);
}

TEST_CASE_FIXTURE(Fixture, "the root's descriptor is 0 where nothing else had that number") {
    write_file(root / "file", std::string(100, 'a'));
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId file = job.file("/file"), moved = job.file("/moved", Origin::created),
                 linked = job.file("/linked", Origin::created);
    const FileId made = job.file("/made", Origin::created, Role::dataset, FileType::directory);
    for (int round = 0; round < 3; ++round) {
        job.close(t, job.open(t, file));
    }
    job.add(t, {.kind = OpKind::stat, .file = file});
    job.add(t, {.kind = OpKind::stat, .result = -ENOENT, .file = moved});
    job.add(t, {.kind = OpKind::mkdir, .file = made, .mode = 0755});
    job.add(t, {.kind = OpKind::link, .file = file, .file2 = linked});
    job.add(t, {.kind = OpKind::rename, .result = -ENOENT, .file = file, .file2 = job.file("/nowhere/x")});
    job.add(t, {.kind = OpKind::rename, .result = -ENOENT, .file = job.file("/nowhere/x"), .file2 = file});
    job.add(t, {.kind = OpKind::rename, .file = file, .file2 = moved});
    job.add(t, {.kind = OpKind::truncate, .file = moved, .size = 7});
    const LogReader log = job.finish();
    const UniqueFd before(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 100));
    ::close(STDIN_FILENO);
    const ReplayResult result = replay(log, afap(root));
    if (before.valid()) {
        ::dup2(before.get(), STDIN_FILENO);
    }
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(fs::is_directory(root / "made"));
    CHECK(fs::file_size(root / "linked") == 7);
    CHECK(fs::file_size(root / "moved") == 7);
    CHECK_FALSE(fs::exists(root / "file"));
}

TEST_CASE_FIXTURE(Fixture, "more directories than are kept open") {
    constexpr int kDirectories = 700;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    for (int i = 0; i < kDirectories; ++i) {
        fs::create_directories(root / std::to_string(i));
        write_file(root / std::to_string(i) / "f", "f");
    }
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < kDirectories; ++i) {
            job.close(t, job.open(t, job.file("/" + std::to_string(i) + "/f")));
        }
    }
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
}

}  // namespace reprise::test

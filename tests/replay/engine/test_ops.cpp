// SPDX-License-Identifier: MIT
// Every op of the table, performed in a real root, with its effect looked at.
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <numeric>

#include "formats/oplog/cached_pages.h"
#include "tests/replay/engine/run_fixture.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

struct Fixture : RunInRoot {
    mode_t mode_of(const char* name) {
        struct stat st {};
        return lstat((root / name).c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
    }
};

/// Adds copies that moved all of `size` bytes: (kind, from, to, offset, offset2, size).
auto copies(JobBuilder& job, TaskId t) {
    return [&job, t](OpKind kind, HandleId from, HandleId to, int64_t offset, int64_t offset2, int64_t size) {
        job.add(t, {.kind = kind,
                    .result = size,
                    .handle = from,
                    .fd = 3,
                    .handle2 = to,
                    .fd2 = 4,
                    .offset = offset,
                    .offset2 = offset2,
                    .size = size});
    };
}

bool xattrs_work(const fs::path& in) {
    return setxattr(in.c_str(), "user.probe", "x", 1, 0) == 0 && removexattr(in.c_str(), "user.probe") == 0;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "every op of the table is performed, or counted as not performed") {
    const bool attributes = xattrs_work(root / "d/in");
    JobBuilder job(dir / "job.oplog");
    const ProcessId process = job.process();
    const TaskId t = job.task(process), thread = job.task(process);
    const ProcessId child_process = job.process(process);
    const TaskId child = job.task(child_process);
    const FileId in = job.file("/d/in"), out = job.file("/d/out", Origin::created),
                 gone = job.file("/d/gone", Origin::created);
    const FileId fresh = job.file("/d/fresh", Origin::created, Role::dataset, FileType::directory);
    const FileId moved = job.file("/d/moved", Origin::created), linked = job.file("/d/linked", Origin::created);
    const FileId soft = job.file("/d/soft", Origin::created, Role::dataset, FileType::symlink);
    const FileId astray = job.file("/d/astray", Origin::created, Role::dataset, FileType::symlink);
    const FileId folder = job.file("/d", Origin::existed, Role::dataset, FileType::directory);
    const FileId absent = job.file("/d/absent", Origin::absent);

    // Open instances and data.
    const HandleId r = job.open(t, in);
    const HandleId w = job.open(t, out, O_RDWR | O_CREAT | O_TRUNC, 0640);
    const int rfd = job.fd(r), wfd = job.fd(w);
    const std::vector<int64_t> pieces{100, 200, 300};
    job.add(t, {.kind = OpKind::open, .result = -ENOENT, .fd = -1, .file = absent});
    job.read(t, r, 0, 1'000);
    job.pread(t, r, 5'000, 1'000);
    job.add(
        t,
        {.kind = OpKind::readv, .result = 600, .handle = r, .fd = rfd, .offset = 1'000, .size = 600, .list = pieces});
    job.add(
        t,
        {.kind = OpKind::preadv, .result = 600, .handle = r, .fd = rfd, .offset = 19'400, .size = 600, .list = pieces});
    job.write(t, w, 0, 4'000);
    job.pwrite(t, w, 10'000, 1'000);
    job.add(
        t,
        {.kind = OpKind::writev, .result = 600, .handle = w, .fd = wfd, .offset = 4'000, .size = 600, .list = pieces});
    job.add(t, {.kind = OpKind::pwritev,
                .result = 600,
                .handle = w,
                .fd = wfd,
                .offset = 20'000,
                .size = 600,
                .list = pieces});
    job.add(t, {.kind = OpKind::lseek, .result = 1'600, .handle = r, .fd = rfd, .offset = 0, .arg = SEEK_CUR});
    job.add(t, {.kind = OpKind::dup, .result = 30, .handle = r, .fd = rfd, .fd2 = 30, .arg = 2});
    job.add(t, {.kind = OpKind::fcntl, .result = 0, .handle = r, .fd = rfd, .flags = FD_CLOEXEC, .arg = F_SETFD});
    // Names and attributes.
    job.add(t, {.kind = OpKind::stat, .file = in});
    job.add(t, {.kind = OpKind::stat, .result = -ENOENT, .file = absent});
    job.add(t, {.kind = OpKind::fstat, .handle = r, .fd = rfd});
    job.add(t, {.kind = OpKind::ioctl, .result = -ENOTTY, .handle = r, .fd = rfd, .arg = kAskTerminal});
    job.add(t, {.kind = OpKind::statx, .file = in, .arg = STATX_BASIC_STATS});
    job.add(t, {.kind = OpKind::statx, .handle = r, .fd = rfd, .arg = STATX_SIZE});
    job.add(t, {.kind = OpKind::access, .file = in, .mode = R_OK});
    job.add(t, {.kind = OpKind::access, .result = -ENOENT, .file = absent, .mode = R_OK});
    job.add(t, {.kind = OpKind::mkdir, .file = fresh, .mode = 0750});
    const FileId empty = job.file("/d/fresh/empty", Origin::created, Role::dataset, FileType::directory);
    job.add(t, {.kind = OpKind::mkdir, .file = empty, .mode = 0755});
    job.add(t, {.kind = OpKind::rmdir, .result = -ENOTEMPTY, .file = fresh});
    job.add(t, {.kind = OpKind::rmdir, .file = empty});
    const HandleId g = job.open(t, gone, O_WRONLY | O_CREAT, 0600);
    job.close(t, g);
    job.add(t, {.kind = OpKind::rename, .file = gone, .file2 = moved});
    job.add(t, {.kind = OpKind::link, .file = moved, .file2 = linked});
    job.add(t, {.kind = OpKind::unlink, .file = moved});
    job.add(t, {.kind = OpKind::symlink, .file = soft, .text = job.text("/d/in")});
    job.add(t, {.kind = OpKind::readlink, .result = 2, .file = soft, .size = 100});
    // A link that files are used through stands for a directory.
    job.add(t, {.kind = OpKind::readlink, .result = 7, .file = fresh, .size = 100});
    job.add(t, {.kind = OpKind::readlink, .result = -EINVAL, .file = fresh, .size = 100});
    job.add(t, {.kind = OpKind::stat, .file = soft});  // follows
    job.add(t, {.kind = OpKind::stat, .file = soft, .flags = AT_SYMLINK_NOFOLLOW});
    const HandleId through = job.open(t, soft);
    job.pread(t, through, 0, 500);
    job.close(t, through);
    job.add(t, {.kind = OpKind::truncate, .file = linked, .size = 777});
    job.add(t, {.kind = OpKind::ftruncate, .handle = w, .fd = wfd, .size = 30'000});
    job.add(t, {.kind = OpKind::fallocate, .handle = w, .fd = wfd, .offset = 0, .size = 40'000});
    job.add(t, {.kind = OpKind::chmod, .file = linked, .mode = 0604});
    job.add(t, {.kind = OpKind::chmod, .handle = w, .fd = wfd, .mode = 06606});  // never set-user-id
    job.add(t, {.kind = OpKind::chown, .file = linked});
    job.add(t, {.kind = OpKind::chown, .handle = w, .fd = wfd});
    job.add(t, {.kind = OpKind::chown, .file = linked, .flags = AT_SYMLINK_NOFOLLOW});
    job.add(t, {.kind = OpKind::chown, .result = -EPERM, .file = linked});  // to somebody else, refused
    job.add(t, {.kind = OpKind::chown, .result = -ENOENT, .file = absent});
    job.add(t, {.kind = OpKind::utimens, .file = linked});
    job.add(t, {.kind = OpKind::utimens, .handle = w, .fd = wfd});
    job.add(t, {.kind = OpKind::utimens, .file = linked, .flags = AT_SYMLINK_NOFOLLOW});
    job.add(t, {.kind = OpKind::utimens, .result = -ENOENT, .file = absent, .flags = AT_SYMLINK_NOFOLLOW});
    job.add(t, {.kind = OpKind::symlink, .file = astray, .text = job.text("/d/nowhere")});
    job.add(t, {.kind = OpKind::utimens, .result = -ENOENT, .file = astray});
    job.add(t, {.kind = OpKind::utimens, .file = astray, .flags = AT_SYMLINK_NOFOLLOW});  // the link's own
    const HandleId listing = job.handle(folder, O_RDONLY | O_DIRECTORY, HandleKind::directory);
    job.add(t,
            {.kind = OpKind::open, .result = 40, .handle = listing, .file = folder, .flags = O_RDONLY | O_DIRECTORY});
    job.add(t, {.kind = OpKind::getdents, .result = 1, .handle = listing, .fd = 40, .size = 32'768});
    job.add(t, {.kind = OpKind::getdents, .result = 0, .handle = listing, .fd = 40, .size = 32'768});
    // Syncs and hints.
    job.add(t, {.kind = OpKind::fsync, .handle = w, .fd = wfd});
    job.add(t, {.kind = OpKind::fdatasync, .handle = w, .fd = wfd});
    job.add(t, {.kind = OpKind::sync_file_range, .handle = w, .fd = wfd, .offset = 0, .size = 4'096, .flags = 2});
    job.add(t, {.kind = OpKind::syncfs, .handle = w, .fd = wfd});
    job.add(t, {.kind = OpKind::fadvise, .handle = r, .fd = rfd, .arg = POSIX_FADV_SEQUENTIAL});
    job.add(t, {.kind = OpKind::readahead, .handle = r, .fd = rfd, .size = 4'096});
    // Memory.
    job.add(t, {.kind = OpKind::mmap,
                .handle = w,
                .fd = wfd,
                .size = 40'000,
                .flags = MAP_SHARED,
                .mode = PROT_READ | PROT_WRITE,
                .map = 1});
    job.add(t, {.kind = OpKind::mmap,
                .size = 1 << 20,
                .flags = MAP_PRIVATE | MAP_ANONYMOUS,
                .mode = PROT_READ | PROT_WRITE,
                .map = 2});
    job.add(t, {.kind = OpKind::touch, .size = 40'000, .map = 1});
    const std::vector<int64_t> ranges{4'096, 8'192, 4'096, 4'096};
    job.add(t, {.kind = OpKind::touch, .size = 20'480, .flags = 1, .map = 1, .list = ranges});
    job.add(t, {.kind = OpKind::madvise, .size = 40'000, .arg = MADV_WILLNEED, .map = 1});
    job.add(t, {.kind = OpKind::mprotect, .size = 4'096, .mode = PROT_READ, .map = 1});
    job.add(t, {.kind = OpKind::msync, .size = 40'000, .flags = MS_SYNC, .map = 1});
    job.add(t, {.kind = OpKind::mremap, .size = 2 << 20, .flags = 1, .arg = 1 << 20, .map = 2});
    job.add(t, {.kind = OpKind::touch, .size = 2 << 20, .flags = 1, .map = 2});
    job.add(t, {.kind = OpKind::munmap, .size = 4'096, .map = 2});
    job.add(t, {.kind = OpKind::munmap, .size = 40'000, .map = 1});
    // Copies inside the kernel.
    const FileId copy = job.file("/d/copy", Origin::created);
    const HandleId c = job.open(t, copy, O_RDWR | O_CREAT);
    const int cfd = job.fd(c);
    const HandleId socket = job.handle(0, 0, HandleKind::socket);
    job.add(t, {.kind = OpKind::sendfile,
                .result = 3'000,
                .handle = r,
                .fd = rfd,
                .handle2 = c,
                .fd2 = cfd,
                .offset = 0,
                .offset2 = -1,
                .size = 3'000});
    job.add(t, {.kind = OpKind::sendfile,
                .result = 20'000,
                .handle = r,
                .fd = rfd,
                .handle2 = socket,
                .fd2 = 50,
                .offset = 0,
                .size = 20'000});
    job.add(t, {.kind = OpKind::copy_file_range,
                .result = 2'000,
                .handle = r,
                .fd = rfd,
                .handle2 = c,
                .fd2 = cfd,
                .offset = 0,
                .offset2 = 3'000,
                .size = 2'000});
    job.add(t, {.kind = OpKind::splice,
                .result = 1'500,
                .handle = socket,
                .fd = 50,
                .handle2 = c,
                .fd2 = cfd,
                .offset2 = 5'000,
                .size = 1'500});
    // The rest of the file interface.
    if (attributes) {
        job.add(t, {.kind = OpKind::setxattr, .file = linked, .size = 10, .text = job.text("user.k")});
        job.add(t, {.kind = OpKind::getxattr, .result = 10, .file = linked, .size = 100, .text = job.text("user.k")});
        job.add(t, {.kind = OpKind::listxattr, .result = 7, .file = linked, .size = 100});
        job.add(t, {.kind = OpKind::setxattr, .handle = w, .fd = wfd, .size = 10, .text = job.text("user.k")});
        job.add(t, {.kind = OpKind::removexattr, .file = linked, .text = job.text("user.k")});
    } else {
        for (const OpKind kind : {OpKind::setxattr, OpKind::getxattr, OpKind::listxattr, OpKind::removexattr}) {
            job.add(t, {.kind = kind, .result = -EOPNOTSUPP, .file = linked, .size = 10, .text = job.text("user.k")});
        }
    }
    job.add(t, {.kind = OpKind::flock, .handle = r, .fd = rfd, .arg = LOCK_EX});
    job.add(t, {.kind = OpKind::flock, .handle = r, .fd = rfd, .arg = LOCK_UN});
    job.add(t, {.kind = OpKind::statfs, .file = in});
    job.add(t, {.kind = OpKind::statfs, .handle = r, .fd = rfd});
    // Asynchronous requests.
    job.add(t, {.kind = OpKind::uring_submit, .handle = r, .fd = rfd, .size = 2'000, .arg = 22, .request = 1});
    job.add(
        t,
        {.kind = OpKind::uring_submit, .handle = c, .fd = cfd, .offset = 6'500, .size = 500, .arg = 23, .request = 2});
    job.add(t, {.kind = OpKind::uring_enter, .result = 2, .size = 2, .arg = 2});
    job.add(t, {.kind = OpKind::uring_complete, .result = 2'000, .size = 2'000, .request = 1});
    job.add(t, {.kind = OpKind::uring_complete, .result = 500, .size = 500, .request = 2});
    job.add(t, {.kind = OpKind::aio_submit,
                .result = 1,
                .handle = r,
                .fd = rfd,
                .offset = 19'000,
                .size = 2'000,
                .arg = 0,
                .request = 3});
    job.add(t, {.kind = OpKind::aio_reap, .result = 1, .size = 8, .arg = 1});
    job.add(t, {.kind = OpKind::aio_complete, .result = 1'000, .size = 2'000, .request = 3});
    // Causes.
    const HandleId pipe_in = job.handle(0, 0, HandleKind::pipe), pipe_out = job.handle(0, 0, HandleKind::pipe);
    job.add(t, {.kind = OpKind::pipe, .handle = pipe_in, .fd = 60, .handle2 = pipe_out, .fd2 = 61, .arg = 1});
    job.add(t, {.kind = OpKind::send, .result = 5, .handle = pipe_out, .fd = 61, .size = 5});
    job.add(t, {.kind = OpKind::receive, .result = 5, .handle = pipe_in, .fd = 60, .size = 5});
    job.add(t, {.kind = OpKind::compute});
    job.add(t, {.kind = OpKind::wait, .arg = 1});
    job.add(t, {.kind = OpKind::idle});
    job.spawn(t, thread);
    job.spawn(t, child);
    job.pread(thread, r, 0, 100);
    job.add(child, {.kind = OpKind::exec, .file = in});
    job.pread(child, w, 0, 100);
    job.add(child, {.kind = OpKind::exit});
    job.add(t, {.kind = OpKind::join, .peer = child});
    job.add(t, {.kind = OpKind::gpu_submit, .size = 1'000, .text = job.text("kernel")});
    job.add(t, {.kind = OpKind::gpu_wait});
    job.add(t, {.kind = OpKind::marker, .arg = 1, .text = job.text("epoch")});
    job.close(t, w);
    job.close(t, r);

    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.mismatches == 0);
    CHECK(result.processes == 2);
    for (size_t reason = 1; reason < kLeftOutReasons; ++reason) {
        CAPTURE(left_out_name(static_cast<LeftOut>(reason)));
        CHECK(result.left_out[reason] == 0);
    }
    for (const OpInfo& row : all_ops()) {
        CAPTURE(row.name);
        CHECK(result.latency[static_cast<size_t>(row.kind)].count() > 0);
    }

    CHECK(fs::file_size(root / "d/out") == 40'000);
    CHECK(mode_of("d/out") == 0606);
    CHECK_FALSE(fs::exists(root / "d/gone"));
    CHECK_FALSE(fs::exists(root / "d/moved"));
    CHECK(fs::file_size(root / "d/linked") == 777);
    CHECK(mode_of("d/linked") == 0604);
    CHECK(fs::read_symlink(root / "d/soft") == "in");
    CHECK(fs::is_directory(root / "d/fresh"));
    CHECK_FALSE(fs::exists(root / "d/fresh/empty"));
    CHECK(fs::file_size(root / "d/copy") == 7'000);
    CHECK(read_file(root / "d/copy").substr(0, 5'000) == std::string(5'000, 'a'));
    if (attributes) {
        CHECK(getxattr((root / "d/out").c_str(), "user.k", nullptr, 0) == 10);
        CHECK(getxattr((root / "d/linked").c_str(), "user.k", nullptr, 0) == -1);
    }
    CHECK(read_file(root / "d/in") == std::string(20'000, 'a'));
}

TEST_CASE_FIXTURE(Fixture, "exec closes what is marked close-on-exec, and nothing else") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId in = job.file("/d/in");
    const HandleId stays = job.open(t, in), ends = job.open(t, in, O_RDONLY | O_CLOEXEC);
    const HandleId half = job.open(t, in, O_RDONLY | O_CLOEXEC);
    job.add(t,
            {.kind = OpKind::dup, .result = 70, .handle = half, .fd = job.fd(half), .arg = 1});  // dup clears the mark
    job.add(t, {.kind = OpKind::exec, .file = in});
    job.pread(t, stays, 0, 10);
    job.add(t, {.kind = OpKind::pread, .result = -EBADF, .handle = ends, .fd = job.fd(ends), .size = 10});
    job.add(t, {.kind = OpKind::pread, .result = 10, .handle = half, .fd = 70, .size = 10});
    job.add(t, {.kind = OpKind::close, .handle = half, .fd = 70});
    job.add(t, {.kind = OpKind::pread, .result = -EBADF, .handle = half, .fd = 70, .size = 10});
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
}

TEST_CASE_FIXTURE(Fixture, "a duplicated descriptor shares the position and outlives the first") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/d/in"));
    job.read(t, h, 0, 15'000);
    job.add(t, {.kind = OpKind::dup, .result = 70, .handle = h, .fd = job.fd(h), .arg = 1});
    job.close(t, h);
    job.add(t, {.kind = OpKind::read, .result = 5'000, .handle = h, .fd = 70, .offset = 15'000, .size = 6'000});
    job.add(t, {.kind = OpKind::close, .handle = h, .fd = 70});
    job.add(t, {.kind = OpKind::fstat, .result = -EBADF, .handle = h, .fd = 70});
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
}

TEST_CASE_FIXTURE(Fixture, "instances open before the recording are opened, also those the log makes later") {
    JobBuilder job(dir / "job.oplog");
    const ProcessId process = job.process();
    const TaskId t = job.task(process);
    const FileId made = job.file("/d/later", Origin::created);
    const HandleId early = job.inherited(job.file("/d/in"), process, 9, O_RDONLY | O_CREAT | O_TRUNC);
    const HandleId late = job.inherited(made, process, 10);
    job.add(t, {.kind = OpKind::read, .result = 1'000, .handle = early, .fd = 9, .size = 1'000});
    const HandleId w = job.open(t, made, O_WRONLY | O_CREAT);
    job.write(t, w, 0, 50);
    job.add(t, {.kind = OpKind::pread, .result = 50, .handle = late, .fd = 10, .size = 100});
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(fs::file_size(root / "d/in") == 20'000);  // neither made nor cut again
}

TEST_CASE_FIXTURE(Fixture, "a descriptor that reached another process over a socket is taken from its maker") {
    JobBuilder job(dir / "job.oplog");
    const ProcessId trainer = job.process(), loader = job.process(trainer);
    const TaskId t = job.task(trainer), l = job.task(loader);
    job.spawn(t, l);
    for (int i = 0; i < 20; ++i) {
        // As PyTorch does it: made, unlinked, written, sent, closed; the trainer maps it later.
        const FileId tensor = job.file("/dev/shm/torch_" + std::to_string(i), Origin::created, Role::ipc);
        const HandleId made = job.open(l, tensor, O_RDWR | O_CREAT | O_EXCL, 0600);
        job.add(l, {.kind = OpKind::unlink, .file = tensor});
        job.write(l, made, 0, 5'000 + i);
        job.close(l, made);
        const HandleId received = job.inherited(tensor, trainer, 20, O_RDWR);
        job.add(t, {.kind = OpKind::fstat, .handle = received, .fd = 20});
        job.add(t, {.kind = OpKind::pread, .result = 5'000 + i, .handle = received, .fd = 20, .size = 9'000});
        job.add(t, {.kind = OpKind::close, .handle = received, .fd = 20});
    }
    fs::create_directories(root / "dev/shm");
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(result.ops == 1 + 20 * 7);
    CHECK(fs::is_empty(root / "dev/shm"));
}

TEST_CASE_FIXTURE(Fixture, "an inherited instance stands where it stood, and is writable if it is written to") {
    JobBuilder job(dir / "job.oplog");
    const ProcessId process = job.process();
    const TaskId t = job.task(process);
    const HandleId out = job.inherited(job.file("/d/in"), process, 1);
    job.add(t, {.kind = OpKind::lseek, .result = 120, .handle = out, .fd = 1, .offset = 20, .arg = SEEK_CUR});
    job.add(t, {.kind = OpKind::write, .result = 30, .handle = out, .fd = 1, .offset = 120, .size = 30});
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    const std::string content = read_file(root / "d/in");
    CHECK(content.substr(0, 120) == std::string(120, 'a'));
    CHECK(content.substr(120, 30) != std::string(30, 'a'));
    CHECK(content.substr(150) == std::string(20'000 - 150, 'a'));
}

TEST_CASE_FIXTURE(Fixture, "an instance that two descriptors named at the start is open until both are closed") {
    JobBuilder job(dir / "job.oplog");  // job >log 2>&1
    const ProcessId process = job.process(), child = job.process(process);
    const TaskId t = job.task(process), c = job.task(child);
    const HandleId out = job.inherited(job.file("/d/in"), process, 1, O_WRONLY);
    job.spawn(t, c);
    job.add(c, {.kind = OpKind::close, .handle = out, .fd = 1});
    job.add(c, {.kind = OpKind::write, .result = 5, .handle = out, .fd = 2, .offset = 0, .size = 5});
    job.add(c, {.kind = OpKind::exit});
    job.add(t, {.kind = OpKind::dup, .result = 5, .handle = out, .fd = 1, .fd2 = -1, .arg = 1});
    job.add(t, {.kind = OpKind::close, .handle = out, .fd = 1});
    job.add(t, {.kind = OpKind::close, .handle = out, .fd = 5});
    job.add(t, {.kind = OpKind::write, .result = 7, .handle = out, .fd = 2, .offset = 5, .size = 7});
    job.add(t, {.kind = OpKind::close, .handle = out, .fd = 2});
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(result.left_out[static_cast<size_t>(LeftOut::not_open)] == 0);
}

TEST_CASE_FIXTURE(Fixture, "pages that came with a fault where it was recorded are touched here") {
    constexpr int64_t kMiB = 1 << 20, kBytes = 12 * kMiB, kBetween = 6 * kMiB + kMiB / 2;
    write_file(root / "d/large", std::string(kBytes, 'a'));
    const int fd = ::open((root / "d/large").c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE(fsync(fd) == 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId large = job.file("/d/large");
    FetchedPages fetched;
    fetched[large].add(0, kBytes);
    job.writer().keep(encode_fetched(fetched));
    const HandleId in = job.open(t, large);
    job.add(t, {.kind = OpKind::mmap,
                .handle = in,
                .fd = job.fd(in),
                .size = kBytes,
                .flags = MAP_SHARED,
                .mode = PROT_READ,
                .map = 1});
    job.add(t, {.kind = OpKind::madvise, .size = kBytes, .arg = MADV_RANDOM, .map = 1});  // nothing is read around
    for (int64_t at = 0; at < kBytes; at += 2 * kMiB) {
        job.add(t, {.kind = OpKind::touch, .offset = at, .size = 4'096, .map = 1});
    }
    CHECK_EQ(run(job).mismatches, 0);
    void* const at = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 0);
    REQUIRE(at != MAP_FAILED);
    unsigned char resident = 0;
    CHECK_EQ(mincore(static_cast<std::byte*>(at) + kBetween, 4'096, &resident), 0);
    CHECK((resident & 1) != 0);
    munmap(at, kBytes);
    close(fd);
}

TEST_CASE_FIXTURE(Fixture, "touching pages that are not there is a result, not a death") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId out = job.file("/d/out", Origin::created);
    const HandleId w = job.open(t, out, O_RDWR | O_CREAT);
    job.write(t, w, 0, 4'096);
    job.add(t, {.kind = OpKind::mmap,
                .handle = w,
                .fd = job.fd(w),
                .size = 16'384,
                .flags = MAP_SHARED,
                .mode = PROT_READ | PROT_WRITE,
                .map = 1});
    job.add(t, {.kind = OpKind::touch, .size = 4'096, .map = 1});
    job.add(t, {.kind = OpKind::touch, .result = -EFAULT, .size = 16'384, .map = 1});  // SIGBUS beyond the end
    job.add(t, {.kind = OpKind::touch, .result = -EFAULT, .offset = 1 << 30, .size = 4'096, .map = 1});  // outside
    job.add(t, {.kind = OpKind::mprotect, .size = 4'096, .mode = PROT_NONE, .map = 1});
    job.add(t, {.kind = OpKind::touch, .result = -EFAULT, .size = 4'096, .map = 1});  // SIGSEGV
    job.add(t, {.kind = OpKind::munmap, .offset = 4'096, .size = 4'096, .map = 1});
    job.add(t, {.kind = OpKind::touch, .result = -EFAULT, .offset = 4'096, .size = 4'096, .flags = 1, .map = 1});
    job.add(t, {.kind = OpKind::madvise, .size = 16'384, .arg = MADV_HWPOISON, .map = 1});
    job.add(t, {.kind = OpKind::munmap, .size = 16'384, .map = 1});
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.mismatches == 0);
    CHECK(result.left_out[static_cast<size_t>(LeftOut::unsupported)] == 1);  // poisoning memory
}

TEST_CASE_FIXTURE(Fixture, "each call on mapped memory does what it does, and nothing that another does") {
    constexpr int64_t kPage = 4'096;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/d/in"), O_RDWR);
    const auto map = [&](uint32_t id, int64_t flags, int64_t mode, int64_t offset, int64_t bytes, int64_t result = 0) {
        const bool of_file = (flags & MAP_ANONYMOUS) == 0;
        job.add(t, {.kind = OpKind::mmap,
                    .result = result,
                    .handle = of_file ? h : HandleId{0},
                    .fd = of_file ? job.fd(h) : -1,
                    .offset = offset,
                    .size = bytes,
                    .flags = flags,
                    .mode = mode,
                    .map = id});
    };
    const auto touch = [&](uint32_t id, int64_t page, int64_t write, int64_t result = 0) {
        job.add(t, {.kind = OpKind::touch,
                    .result = result,
                    .offset = page * kPage,
                    .size = kPage,
                    .flags = write,
                    .map = id});
    };
    map(1, MAP_SHARED, PROT_READ | PROT_WRITE, 0, 20'000);
    job.add(t, {.kind = OpKind::madvise, .size = 2 * kPage, .arg = MADV_WILLNEED, .map = 1});
    touch(1, 0, 1);  // still there, and writable
    job.add(t,
            {.kind = OpKind::madvise, .result = -EINVAL, .offset = 1, .size = kPage, .arg = MADV_WILLNEED, .map = 1});
    job.add(t, {.kind = OpKind::mprotect, .size = kPage, .mode = PROT_READ, .map = 1});
    touch(1, 0, 0);
    touch(1, 0, 1, -EFAULT);
    touch(1, 1, 1);
    job.add(t, {.kind = OpKind::msync, .size = 20'000, .flags = MS_SYNC | MS_INVALIDATE, .map = 1});
    job.add(t, {.kind = OpKind::msync, .result = -EINVAL, .size = 20'000, .flags = MS_SYNC | MS_ASYNC, .map = 1});
    touch(1, 0, 0);
    touch(1, 0, 1, -EFAULT);  // as mprotect left it
    job.add(t, {.kind = OpKind::mprotect, .size = kPage, .mode = PROT_READ | PROT_WRITE, .map = 1});
    touch(1, 0, 1);
    // From an offset on: its second page lies beyond the end of the file.
    map(2, MAP_PRIVATE, PROT_READ, 4 * kPage, 2 * kPage);
    touch(2, 0, 0);
    touch(2, 0, 1, -EFAULT);
    touch(2, 1, 0, -EFAULT);
    map(3, MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ | PROT_WRITE, 0, 2 * kPage);
    touch(3, 1, 1);
    map(4, MAP_SHARED, PROT_READ, 0, 0, -EINVAL);
    touch(3, 2, 0, -EFAULT);
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.mismatches == 0);
    CHECK(std::accumulate(result.left_out.begin(), result.left_out.end(), uint64_t{0}) == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "touches, maps and moves that failed where they were recorded and work here are differences") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const std::vector<int64_t> ranges{0, 4'096};
    const int64_t flags = MAP_PRIVATE | MAP_ANONYMOUS, mode = PROT_READ | PROT_WRITE;
    job.add(t, {.kind = OpKind::mmap, .result = -ENOMEM, .size = 8'192, .flags = flags, .mode = mode, .map = 1});
    job.add(t, {.kind = OpKind::touch, .result = -EFAULT, .size = 8'192, .map = 1});
    job.add(t, {.kind = OpKind::touch, .result = -EFAULT, .size = 4'096, .flags = 1, .map = 1, .list = ranges});
    job.add(t, {.kind = OpKind::mremap, .result = -ENOMEM, .size = 4'096, .arg = 8'192, .map = 1});
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 4);
    for (uint64_t op = 0; op < 4; ++op) {
        CAPTURE(op);
        CHECK(result_of(t, op) == 0);
    }
}

TEST_CASE_FIXTURE(Fixture, "advice that harms more than the pages it names is left out") {
    const auto left_out = [&](const std::vector<int>& all) {
        JobBuilder job(dir / "job.oplog");
        const TaskId t = job.lone_task();
        const int64_t flags = MAP_PRIVATE | MAP_ANONYMOUS, mode = PROT_READ | PROT_WRITE;
        job.add(t, {.kind = OpKind::mmap, .size = 8'192, .flags = flags, .mode = mode, .map = 1});
        for (const int advice : all) {
            job.add(t, {.kind = OpKind::madvise, .size = 8'192, .arg = advice, .map = 1});
        }
        const ReplayResult result = run(job);
        fs::remove(run_log);
        return result.left_out[static_cast<size_t>(LeftOut::unsupported)];
    };
    CHECK(left_out({MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE,
                    MADV_NOHUGEPAGE, MADV_COLD, MADV_PAGEOUT, MADV_POPULATE_READ}) == 0);
    const std::vector<int> harmful{MADV_REMOVE,         MADV_DONTFORK, MADV_DOFORK,
                                   MADV_MERGEABLE,      MADV_DONTDUMP, MADV_WIPEONFORK,
                                   MADV_POPULATE_WRITE, MADV_HWPOISON, -1};
    CHECK(left_out(harmful) == harmful.size());
}

TEST_CASE_FIXTURE(Fixture, "parts of a mapping are unmapped, moved, resized and touched") {
    write_file(root / "d/large", std::string(64 << 10, 'x'));
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/d/large"));
    constexpr int64_t kPage = 4'096, kMayMove = 1, kFixed = 2;
    const auto touch = [&](int64_t page, int64_t pages, int64_t result = 0) {
        job.add(t, {.kind = OpKind::touch, .result = result, .offset = page * kPage, .size = pages * kPage, .map = 1});
    };
    const auto unmap = [&](int64_t page, int64_t pages) {
        job.add(t, {.kind = OpKind::munmap, .offset = page * kPage, .size = pages * kPage, .map = 1});
    };
    const auto remap = [&](int64_t page, int64_t from, int64_t to, int64_t flags, int64_t result = 0) {
        job.add(t, {.kind = OpKind::mremap,
                    .result = result,
                    .offset = page * kPage,
                    .size = to * kPage,
                    .flags = flags,
                    .arg = from * kPage,
                    .map = 1});
    };
    job.add(t, {.kind = OpKind::mmap,
                .handle = h,
                .fd = job.fd(h),
                .size = 16 * kPage - 100,
                .flags = MAP_SHARED,
                .mode = PROT_READ,
                .map = 1});
    unmap(4, 4);
    touch(0, 4);
    touch(3, 2, -EFAULT);  // into the hole
    touch(8, 8);
    unmap(2, 8);                         // over the hole and both ends of it
    remap(12, 2, 2, kMayMove | kFixed);  // out of the middle of what is left behind it
    touch(10, 6);                        // three pieces of memory
    remap(12, 2, 4, kMayMove);           // pages 14 and 15 are there twice
    touch(10, 6);
    unmap(14, 2);  // the moved ones
    touch(14, 2);  // those that stayed
    unmap(14, 2);
    touch(14, 1, -EFAULT);
    remap(12, 2, 1, 0);
    touch(13, 1, -EFAULT);
    remap(14, 1, 1, kMayMove, -EFAULT);
    job.add(t, {.kind = OpKind::madvise, .offset = 10 * kPage, .size = 3 * kPage, .arg = MADV_WILLNEED, .map = 1});
    job.add(t, {.kind = OpKind::mprotect, .result = -ENOMEM, .size = 3 * kPage, .mode = PROT_READ, .map = 1});
    unmap(0, 16);
    job.add(t, {.kind = OpKind::mmap,
                .handle = h,
                .fd = job.fd(h),
                .size = kPage,
                .flags = MAP_SHARED,
                .mode = PROT_READ,
                .map = 2});
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.mismatches == 0);
    CHECK(std::accumulate(result.left_out.begin(), result.left_out.end(), uint64_t{0}) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a failed open is a mismatch, and so is what depends on it") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/d/missing"));
    job.pread(t, h, 0, 100);
    job.close(t, h);
    job.pread(t, job.open(t, job.file("/d/in")), 19'990, 100);  // shorter here than recorded
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.mismatches == 4);
    CHECK(result.left_out[static_cast<size_t>(LeftOut::not_open)] == 2);
    CHECK(result.errors == 1);
    CHECK(result_of(t, 0) == -ENOENT);
    CHECK(result_of(t, 1) == -EBADF);
    CHECK(result_of(t, 4) == 10);
    REQUIRE(result.examples.size() == 4);
    CHECK(result.examples[0].path == "/d/missing");
}

TEST_CASE_FIXTURE(Fixture, "copies into and out of pipes end where the file ends, ops on sockets' names are left out") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId in = job.open(t, job.file("/d/in"));                                             // 0
    const HandleId out = job.open(t, job.file("/d/out", Origin::created), O_RDWR | O_CREAT, 0600);  // 1
    const HandleId pipe = job.handle(0, O_RDWR, HandleKind::pipe);
    const auto copy = copies(job, t);
    copy(OpKind::sendfile, in, pipe, 19'000, 0, 5'000);  // 2
    copy(OpKind::splice, in, pipe, 20'000, 0, 5'000);    // 3
    copy(OpKind::splice, in, pipe, 100, 0, 3'000);       // 4
    copy(OpKind::splice, pipe, out, 0, 700, 200'000);    // 5
    copy(OpKind::splice, pipe, pipe, 0, 0, 100);         // 6
    const FileId socket = job.file("/d/socket", Origin::existed, Role::dataset, FileType::socket);
    job.add(t, {.kind = OpKind::stat, .file = socket});    // 7
    job.add(t, {.kind = OpKind::unlink, .file = socket});  // 8
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result_of(t, 2) == 1'000);
    CHECK(result_of(t, 3) == 0);
    CHECK(result_of(t, 4) == 3'000);
    CHECK(result_of(t, 5) == 200'000);
    CHECK(fs::file_size(root / "d/out") == 200'700);
    CHECK(result.left_out[static_cast<size_t>(LeftOut::not_a_file)] == 3);
    CHECK(result.mismatches == 2);
}

TEST_CASE_FIXTURE(Fixture,
                  "copies whose one end is not known move the bytes of the other; both ends are what they are") {
    std::string text;  // another letter every 100 bytes
    for (int i = 0; i < 20'000; ++i) {
        text += static_cast<char>('a' + i / 100 % 26);
    }
    write_file(root / "d/in", text);
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId out = job.open(t, job.file("/d/out", Origin::created), O_RDWR | O_CREAT, 0600);  // 0, the first
    const HandleId in = job.open(t, job.file("/d/in"));                                             // 1
    const HandleId missing = job.open(t, job.file("/d/missing"));                                   // 2
    const auto copy = copies(job, t);
    copy(OpKind::sendfile, in, out, 0, -1, 100);               // 3
    copy(OpKind::copy_file_range, in, out, 50, 200, 300);      // 4
    copy(OpKind::sendfile, in, 0, 19'950, 0, 100);             // 5
    copy(OpKind::splice, 0, out, 0, 1'000, 10);                // 6
    copy(OpKind::sendfile, 0, out, 0, -1, 20);                 // 7: at the position
    copy(OpKind::splice, 0, 0, 0, 0, 100);                     // 8
    copy(OpKind::sendfile, missing, out, 0, -1, 100);          // 9
    copy(OpKind::copy_file_range, in, missing, 50, 200, 300);  // 10
    copy(OpKind::copy_file_range, missing, 0, 50, 200, 300);   // 11
    copy(OpKind::copy_file_range, in, out, 50, 2'000, 0);      // 12
    copy(OpKind::sendfile, in, 0, 0, 0, 25'000);               // 13: from the begin, not the position
    copy(OpKind::splice, 0, out, 0, 0, 40);                    // 14: the same
    copy(OpKind::copy_file_range, in, out, 0, 0, 30);          // 15: the same, of both
    copy(OpKind::sendfile, in, out, 5'000, -1, 60);            // 16
    copy(OpKind::splice, in, out, 0, 0, 70);                   // 17: neither is a pipe
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.ended == "complete");
    const std::vector<int64_t> expected{100,    300, 50,     10, 20, -ECANCELED, -EBADF, -EBADF,
                                        -EBADF, 0,   20'000, 40, 30, 60,         -EINVAL};
    for (size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i + 3);
        CHECK(result_of(t, i + 3) == expected[i]);
    }
    CHECK(result.left_out[static_cast<size_t>(LeftOut::not_a_file)] == 1);
    CHECK(result.left_out[static_cast<size_t>(LeftOut::not_open)] == 3);
    const std::string content = read_file(root / "d/out");
    REQUIRE(content.size() == 1'010);
    const auto random = [&](size_t at, size_t bytes) {
        return content.find_first_not_of(std::string_view("\0abcdefghijklmnopqrstuvwxyz", 27), at) < at + bytes;
    };
    const auto holds = [&](size_t at, const std::string& what) { return content.compare(at, what.size(), what) == 0; };
    CHECK(holds(0, text.substr(0, 30)));
    CHECK(random(30, 10));
    CHECK(holds(40, text.substr(40, 60)));
    CHECK(random(100, 20));
    CHECK(holds(120, text.substr(5'000, 60)));
    CHECK(holds(180, std::string(20, '\0')));
    CHECK(holds(200, text.substr(50, 300)));
    CHECK(holds(500, std::string(500, '\0')));
    CHECK(random(1'000, 10));
}

TEST_CASE_FIXTURE(Fixture, "a copy with an offset moves no position, even where that is the position") {
    write_file(root / "d/in", std::string(30'000, 'a'));
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId out = job.open(t, job.file("/d/out", Origin::created), O_RDWR | O_CREAT, 0600);  // 0
    const HandleId in = job.open(t, job.file("/d/in"));                                             // 1
    job.add(t, {.kind = OpKind::copy_file_range,
                .result = 30'000,
                .handle = in,
                .fd = job.fd(in),
                .handle2 = out,
                .fd2 = job.fd(out),
                .size = 30'000,
                .flags = kCopyFromOffset | kCopyToOffset});
    job.add(t, {.kind = OpKind::write, .result = 20'000, .handle = out, .fd = job.fd(out), .size = 20'000});
    job.add(t, {.kind = OpKind::read, .result = 30'000, .handle = in, .fd = job.fd(in), .size = 40'000});
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(fs::file_size(root / "d/out") == 30'000);
}

TEST_CASE_FIXTURE(Fixture,
                  "cloned files hold the same bytes here, too, whatever the storage can do, and no position moves") {
    std::string text(3 << 20, 'a');
    for (size_t i = 0; i < text.size(); ++i) {
        text[i] = static_cast<char>('a' + i / 4'096 % 26);
    }
    write_file(root / "d/in", text);
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId out = job.open(t, job.file("/d/out", Origin::created), O_RDWR | O_CREAT, 0600);  // 0
    const HandleId in = job.open(t, job.file("/d/in"));                                             // 1
    const auto clone = [&](int64_t offset, int64_t offset2, int64_t bytes, int64_t result) {
        job.add(t, {.kind = OpKind::copy_file_range,
                    .result = result,
                    .handle = in,
                    .fd = job.fd(in),
                    .handle2 = out,
                    .fd2 = job.fd(out),
                    .offset = offset,
                    .offset2 = offset2,
                    .size = bytes,
                    .flags = kCopyFromOffset | kCopyToOffset | kCopyClones});
    };
    clone(0, 0, 3 << 20, 3 << 20);
    clone(4'096, 3 << 20, 8'192, 8'192);
    clone(100, 4 << 20, 1'000, 1'000);          // no block's multiple: storage that clones refuses it
    clone((3 << 20) - 10, 5 << 20, 4'096, 10);  // past the end
    clone(0, 0, 0, 0);
    job.add(t, {.kind = OpKind::read, .result = 1'000, .handle = in, .fd = job.fd(in), .size = 1'000});
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    const std::string made = read_file(root / "d/out");
    REQUIRE(made.size() == (5 << 20) + 10);
    CHECK(made.substr(0, 3 << 20) == text);
    CHECK(made.substr(3 << 20, 8'192) == text.substr(4'096, 8'192));
    CHECK(made.substr(4 << 20, 1'000) == text.substr(100, 1'000));
    CHECK(made.substr(5 << 20) == text.substr((3 << 20) - 10));
}

TEST_CASE_FIXTURE(Fixture, "pages are asked for: for writing only of files mapped shared and writable") {
    write_file(root / "d/in", std::string(64 << 10, 'x'));
    const auto populate = [&](int64_t map_flags, int64_t mode, int64_t advice, int64_t want, bool read_only) {
        JobBuilder job(dir / "job.oplog");
        const TaskId t = job.lone_task();
        const HandleId h = job.open(t, job.file("/d/in"), O_RDWR);
        job.add(t, {.kind = OpKind::mmap,
                    .handle = h,
                    .fd = job.fd(h),
                    .size = 64 << 10,
                    .flags = map_flags,
                    .mode = mode,
                    .map = 1});
        job.add(t, {.kind = OpKind::madvise, .result = want, .size = 64 << 10, .arg = advice, .map = 1});
        const LogReader log = job.finish();
        ReplayOptions options = afap(root);
        options.output = run_log;
        options.read_only = read_only;
        const ReplayResult result = replay(log, options);
        INFO(describe(result));
        CHECK(result.mismatches == 0);
        fs::remove(run_log);
        return std::accumulate(result.left_out.begin(), result.left_out.end(), uint64_t{0});
    };
    const int64_t both = PROT_READ | PROT_WRITE;
    CHECK(populate(MAP_SHARED, both, MADV_POPULATE_WRITE, 0, false) == 0);
    CHECK(populate(MAP_SHARED, both, MADV_POPULATE_WRITE, 0, true) == 1);
    CHECK(populate(MAP_SHARED, both, MADV_POPULATE_READ, 0, true) == 0);
    CHECK(populate(MAP_PRIVATE, both, MADV_POPULATE_WRITE, 0, false) == 0);
    CHECK(populate(MAP_SHARED, PROT_NONE, MADV_POPULATE_READ, -EINVAL, false) == 0);
    CHECK(read_file(root / "d/in") == std::string(64 << 10, 'x'));
}

TEST_CASE_FIXTURE(Fixture, "syncs: of an open file, of one that is not open, and of everything") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/d/in"));
    const HandleId missing = job.open(t, job.file("/d/missing"));
    job.add(t, {.kind = OpKind::syncfs});                                // 2: sync(2)
    job.add(t, {.kind = OpKind::syncfs, .handle = h, .fd = job.fd(h)});  // 3
    job.add(t, {.kind = OpKind::syncfs, .handle = missing, .fd = 9});    // 4
    job.close(t, h);
    for (const OpKind kind : {OpKind::syncfs, OpKind::fsync, OpKind::fdatasync, OpKind::sync_file_range}) {  // 6 to 9
        job.add(t, {.kind = kind, .result = -EBADF, .handle = h, .fd = job.fd(h)});
    }
    const ReplayResult result = run(job);
    INFO(describe(result));
    CHECK(result.left_out[static_cast<size_t>(LeftOut::not_open)] == 1);
    CHECK(result.mismatches == 2);  // of the file that is missing
    CHECK(result_of(t, 2) == 0);
    CHECK(result_of(t, 3) == 0);
}

TEST_CASE_FIXTURE(Fixture, "left out files leave no row, and their time is counted") {
    write_file(root / "d/lib.so", "code");
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId lib = job.file("/d/lib.so", Origin::existed, Role::program);
    const HandleId program = job.open(t, lib);
    job.pread(t, program, 0, 4);
    job.add(t, {.kind = OpKind::mmap,
                .handle = program,
                .fd = job.fd(program),
                .size = 4,
                .flags = MAP_PRIVATE,
                .mode = PROT_READ,
                .map = 1});
    job.add(t, {.kind = OpKind::touch, .size = 4, .map = 1});
    job.close(t, program);
    job.add(t, {.kind = OpKind::stat, .file = lib});
    const HandleId data = job.open(t, job.file("/d/in"));
    job.pread(t, data, 0, 100);
    const LogReader log = job.finish();
    ReplayOptions options = afap(root);
    options.filter = OpFilter{};
    options.output = run_log;
    for (const Pace pace : {Pace::afap, Pace::timed}) {
        options.pace = pace;
        const ReplayResult result = replay(log, options);
        INFO(describe(result));
        CHECK(result.mismatches == 0);
        CHECK(result.ops == 2);
        CHECK(result.left_out[static_cast<size_t>(LeftOut::filter)] == 6);
        CHECK(result.left_out_ns[static_cast<size_t>(LeftOut::filter)] == 30'000);
        CHECK(LogReader(run_log).op_count() == 2);
        fs::remove(run_log);
    }
    options.engine = EngineKind::null;
    CHECK(replay(log, options).ops == 2);
}

TEST_CASE_FIXTURE(Fixture,
                  "a read that was not to wait and had its data at once: where it is not in memory, it waits") {
    constexpr int64_t kBytes = 65'536;
    write_file(root / "d/cold", std::string(size_t{1} << 20, 'c'));
    const int fd = ::open((root / "d/cold").c_str(), O_RDONLY);
    REQUIRE(fd >= 0);
    const auto forget = [&] { return ::fsync(fd) + ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); };
    char byte = 0;
    const iovec one{&byte, 1};
    const bool cold = forget() == 0 && ::preadv2(fd, &one, 1, 0, RWF_NOWAIT) < 0 && errno == EAGAIN && forget() == 0;
    ::close(fd);
    if (!cold) {
        REPRISE_SKIP("this file system has files in memory only, or waits all the same");
    }
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.task(job.process());
    const HandleId r = job.open(t, job.file("/d/cold", Origin::existed));
    const auto read = [&](int64_t offset, int64_t result) {
        job.add(t, {.kind = OpKind::preadv,
                    .result = result,
                    .handle = r,
                    .fd = job.fd(r),
                    .offset = offset,
                    .size = kBytes,
                    .flags = RWF_NOWAIT});
    };
    read(0, kBytes);
    read(kBytes * 8, -EAGAIN);
    const ReplayResult result = run(job);
    CHECK(result.mismatches == 0);
    CHECK(result_of(t, 1) == kBytes);
    CHECK(result.access_counts[AccessCount::waited] == 1);
    CHECK(result.access == waited_sentence(result.access_counts));
}

}  // namespace reprise::test

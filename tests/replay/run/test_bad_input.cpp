// SPDX-License-Identifier: MIT
// Hostile logs, roots that refuse, runs that are cut short.
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "formats/support/error.h"
#include "replay/prepare/root_marker.h"
#include "tests/replay/job_builder.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

struct Fixture : PreparedRoot {
    fs::path outside = dir / "outside";
    fs::path log_path = dir / "job.oplog";

    Fixture() {
        fs::create_directories(root / "d");
        fs::create_directories(outside);
        write_file(outside / "secret", "secret");
        write_file(root / "d/in", std::string(10'000, 'a'));
    }
    uint64_t left_out(const ReplayResult& result, LeftOut reason) {
        return result.left_out[static_cast<size_t>(reason)];
    }
};

ExitCode code_of(const LogReader& log, const ReplayOptions& options) {
    try {
        replay(log, options);
    } catch (const Error& error) {
        return error.code();
    }
    return ExitCode::done;
}

/// Children of this process that are still there.
bool has_children() {
    int status = 0;
    return waitpid(-1, &status, WNOHANG) >= 0 || errno != ECHILD;
}

/// One op of each kind that names a file, on `file`; every one is expected to fail or to be left out.
void everything_on(JobBuilder& job, TaskId t, FileId file, FileId other) {
    for (const OpKind kind :
         {OpKind::stat, OpKind::statx, OpKind::access, OpKind::chmod, OpKind::chown, OpKind::utimens, OpKind::statfs,
          OpKind::truncate, OpKind::rmdir, OpKind::unlink, OpKind::mkdir, OpKind::listxattr, OpKind::readlink}) {
        job.add(t, {.kind = kind, .result = -EXDEV, .file = file, .size = 1, .mode = 0777});
    }
    job.add(t, {.kind = OpKind::setxattr, .result = -EXDEV, .file = file, .size = 1, .text = job.text("user.x")});
    job.add(t, {.kind = OpKind::symlink, .result = -EXDEV, .file = file, .text = job.text("/etc")});
    job.add(t, {.kind = OpKind::rename, .result = -EXDEV, .file = file, .file2 = other});
    job.add(t, {.kind = OpKind::rename, .result = -EXDEV, .file = other, .file2 = file});
    job.add(t, {.kind = OpKind::link, .result = -EXDEV, .file = file, .file2 = other});
    job.add(t, {.kind = OpKind::open, .result = -EXDEV, .fd = -1, .file = file, .flags = O_RDONLY});
    job.add(t, {.kind = OpKind::open,
                .result = -EXDEV,
                .fd = -1,
                .file = file,
                .flags = O_WRONLY | O_CREAT | O_TRUNC,
                .mode = 0666});
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a way out of the root is refused by the kernel, whatever the op") {
    // Made by hand or by an earlier run: links that lead out.
    fs::create_directory_symlink(outside, root / "absolute");
    fs::create_directory_symlink("../outside", root / "relative");
    fs::create_symlink(outside / "secret", root / "d/file_link");
    fs::create_directory_symlink("/proc/self/cwd", root / "magic");
    const struct stat before = [&] {
        struct stat st {};
        stat((outside / "secret").c_str(), &st);
        return st;
    }();
    JobBuilder job(log_path);
    const TaskId t = job.lone_task();
    const FileId other = job.file("/d/other", Origin::created);
    for (const char* path :
         {"/absolute/secret", "/relative/secret", "/absolute/new", "/magic/secret", "/relative/../outside/secret"}) {
        everything_on(job, t, job.file(path), other);
    }
    const FileId link = job.file("/d/file_link");
    for (const OpKind kind : {OpKind::stat, OpKind::statx, OpKind::access, OpKind::chmod, OpKind::chown,
                              OpKind::utimens, OpKind::statfs, OpKind::truncate}) {
        job.add(t, {.kind = kind, .result = -EXDEV, .file = link, .size = 1, .mode = 0777});
    }
    job.add(t, {.kind = OpKind::open, .result = -EXDEV, .fd = -1, .file = link, .flags = O_WRONLY | O_TRUNC});
    const LogReader reader = job.finish();
    const ReplayResult result = replay(reader, afap(root));
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(read_file(outside / "secret") == "secret");
    CHECK(std::distance(fs::directory_iterator(outside), fs::directory_iterator{}) == 1);
    struct stat after {};
    stat((outside / "secret").c_str(), &after);
    CHECK(after.st_mode == before.st_mode);
    CHECK(after.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
    CHECK(after.st_nlink == 1);
    CHECK_FALSE(fs::exists(root / "d/other"));
    // Not one op succeeded: all have an error, and the expected one, but for what the mapping refused to place.
    CHECK(result.errors + left_out(result, LeftOut::no_place) == reader.op_count());
    CHECK(result.mismatches <= 19);  // "/relative/../outside" is cleaned to a path inside, which is not there
}

TEST_CASE_FIXTURE(Fixture, "links and moves that the log makes itself lead nowhere else") {
    JobBuilder job(log_path);
    const TaskId t = job.lone_task();
    const FileId link = job.file("/d/up", Origin::created), through = job.file("/d/up/outside/secret"),
                 through2 = job.file("/d/up/secret");
    job.add(t, {.kind = OpKind::symlink, .file = link, .text = job.text("../..")});
    job.add(t, {.kind = OpKind::open, .result = -EXDEV, .fd = -1, .file = through, .flags = O_WRONLY | O_TRUNC});
    job.add(t, {.kind = OpKind::unlink, .file = link});
    job.add(t, {.kind = OpKind::symlink, .file = link, .text = job.text(outside.string())});
    job.add(t, {.kind = OpKind::open, .result = -ENOENT, .fd = -1, .file = through2, .flags = O_WRONLY | O_TRUNC});
    job.add(t, {.kind = OpKind::unlink, .result = -ENOENT, .file = through2});
    const LogReader reader = job.finish();
    const ReplayResult result = replay(reader, afap(root));
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(read_file(outside / "secret") == "secret");
}

TEST_CASE_FIXTURE(Fixture, "the marker file cannot be named") {
    JobBuilder job(log_path);
    const TaskId t = job.lone_task();
    const FileId marker = job.file("/" + std::string(kMarkerName));
    job.add(t, {.kind = OpKind::unlink, .file = marker});
    const HandleId h = job.open(t, marker, O_WRONLY | O_TRUNC);
    job.write(t, h, 0, 10);
    const LogReader reader = job.finish();
    const ReplayResult result = replay(reader, afap(root));
    CHECK(left_out(result, LeftOut::no_place) == 3);
    CHECK(fs::file_size(root / std::string(kMarkerName)) > 10);
}

TEST_CASE_FIXTURE(Fixture, "device nodes and FIFOs below the root are harmless") {
    if (mknod((root / "d/zero").c_str(), S_IFCHR | 0666, makedev(1, 5)) != 0) {
        REPRISE_SKIP("making device nodes needs root");
    }
    const int probe = open((root / "d/zero").c_str(), O_RDONLY);
    if (probe < 0) {
        REPRISE_SKIP("device nodes do not work on this file system");
    }
    close(probe);
    REQUIRE(mkfifo((root / "d/fifo").c_str(), 0666) == 0);
    JobBuilder job(log_path);
    const TaskId t = job.lone_task();
    const FileId zero = job.file("/d/zero"), fifo = job.file("/d/fifo");
    const HandleId a = job.open(t, zero);
    job.pread(t, a, 0, 100);
    const HandleId b = job.open(t, zero);
    job.add(t, {.kind = OpKind::fstat, .handle = b, .fd = job.fd(b)});
    job.pread(t, b, 0, 100);
    job.add(t, {.kind = OpKind::truncate, .file = zero, .size = 5});
    const HandleId c = job.open(t, fifo);
    job.read(t, c, 0, 100);
    job.add(t, {.kind = OpKind::open, .result = -ENXIO, .fd = -1, .file = fifo, .flags = O_WRONLY});
    const LogReader reader = job.finish();
    const ReplayResult result = replay(reader, afap(root));
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.bytes_read == 0);
    CHECK(left_out(result, LeftOut::device_node) == 5);
}

TEST_CASE_FIXTURE(Fixture, "privileged attributes, set-user-id bits and odd calls are kept out") {
    JobBuilder job(log_path);
    const TaskId t = job.lone_task();
    const FileId in = job.file("/d/in");
    job.add(t, {.kind = OpKind::setxattr, .file = in, .size = 20, .text = job.text("security.capability")});
    job.add(t, {.kind = OpKind::setxattr, .file = in, .size = 20, .text = job.text("trusted.x")});
    job.add(t, {.kind = OpKind::chmod, .file = in, .mode = 06755});
    const HandleId made = job.open(t, job.file("/d/suid", Origin::created), O_WRONLY | O_CREAT, 06755);
    job.add(t, {.kind = OpKind::fcntl, .handle = made, .fd = job.fd(made), .flags = 1, .arg = 1'033});
    job.add(t, {.kind = OpKind::fcntl, .handle = made, .fd = job.fd(made), .flags = -1, .arg = -1});
    const LogReader reader = job.finish();
    const ReplayResult result = replay(reader, afap(root));
    INFO(describe(result));
    CHECK(left_out(result, LeftOut::unsupported) == 4);
    for (const char* name : {"d/in", "d/suid"}) {
        struct stat st {};
        REQUIRE(stat((root / name).c_str(), &st) == 0);
        CHECK((st.st_mode & 06000) == 0);
    }
}

TEST_CASE_FIXTURE(Fixture, "absurd numbers do no harm") {
    JobBuilder job(log_path);
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/d/in"), O_RDWR);
    const int fd = job.fd(h);
    for (const int64_t number : {INT64_MIN, int64_t{-1}, int64_t{1} << 40, INT64_MAX}) {
        const std::vector<int64_t> list{number, number, number};
        for (const OpInfo& row : all_ops()) {
            const bool grows = row.kind == OpKind::fallocate || row.kind == OpKind::ftruncate ||
                               row.kind == OpKind::truncate || row.kind == OpKind::pwrite ||
                               row.kind == OpKind::pwritev || row.kind == OpKind::write || row.kind == OpKind::writev ||
                               row.kind == OpKind::spawn || row.kind == OpKind::close || row.kind == OpKind::exec;
            if (grows || row.is(Trait::makes_handle) || row.is(Trait::accelerator) ||
                (row.is(Trait::reads) && row.is(Trait::writes))) {
                continue;
            }
            Op op{.kind = row.kind,
                  .handle = h,
                  .fd = fd,
                  .offset = number,
                  .size = number,
                  .flags = number & ~kFreshMemory,
                  .arg = number,
                  .map = 1,
                  .list = list};
            if (row.kind == OpKind::uring_submit || row.kind == OpKind::aio_submit) {
                op.arg = row.kind == OpKind::uring_submit ? 22 : 0;
            }
            if (row.kind == OpKind::wait || row.kind == OpKind::mmap) {
                op.arg = 0;
            }
            job.add(t, op);
        }
    }
    job.add(t, {.kind = OpKind::pread,
                .begin = INT64_MAX / 2,
                .duration = INT64_MAX / 2,
                .result = 1,
                .handle = h,
                .fd = fd,
                .size = 1});
    const LogReader reader = job.finish();
    const ReplayResult result = replay(reader, afap(root));
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(read_file(root / "d/in") == std::string(10'000, 'a'));
}

TEST_CASE_FIXTURE(Fixture, "roots that cannot be used") {
    JobBuilder job(log_path);
    const TaskId t = job.lone_task();
    job.pread(t, job.open(t, job.file("/d/in")), 0, 10);
    const LogReader reader = job.finish();
    CHECK(code_of(reader, afap(dir / "missing")) == ExitCode::machine);
    CHECK(code_of(reader, afap(root / "d/in")) == ExitCode::machine);
    CHECK(code_of(reader, afap("")) == ExitCode::usage);
    ReplayOptions options = afap(root);
    options.speeds.time_scale = 0;
    CHECK(code_of(reader, options) == ExitCode::usage);
    options = afap(root);
    options.output = dir / "no/such/folder/run.oplog";  // the command looks before; what was run is not lost
    const ReplayResult result = replay(reader, options);
    CHECK(result.ended == "complete");
    CHECK(result.output_lost.find("no/such/folder/run.oplog: cannot be created: No such file") != std::string::npos);
    CHECK(code_of(reader, afap(root)) == ExitCode::done);
    CHECK_FALSE(has_children());
}

TEST_CASE_FIXTURE(Fixture, "a root mounted read-only: reads run, a log that writes is refused") {
    if (mount(root.c_str(), root.c_str(), nullptr, MS_BIND, nullptr) != 0) {
        REPRISE_SKIP("mounting needs root");
    }
    struct Unmount {
        fs::path at;
        ~Unmount() { umount2(at.c_str(), MNT_DETACH); }
    } const unmount{root};
    REQUIRE(mount(nullptr, root.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0);
    JobBuilder reads(log_path);
    const TaskId t = reads.lone_task();
    reads.pread(t, reads.open(t, reads.file("/d/in")), 0, 10);
    const LogReader reading = reads.finish();
    CHECK(replay(reading, afap(root)).mismatches == 0);
    JobBuilder writes(dir / "writes.oplog");
    const TaskId u = writes.lone_task();
    writes.write(u, writes.open(u, writes.file("/d/out", Origin::created), O_WRONLY | O_CREAT), 0, 10);
    const LogReader writing = writes.finish();
    CHECK(code_of(writing, afap(root)) == ExitCode::machine);
    ReplayOptions options = afap(root);
    options.read_only = true;
    CHECK(replay(writing, options).ended == "complete");
}

TEST_CASE_FIXTURE(Fixture, "a full file system is said plainly, and the result is whole") {
    if (mount("tmpfs", root.c_str(), "tmpfs", 0, "size=64k") != 0) {
        REPRISE_SKIP("mounting needs root");
    }
    struct Unmount {
        fs::path at;
        ~Unmount() { umount2(at.c_str(), MNT_DETACH); }
    } const unmount{root};
    mark_prepared(root);
    JobBuilder job(log_path);
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/out", Origin::created), O_WRONLY | O_CREAT);
    for (int i = 0; i < 10; ++i) {
        job.write(t, h, i * 16'384, 16'384);
    }
    job.close(t, h);
    const LogReader reader = job.finish();
    ReplayOptions options = afap(root);
    options.output = dir / "run.oplog";
    const ReplayResult result = replay(reader, options);
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.no_space > 0);
    REQUIRE(result.not_same_job.size() == 2);
    CHECK(result.not_same_job[1].find("7 of 12 I/O ops (58.3 %) have another result than in the recording, most often "
                                      "write; for example write of /out: here 12288, recorded 16384.") == 0);
    CHECK(result.not_same_job[0].find("The file system was full: 6 ops failed for lack of space.") == 0);
    CHECK(LogReader(options.output).op_count() == 12);
}

TEST_CASE_FIXTURE(Fixture, "no space for the log of the run: it is removed, and the result is there") {
    const fs::path small = dir / "small";
    fs::create_directory(small);
    if (mount("tmpfs", small.c_str(), "tmpfs", 0, "size=64k") != 0) {
        REPRISE_SKIP("mounting needs root");
    }
    struct Unmount {
        fs::path at;
        ~Unmount() { umount2(at.c_str(), MNT_DETACH); }
    } const unmount{small};
    JobBuilder job(log_path);
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/d/in"));
    for (int i = 0; i < 100'000; ++i) {
        job.pread(t, h, i % 100, 100);
    }
    const LogReader reader = job.finish();
    ReplayOptions options = afap(root);
    options.output = small / "run.oplog";
    const ReplayResult result = replay(reader, options);
    CHECK(result.ended == "complete");
    CHECK(result.ops == 100'001);
    CHECK(result.output.empty());
    CHECK(result.output_lost.find("run.oplog: cannot be written: No space left on device; ") != std::string::npos);
    CHECK(fs::is_empty(small));
    CHECK_FALSE(has_children());
}

TEST_CASE_FIXTURE(Fixture, "a log with losses needs to be asked for") {
    JobBuilder job(log_path);
    const TaskId t = job.lone_task();
    job.pread(t, job.open(t, job.file("/d/in")), 0, 10);
    job.writer().count(Counter{"events_lost", Severity::loss, 7, "events that the recorder dropped"});
    const LogReader reader = job.finish();
    CHECK(code_of(reader, afap(root)) == ExitCode::bad_input);
    ReplayOptions options = afap(root);
    options.allow_loss = true;
    CHECK(replay(reader, options).ops == 2);
}

TEST_CASE_FIXTURE(Fixture, "an empty log and tasks without ops") {
    JobBuilder job(log_path);
    job.lone_task();
    const LogReader reader = job.finish();
    ReplayOptions options = afap(root);
    options.output = dir / "run.oplog";
    const ReplayResult result = replay(reader, options);
    CHECK(result.ended == "complete");
    CHECK(result.ops == 0);
    CHECK(LogReader(options.output).op_count() == 0);
}

namespace {

/// A timed job that lasts a minute: a parent, its child and a thread each, all of them busy now and then.
LogReader long_job(const fs::path& path, std::vector<TaskId>* tasks = nullptr) {
    JobBuilder job(path);
    const ProcessId parent = job.process(), child = job.process(parent), other = job.process();
    const TaskId a = job.task(parent), b = job.task(child), c = job.task(parent), d = job.task(other);
    const FileId in = job.file("/d/in");
    job.spawn(a, b);
    job.spawn(a, c);
    for (const TaskId task : {a, b, c, d}) {
        const HandleId h = job.open(task, in);
        job.pread(task, h, 0, 100);
        for (int64_t i = 1; i <= 600; ++i) {
            job.add(task, {.kind = OpKind::pread,
                           .begin = i * 100'000'000 + job.now() % 1'000'000,
                           .result = 100,
                           .handle = h,
                           .fd = job.fd(h),
                           .size = 100});
        }
        job.skip(-60'000'000'000);
    }
    if (tasks != nullptr) {
        *tasks = {a, b, c, d};
    }
    return job.finish();
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "SIGINT ends a run at the next op, with a valid log and no process left") {
    const LogReader reader = long_job(log_path);
    for (const Pace pace : {Pace::timed}) {
        ReplayOptions options = afap(root);
        options.pace = pace;
        options.output = dir / "run.oplog";
        std::atomic<bool> sent = false;
        options.progress = [&](const ReplayProgress& now) {
            if (now.phase == ReplayProgress::Phase::running && now.done > 20 && !sent.exchange(true)) {
                kill(getpid(), SIGINT);
            }
        };
        const int64_t begin = monotonic_ns();
        const ReplayResult result = replay(reader, options);
        INFO(describe(result));
        CHECK(result.ended.starts_with("interrupted: signal 2"));
        CHECK(monotonic_ns() - begin < 30'000'000'000);
        CHECK(result.ops > 20);
        CHECK(result.ops < reader.op_count());
        CHECK(left_out(result, LeftOut::stopped) == reader.op_count() - result.ops);
        const LogReader run(options.output);
        CHECK(run.header().extra.at("ended") == result.ended);
        CHECK(run.op_count() == result.ops);
        CHECK_FALSE(has_children());
    }
}

TEST_CASE_FIXTURE(Fixture, "a worker that is killed ends the run, whether the supervisor's child or a grandchild") {
    const LogReader reader = long_job(log_path);
    for (const bool grandchild : {false, true}) {
        ReplayOptions options = afap(root);
        options.pace = Pace::timed;
        options.output = dir / "run.oplog";
        bool sent = false;
        options.progress = [&](const ReplayProgress& now) {
            if (now.phase != ReplayProgress::Phase::running || now.done < 20 || sent) {
                return;
            }
            sent = true;
            // The first worker's children are read from /proc.
            std::ifstream in("/proc/self/task/" + std::to_string(gettid()) + "/children");
            pid_t child = 0, victim = 0;
            while (in >> child) {
                for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(child) + "/task")) {
                    std::ifstream below(task.path() / "children");
                    pid_t found = 0;
                    if (below >> found) {
                        victim = grandchild ? found : child;
                    }
                }
            }
            REQUIRE(victim > 0);
            kill(victim, SIGKILL);
        };
        const ReplayResult result = replay(reader, options);
        INFO(describe(result));
        CHECK(result.ended.starts_with("interrupted: worker "));
        CHECK(result.ended.find("signal 9") != std::string::npos);
        CHECK(result.ops >= 20);
        CHECK(LogReader(options.output).header().extra.at("ended") == result.ended);
        CHECK_FALSE(has_children());
        fs::remove(options.output);
    }
}

}  // namespace reprise::test

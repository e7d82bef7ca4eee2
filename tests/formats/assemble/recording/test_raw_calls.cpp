// SPDX-License-Identifier: MIT
// Every row of formats/oplog/syscalls.def in a raw recording: a call with each of its arguments, and what became of
// them.
#include <doctest/doctest.h>

#include <string>

#include "formats/assemble/recording/raw_calls.h"
#include "tests/formats/assemble/recording/raw_builder.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr uint64_t kFile = 0xf1, kOther = 0xf2, kDirectory = 0xd1, kMade = 0xf7, kMade2 = 0xf8;

bool makes_other(const Syscall& row) {
    return row.action == CallAction::make || row.action == CallAction::make_socket ||
           row.action == CallAction::make_epoll;
}

// What the argument of each letter is in these calls.
uint64_t argument_of(char letter) {
    switch (letter) {
        case 'f': return 3;
        case '2': return 4;
        case 'n': return 9;
        case 'd':
        case 'D': return 5;
        case 's': return 700;
        case 'o': return 4096;
        case 'F': return 0x10;
        case 'm': return 0644;
        case 'a': return 1;
        case 'A': return 0x700000;
        case 'N': return 0x900000;
        case 'x': return 0;
        default: return 0x1000;  // somewhere in the job's memory
    }
}

// Everything a call may need was made before: two files, a directory, a mapping, a child that ended, a request.
AssembledLog call_of(const Syscall& row, int64_t result, RawJob& job) {
    job.open("/d/file", 3, kFile, 7);
    job.open("/d/other", 4, kOther, 8, 8192, 2);
    job.call(SYS_openat, {uint64_t(-100), 0x1000, 0200000, 0}, 5)
        .path(1, "/d/dir")
        .fd(RAW_WHICH_RESULT, RawJob::fd_of(5, kDirectory, 9, 4096, 0040755));
    job.call(SYS_mmap, {0, 1 << 20, 3, 1, 3, 0}, 0x700000).fd(4, RawJob::fd_of(3, kFile, 7));
    raw_spawn spawn{};
    spawn.head.time = job.now + 1;
    spawn.child_pid = spawn.child_tid = 200;
    job.add(RawBytes(RAW_SPAWN, spawn));
    job.call(SYS_fork, {}, 200);
    job.as(200, 200);
    job.exit(0);
    job.as(100, 100);

    raw_iocb iocb{};
    iocb.iocb = 0x4000;
    iocb.length = 512;
    iocb.fd = 3;
    raw_aio_event event{};
    event.iocb = 0x4000;
    event.result = 512;
    const bool reaps = row.action == CallAction::aio_reap;
    if (reaps) {
        job.call(SYS_io_submit, {1, 1, 0x1000}, 1)
            .part(RAW_PART_IOCB, 2, &iocb, sizeof iocb, 1)
            .fd(2, RawJob::fd_of(3, kFile, 7));
    }

    std::vector<uint64_t> args;
    for (const char letter : row.arguments) {
        args.push_back(argument_of(letter));
    }
    if (row.action == CallAction::futex) {
        args = {0x5000, 0x80, 0, 0};
    }
    if (row.action == CallAction::close_range) {
        args = {3, 5, 0};
    }
    if (row.action == CallAction::marker) {
        args = {RAW_MARKER_PRCTL, 0x1000, 12, 1, RAW_MARKER_MAGIC};
    }
    if (row.action == CallAction::clone_blocks) {
        args[1] = 0x40049409;  // FICLONE
    }
    if (row.nr == SYS_mlockall) {
        args = {1};  // MCL_CURRENT
    }
    if (row.action == CallAction::brk) {
        args = {0x20000000};
    }
    if (row.kind == OpKind::fcntl) {
        args[1] = 3;  // F_GETFL
    }
    const uint64_t enter = job.now + 9000, exit = job.now + 59000;
    const bool waits = row.action == CallAction::wait || row.action == CallAction::futex || reaps;
    if (waits) {
        job.off(enter + 1000, enter + 40000, enter + 41000, row.nr);
    }
    if (row.action == CallAction::spawn && result > 0) {
        spawn.head.time = enter + 10;
        spawn.child_pid = spawn.child_tid = static_cast<uint32_t>(result);
        job.add(RawBytes(RAW_SPAWN, spawn));
    }
    RawBytes& call = job.call_at(enter, exit, row.nr, args, result);
    for (uint16_t i = 0; i < row.arguments.size(); ++i) {
        switch (row.arguments[i]) {
            case 'f': call.fd(i, RawJob::fd_of(3, kFile, 7)); break;
            case '2': call.fd(i, RawJob::fd_of(4, kOther, 8)); break;
            case 'd':
            case 'D': call.fd(i, RawJob::fd_of(5, kDirectory, 9, 4096, 0040755)); break;
            case 'p': call.path(i, row.arguments.find('d') < i ? "name" : "/d/name"); break;
            case 'P': call.path(i, "/d/second"); break;
            case 't': call.string(i, "text"); break;
            case 'L': call.string(i, "target"); break;
            case 'i':
            case 'V':
            case 'M': call.numbers(RAW_PART_LIST, i, {300, 400}); break;
            case 'S': call.stat(i, 12345, 0100640); break;
            case 'G': call.fd(i, RawJob::fd_of(3, kFile, 7, 4096)); break;
            case 'H': call.numbers(RAW_PART_VALUES, i, {0x10, 0644, 0}); break;
            case 'O': call.numbers(RAW_PART_VALUES, i, {5000 + std::max<int64_t>(result, 0)}); break;
            case 'Q': call.numbers(RAW_PART_VALUES, i, {6000 + std::max<int64_t>(result, 0)}); break;
            default: break;
        }
    }
    if (row.action == CallAction::marker) {
        call.string(1, "step");
    }
    if (row.action == CallAction::aio_submit) {
        call.part(RAW_PART_IOCB, 2, &iocb, sizeof iocb, 1).fd(2, RawJob::fd_of(3, kFile, 7));
    }
    if (reaps && result > 0) {
        call.part(RAW_PART_EVENT, 3, &event, sizeof event, 1);
    }
    if (row.nr == SYS_waitid) {
        call.numbers(RAW_PART_VALUES, 2, {200, 1, 0});
    }
    if (result >= 0) {
        const uint32_t kind = row.action == CallAction::pipe && row.arg == kPipe ? 0010600 : 0100644;
        if (row.kind == OpKind::open || row.action == CallAction::pipe || makes_other(row)) {
            call.fd(RAW_WHICH_RESULT, RawJob::fd_of(static_cast<int>(result), kMade, 70, 9999, kind));
        }
        if (row.action == CallAction::pipe) {
            call.fd(RAW_WHICH_RESULT2, RawJob::fd_of(static_cast<int>(result) + 1, kMade2, 70, 0, kind));
        }
    }
    return job.assemble();
}

// The op of the call, which is the last but compute.
const Op* last_of(const std::vector<Op>& ops, OpKind kind) {
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
        if (op->kind == kind) {
            return &*op;
        }
    }
    return nullptr;
}

// A result each kind of call can return.
int64_t good_result(const Syscall& row) {
    switch (row.kind) {
        case OpKind::open:
        case OpKind::dup: return 9;
        case OpKind::read:
        case OpKind::pread:
        case OpKind::readv:
        case OpKind::preadv:
        case OpKind::write:
        case OpKind::pwrite:
        case OpKind::writev:
        case OpKind::pwritev:
        case OpKind::sendfile:
        case OpKind::copy_file_range:
        case OpKind::splice:
        case OpKind::send:
        case OpKind::receive: return 600;
        case OpKind::mmap: return 0x800000;
        case OpKind::mremap: return 0x900000;
        case OpKind::join: return row.nr == SYS_waitid ? 0 : 200;
        case OpKind::spawn: return 300;
        case OpKind::aio_submit:
        case OpKind::aio_complete: return 1;
        case OpKind::marker: return -22;
        default: break;
    }
    if (row.action == CallAction::pipe && row.makes_descriptor) {
        return 9;
    }
    if (makes_other(row)) {
        return 9;
    }
    if (row.action == CallAction::wake) {
        return 1;
    }
    return 0;
}

}  // namespace

TEST_CASE("every raw call that succeeds") {
    for (const Syscall& row : all_syscalls()) {
        CAPTURE(std::string(row.name));
        RawJob job;
        if (row.action == CallAction::ask_task) {
            continue;  // most are no ops: test_children.cpp
        }
        const int64_t result = row.action == CallAction::clone_blocks ? 0 : good_result(row);
        const AssembledLog log = call_of(row, result, job);
        CHECK(log.tables().losses() == 0);
        const auto ops = log.ops();
        OpKind kind = row.kind;
        // A descriptor of a regular file: messages are reads and writes there.
        if (row.name == "unlinkat") {
            kind = OpKind::unlink;
        }
        if (!row.makes_op || row.action == CallAction::exit) {
            for (const Op& op : ops) {
                CHECK((op.kind == OpKind::open || op.kind == OpKind::compute || op.kind == OpKind::mmap ||
                       op.kind == OpKind::spawn));
            }
            continue;
        }
        const Op* op = last_of(ops, kind);
        REQUIRE(op != nullptr);
        const OpInfo& what = info(kind);
        const auto has = [&](char letter) { return row.arguments.find(letter) != std::string_view::npos; };
        const bool by_path = has('p');
        if (by_path && row.kind != OpKind::symlink) {
            CHECK(log.tables().path(op->file) == (has('d') ? "/d/dir/name" : "/d/name"));
        }
        if (has('P')) {
            CHECK(log.tables().path(op->file2) == "/d/second");
        }
        if (has('f') && what.has(Field::handle) && row.action != CallAction::mmap && op->handle) {
            CHECK(log.path_of(*op) == "/d/file");
            CHECK(op->fd == 3);
        }
        if (has('2')) {
            CHECK(log.tables().path(log.tables().handles[op->handle2].file) == "/d/other");
        }
        if (has('n') && row.kind == OpKind::dup) {
            CHECK(op->fd2 == 9);
        }
        if (has('s') && what.has(Field::size) && row.action == CallAction::op) {
            CHECK(op->size == (has('A') ? 4096 : 700));
        }
        if (has('G')) {
            CHECK(op->size == 4096);
            CHECK(op->result == 4096);
            CHECK(op->flags == (kCopyFromOffset | kCopyToOffset | kCopyClones));
            CHECK(log.path_of(*op) == "/d/file");
        }
        if (has('i')) {
            CHECK(op->size == 700);
            CHECK(log.rows.at(1)[number_of(log, 1, kind)].list == std::vector<int64_t>{300, 400});
        }
        if (has('o') && !has('A')) {
            CHECK(op->offset == 4096);
        }
        if (has('O')) {
            CHECK(op->offset == 5000);
        }
        if (has('Q')) {
            CHECK(op->offset2 == 6000);
        }
        if (has('F') && what.has(Field::flags) && row.action == CallAction::op && row.nr != SYS_vmsplice) {
            CHECK((op->flags & 0x10) == 0x10);
        }
        if (has('H')) {
            CHECK(op->flags == 0x10);
            CHECK(op->mode == 0644);
        }
        if (has('m') && what.has(Field::mode)) {
            CHECK(op->mode == 0644);
        }
        if (has('t') && what.has(Field::text)) {
            CHECK(log.tables().strings[op->text] == "text");
        }
        if (has('A') && what.has(Field::map)) {
            CHECK(op->map == (row.kind == OpKind::mmap ? 2 : 1));
        }
        if (has('S') && by_path) {
            CHECK(log.tables().files[op->file].size == 12345);
        }
        if (row.kind == OpKind::spawn) {
            CHECK(log.tables().processes[log.tables().tasks[op->peer].process].pid == 300);
        }
        if (row.kind == OpKind::join) {
            CHECK(op->peer == 2);
        }
        if (row.kind == OpKind::wait) {
            CHECK(wait_class(op->arg) == row.arg);
            CHECK((epoll_timeout(op->arg) > 0) == (has('s') && row.arg == kWaitEpoll));
        }
        if (row.action == CallAction::marker) {
            CHECK((op->arg == 12 && op->flags == 1));
        }
        if (row.kind == OpKind::open) {
            CHECK(log.tables().handles[op->handle].file == op->file);
        }
        const bool address = row.kind == OpKind::mmap || row.kind == OpKind::mremap;
        const bool own = row.action == CallAction::op && !address;
        if (has('V')) {
            CHECK(op->size == 700);
        }
        if (own) {
            CHECK(op->result == (has('V') ? 700 : result));  // the bytes, not how many messages
        }
        if (row.action != CallAction::close_range && row.action != CallAction::aio_reap) {
            CHECK(op->duration == 50000);
        }
    }
}

TEST_CASE("whether a file is a terminal is an op; whether a pipe is one, is none") {
    RawJob job;
    job.open("/d/file", 3, kFile, 7);
    const auto ask = [&](int32_t fd, const raw_fd& what, uint64_t request, int64_t result) {
        job.call(SYS_ioctl, {static_cast<uint64_t>(fd), request, 0x7ffd00001000}, result).fd(0, what);
    };
    ask(3, RawJob::fd_of(3, kFile, 7), 0x5401, -25);
    ask(3, RawJob::fd_of(3, kFile, 7), 0x802c542a, -25);
    raw_fd pipe = RawJob::fd_of(1, 0x99, 3);
    pipe.mode = 0010600;
    ask(1, pipe, 0x5401, -25);
    const AssembledLog log = job.assemble();
    const auto asked = log.of_kind(OpKind::ioctl);
    REQUIRE(asked.size() == 2);
    CHECK(log.path_of(asked[0]) == "/d/file");
    CHECK(asked[0].fd == 3);
    CHECK(asked[0].arg == kAskTerminal);
    CHECK(asked[0].result == -25);
    CHECK(asked[1].arg == kAskTerminal2);
    CHECK(log.of_kind(OpKind::copy_file_range).empty());
}

TEST_CASE("a clone of a range copies that range, one of length 0 the rest, and one that failed nothing") {
    constexpr uint64_t kRange = 0x4020940d;  // FICLONERANGE
    RawJob job;
    job.open("/d/file", 3, kFile, 7);
    job.open("/d/other", 4, kOther, 8, 8192, 2);
    const auto clone = [&](int64_t offset, int64_t bytes, int64_t to, int64_t result) {
        job.call(SYS_ioctl, {4, kRange, 0x1000}, result)
            .fd(0, RawJob::fd_of(4, kOther, 8))
            .numbers(RAW_PART_VALUES, 2, {3, offset, bytes, to})
            .fd(2, RawJob::fd_of(3, kFile, 7, 20000));
    };
    clone(4096, 8192, 12288, 0);
    clone(4096, 0, 0, 0);
    clone(0, 0, 0, -95);
    const AssembledLog log = job.assemble();
    const auto copies = log.of_kind(OpKind::copy_file_range);
    REQUIRE(copies.size() == 2);
    CHECK(copies[0].offset == 4096);
    CHECK(copies[0].offset2 == 12288);
    CHECK(copies[0].result == 8192);
    CHECK(copies[1].size == 20000 - 4096);
}

TEST_CASE("every raw call that fails") {
    for (const Syscall& row : all_syscalls()) {
        CAPTURE(std::string(row.name));
        RawJob job;
        const AssembledLog log = call_of(row, -13, job);  // EACCES
        CHECK(log.tables().losses() == 0);
        if (row.action != CallAction::op) {
            continue;
        }
        const OpKind kind = row.name == "unlinkat" ? OpKind::unlink : row.kind;
        bool found = false;
        for (const Op& each : log.ops()) {
            found = found || (each.kind == kind && each.result == -13);
        }
        CHECK(found);
    }
}

TEST_CASE("every raw call without what it points to, and with descriptors that are not open") {
    for (const Syscall& row : all_syscalls()) {
        CAPTURE(std::string(row.name));
        RawJob job;
        for (const int64_t result : {int64_t{0}, int64_t{5}, int64_t{-9}, int64_t{-14}, int64_t{-512}}) {
            job.call(row.nr, {77, 78, 79, 80, 81, 82}, result);
            job.call(row.nr, {77, 78, 79, 80, 81, 82}, result).head().flags = RAW_FLAG_UNFINISHED;
        }
        const AssembledLog log = job.assemble();
        CHECK(log.reader.header().source == "capture");
    }
}

// A replay takes the time of such calls from the recording, and has its own contention besides.
TEST_CASE("calls that tell others something last without the time that those had the processor") {
    constexpr uint64_t kUs = 1000, kMs = 1'000'000;
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    const auto after_call = [&](uint16_t nr, uint16_t state) {
        const uint64_t from = job.now + 10 * kUs;
        job.off(from + 2 * kUs, 0, from + 5 * kMs, nr, state);
        job.now = from + 5 * kMs + kUs;
        return from;
    };
    uint64_t from = after_call(SYS_write, RAW_OFF_RUNNABLE);
    job.call_at(from, job.now, SYS_write, {6, 0x9000, 100}, 100).fd(0, RawJob::pipe_of(6, 0xf6, 50));
    from = after_call(SYS_futex, RAW_OFF_RUNNABLE);
    job.call_at(from, job.now, SYS_futex, {0x7000, 0x81, 1}, 1);
    from = after_call(SYS_write, RAW_OFF_SLEEPING);  // the pipe is full
    job.call_at(from, job.now, SYS_write, {6, 0x9000, 100}, 100).fd(0, RawJob::pipe_of(6, 0xf6, 50));
    from = after_call(SYS_pread64, RAW_OFF_RUNNABLE);  // performed by a replay, so that it may stay as it was
    job.call_at(from, job.now, SYS_pread64, {3, 0x9000, 10, 0}, 10).fd(0, RawJob::fd_of(3, 0xf1, 7));
    const AssembledLog log = job.assemble();
    std::vector<int64_t> lengths;
    for (const Op& op : log.ops()) {
        if (op.kind == OpKind::send || op.kind == OpKind::wait || op.kind == OpKind::pread) {
            lengths.push_back(op.duration);
        }
    }
    const int64_t whole = 5 * kMs + kUs, own = 3 * kUs;
    CHECK(lengths == std::vector{own, own, whole, whole});
}

TEST_CASE("what is made has the mode that the process's umask leaves") {
    RawJob job;
    const auto make = [&](const char* path, int fd, uint64_t inode, uint32_t mode_made) {
        raw_fd made = RawJob::fd_of(fd, 0x100 + inode, inode, 0, 0100000 | mode_made);
        made.info = RAW_FD_CREATED;
        job.call(SYS_openat, {uint64_t(-100), 0x1000, 0101, 0666}, fd).path(1, path).fd(RAW_WHICH_RESULT, made);
    };
    make("/d/usual", 3, 11, 0644);
    make("/d/from_before", 4, 12, 0600);
    job.call(SYS_umask, {027}, 077);
    make("/d/after", 5, 13, 0640);
    job.call(SYS_mkdir, {0x1000, 0777}, 0).path(0, "/d/dir");
    const AssembledLog log = job.assemble();
    std::vector<int64_t> modes;
    for (const Op& op : log.of_kind(OpKind::open)) {
        modes.push_back(op.mode);
    }
    CHECK(modes == std::vector<int64_t>{0666, 0600, 0640});
    REQUIRE(log.of_kind(OpKind::mkdir).size() == 1);
    CHECK(log.of_kind(OpKind::mkdir)[0].mode == 0750);
}

TEST_CASE("the umask that a process was begun with is its own, unless a directory's access control list decides") {
    RawJob job;
    raw_seed_task task{};
    task.head.pid = task.head.tid = 100;
    job.add(RawBytes(RAW_SEED_TASK, task)).string(4, "0077");
    job.call(SYS_mkdir, {0x1000, 0777}, 0).path(0, "/d/dir");
    raw_fd listed = RawJob::fd_of(4, 2, 2, 0, 0100000 | 0644);
    listed.info = RAW_FD_CREATED;
    job.call(SYS_openat, {uint64_t(-100), 0x1000, 0101, 0666}, 4).path(1, "/d/listed").fd(RAW_WHICH_RESULT, listed);
    const AssembledLog log = job.assemble();
    REQUIRE(log.of_kind(OpKind::open).size() == 1);
    CHECK(log.of_kind(OpKind::open)[0].mode == 0644);
    REQUIRE(log.of_kind(OpKind::mkdir).size() == 1);
    CHECK(log.of_kind(OpKind::mkdir)[0].mode == 0700);
}

TEST_CASE("a mode that is set by an access control list, as sed does, is a chmod") {
    for (const int64_t result : {int64_t{0}, int64_t{-95}}) {
        CAPTURE(result);
        RawJob job;
        job.open("/d/file", 3, kFile, 7);
        job.call(SYS_fsetxattr, {3, 0x1000, 0x2000, 28, 0}, result)
            .fd(0, RawJob::fd_of(3, kFile, 7, 8192, 0100640))
            .string(1, "system.posix_acl_access");
        const AssembledLog log = job.assemble();
        const auto set = log.of_kind(OpKind::chmod);
        REQUIRE(set.size() == (result == 0 ? 1 : 0));
        CHECK(log.of_kind(OpKind::setxattr).size() == (result == 0 ? 0 : 1));
        if (result == 0) {
            CHECK(set[0].mode == 0640);
            CHECK(log.path_of(set[0]) == "/d/file");
        }
    }
}

TEST_CASE("a mode that is set by an access control list by path, as cp -a does of directories, is a chmod") {
    const auto entry = [](uint16_t tag, uint16_t permissions) {
        const uint16_t words[4] = {tag, permissions, 0xffff, 0xffff};
        return std::string(reinterpret_cast<const char*>(words), sizeof words);
    };
    const std::string head("\2\0\0\0", 4), plain = head + entry(1, 7) + entry(4, 5) + entry(32, 1);
    const std::string masked = head + entry(1, 6) + entry(2, 7) + entry(4, 7) + entry(16, 4) + entry(32, 0);
    for (const auto& [list, mode] : {std::pair(plain, 0751), std::pair(masked, 0640), std::pair(std::string(), -1),
                                     std::pair(head + entry(1, 7), -1)}) {
        RawJob job;
        job.call(SYS_setxattr, {0x1000, 0x1100, 0x2000, list.size(), 0}, 0)
            .path(0, "/d/made")
            .string(1, "system.posix_acl_access")
            .string(2, list);
        const AssembledLog log = job.assemble();
        const auto set = log.of_kind(OpKind::chmod);
        CHECK(log.of_kind(OpKind::setxattr).size() == (mode < 0 ? 1 : 0));
        REQUIRE(set.size() == (mode < 0 ? 0 : 1));
        if (mode >= 0) {
            CHECK(set[0].mode == mode);
            CHECK(log.path_of(set[0]) == "/d/made");
        }
    }
}

TEST_CASE("a file's mode is the one that it had first") {
    RawJob job;
    job.call(SYS_newfstatat, {uint64_t(-100), 0x1000, 0x2000, 0}, 0).path(1, "/d/file").stat(2, 100, 0100644);
    job.call(SYS_chmod, {0x1000, 0600}, 0).path(0, "/d/file");
    job.call(SYS_newfstatat, {uint64_t(-100), 0x1000, 0x2000, 0}, 0).path(1, "/d/file").stat(2, 100, 0100600);
    CHECK(job.assemble().file("/d/file").mode == 0644);
}

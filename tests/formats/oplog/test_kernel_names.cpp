// SPDX-License-Identifier: MIT
// Names of the kernel's constants: against the headers of this system, and as dump prints them.
#include "formats/oplog/kernel_names.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <csignal>

#include "formats/oplog/op_fields.h"
#include "tests/support.h"

using namespace reprise;

namespace {

std::string shown(const Op& op, Field field) {
    std::string out;
    append_field(out, op, field);
    return out;
}

std::string flags_of(OpKind kind, int64_t flags, int64_t arg = 0) {
    Op op;
    op.kind = kind;
    op.flags = flags;
    op.arg = arg;
    return shown(op, Field::flags);
}
std::string arg_of(OpKind kind, int64_t arg) {
    Op op;
    op.kind = kind;
    op.arg = arg;
    return shown(op, Field::arg);
}
std::string mode_of(OpKind kind, int64_t mode) {
    Op op;
    op.kind = kind;
    op.mode = mode;
    return shown(op, Field::mode);
}

}  // namespace

TEST_CASE("constants have the values of the headers") {
#define SAME(name) CHECK(symbol_value(#name) == int64_t{name})
    SAME(O_CREAT);
    SAME(O_CLOEXEC);
    SAME(O_SYNC);
    SAME(O_DIRECTORY);
    SAME(F_SETFL);
    SAME(F_DUPFD_CLOEXEC);
    SAME(AT_SYMLINK_NOFOLLOW);
    SAME(AT_FDCWD);
    SAME(SEEK_HOLE);
    SAME(MAP_POPULATE);
    SAME(MADV_HUGEPAGE);
    SAME(POSIX_FADV_WILLNEED);
    SAME(RWF_NOWAIT);
    SAME(FALLOC_FL_PUNCH_HOLE);
    SAME(MS_SYNC);
    SAME(LOCK_EX);
    SAME(CLONE_THREAD);
    SAME(SOCK_CLOEXEC);
    SAME(EFD_SEMAPHORE);
#undef SAME
    CHECK(errno_value("ENOSPC") == ENOSPC);
    CHECK(symbol_value("O_NONSENSE") == std::nullopt);
}

TEST_CASE("flags are printed by name") {
    CHECK(flags_of(OpKind::open, O_RDONLY) == "O_RDONLY");
    CHECK(flags_of(OpKind::open, 524288) == "O_RDONLY|O_CLOEXEC");
    CHECK(flags_of(OpKind::open, O_WRONLY | O_CREAT | O_TRUNC) == "O_WRONLY|O_CREAT|O_TRUNC");
    CHECK(flags_of(OpKind::open, O_RDWR | O_SYNC) == "O_RDWR|O_SYNC");
    CHECK(flags_of(OpKind::open, O_RDWR | O_DSYNC) == "O_RDWR|O_DSYNC");
    CHECK(flags_of(OpKind::open, O_RDWR | O_TMPFILE) == "O_RDWR|O_TMPFILE");
    CHECK(flags_of(OpKind::open, O_RDONLY | O_DIRECTORY) == "O_RDONLY|O_DIRECTORY");
    CHECK(flags_of(OpKind::open, int64_t{1} << 40 | O_APPEND) == "O_RDONLY|O_APPEND|0x10000000000");
    CHECK(flags_of(OpKind::open, 3) == "0x3");
    CHECK(flags_of(OpKind::stat, 0) == "0");
    CHECK(flags_of(OpKind::stat, AT_SYMLINK_NOFOLLOW) == "AT_SYMLINK_NOFOLLOW");
    CHECK(flags_of(OpKind::mmap, MAP_SHARED) == "MAP_SHARED");
    CHECK(flags_of(OpKind::mmap, MAP_PRIVATE | MAP_ANONYMOUS) == "MAP_PRIVATE|MAP_ANONYMOUS");
    CHECK(flags_of(OpKind::mmap, MAP_SHARED_VALIDATE | MAP_SYNC) == "MAP_SHARED_VALIDATE|MAP_SYNC");
    CHECK(flags_of(OpKind::msync, MS_ASYNC | MS_INVALIDATE) == "MS_ASYNC|MS_INVALIDATE");
    CHECK(flags_of(OpKind::fallocate, FALLOC_FL_KEEP_SIZE) == "FALLOC_FL_KEEP_SIZE");
    CHECK(flags_of(OpKind::preadv, RWF_HIPRI | RWF_NOWAIT) == "RWF_HIPRI|RWF_NOWAIT");
    CHECK(flags_of(OpKind::read, kFreshMemory) == "FRESH_MEMORY");
    CHECK(flags_of(OpKind::copy_file_range, kCopyFromOffset | kCopyToOffset) == "FROM_OFFSET|TO_OFFSET");
    CHECK(flags_of(OpKind::spawn, CLONE_VM | CLONE_VFORK | SIGCHLD) == "SIGCHLD|CLONE_VM|CLONE_VFORK");
    CHECK(flags_of(OpKind::spawn, CLONE_VM | CLONE_THREAD) == "CLONE_VM|CLONE_THREAD");
    CHECK(flags_of(OpKind::compute, 2) == "2");  // reprise's own
}

TEST_CASE("what flags mean may depend on the argument") {
    CHECK(flags_of(OpKind::fcntl, O_RDWR | O_NONBLOCK, F_SETFL) == "O_RDWR|O_NONBLOCK");
    CHECK(flags_of(OpKind::fcntl, FD_CLOEXEC, F_SETFD) == "FD_CLOEXEC");
    CHECK(flags_of(OpKind::fcntl, 4096, F_SETPIPE_SZ) == "4096");
    CHECK(flags_of(OpKind::pipe, O_CLOEXEC | O_NONBLOCK, 1) == "O_NONBLOCK|O_CLOEXEC");
    CHECK(flags_of(OpKind::pipe, 0, 1) == "0");
    CHECK(flags_of(OpKind::pipe, SOCK_STREAM | SOCK_CLOEXEC, 2) == "SOCK_STREAM|SOCK_CLOEXEC");
    CHECK(flags_of(OpKind::pipe, EFD_SEMAPHORE, 3) == "EFD_SEMAPHORE");
    CHECK(flags_of(OpKind::pipe, MFD_ALLOW_SEALING, 4) == "MFD_ALLOW_SEALING");
    CHECK(flags_of(OpKind::pipe, 5, 9) == "5");
}

TEST_CASE("commands and modes are printed by name") {
    CHECK(arg_of(OpKind::lseek, SEEK_SET) == "SEEK_SET");
    CHECK(arg_of(OpKind::lseek, 77) == "77");
    CHECK(arg_of(OpKind::fcntl, F_GETFL) == "F_GETFL");
    CHECK(arg_of(OpKind::fadvise, POSIX_FADV_DONTNEED) == "POSIX_FADV_DONTNEED");
    CHECK(arg_of(OpKind::madvise, MADV_WILLNEED) == "MADV_WILLNEED");
    CHECK(arg_of(OpKind::flock, LOCK_EX | LOCK_NB) == "LOCK_EX|LOCK_NB");
    CHECK(arg_of(OpKind::statx, 0x7ff) == "STATX_BASIC_STATS");
    CHECK(arg_of(OpKind::statx, 0x203) == "STATX_TYPE|STATX_MODE|STATX_SIZE");
    CHECK(arg_of(OpKind::uring_submit, 22) == "IORING_OP_READ");
    CHECK(arg_of(OpKind::aio_submit, 1) == "IOCB_CMD_PWRITE");
    CHECK(arg_of(OpKind::wait, 1) == "1");
    CHECK(mode_of(OpKind::open, 0644) == "0644");
    CHECK(mode_of(OpKind::open, 0) == "0");
    CHECK(mode_of(OpKind::mmap, PROT_READ | PROT_WRITE) == "PROT_READ|PROT_WRITE");
    CHECK(mode_of(OpKind::mmap, PROT_NONE) == "PROT_NONE");
    CHECK(mode_of(OpKind::access, 0) == "F_OK");
    CHECK(mode_of(OpKind::access, 4 | 1) == "R_OK|X_OK");
    CHECK(open_flags_text(O_RDWR | O_APPEND) == "O_RDWR|O_APPEND");
    CHECK(mode_text(04755) == "04755");
}

// SPDX-License-Identifier: MIT
// The strace importer, line by line. Lines are excerpts of strace 6.1's output on x86-64 and of its manual page, with
// paths and numbers changed; those marked "old" are in the words of strace 4.
#include <algorithm>
#include <functional>
#include <set>

#include "tests/formats/import/strace/strace_fixture.h"

#include "formats/oplog/range_lock.h"
#include "formats/oplog/syscalls.h"

namespace reprise::test {
namespace {

struct Case {
    const char* line;
    OpKind kind;  // of the last op of the log
    const char* path = "";
    std::function<bool(const Op&, const Tables&)> check = {};
};

#define WITH(condition) []([[maybe_unused]] const Op& o, [[maybe_unused]] const Tables& t) { return condition; }

// Each line follows the opens of /d/a as 3, /d/b as 4 (for writing), a pipe 5, 6 and a socket 7.
const std::vector<std::string> before = {
    R"(openat(AT_FDCWD</w>, "/d/a", O_RDONLY|O_CLOEXEC) = 3</d/a>)",
    R"(openat(AT_FDCWD</w>, "/d/b", O_RDWR|O_CREAT|O_EXCL, 0644) = 4</d/b>)",
    R"(pipe2([5<pipe:[9]>, 6<pipe:[9]>], O_CLOEXEC) = 0)",
    R"(socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 7<UNIX-STREAM:[88]>)",
    R"(mmap(NULL, 8192, PROT_READ, MAP_SHARED, 3</d/a>, 0x1000) = 0x7f0000000000)",
};

const std::vector<Case>& cases() {
    static const std::vector<Case> all_cases = {
        {R"(open("/d/x", O_RDONLY) = 9)", OpKind::open, "/d/x", WITH(o.result == 9)},
        {R"(openat(AT_FDCWD</w>, "y/z", O_WRONLY|O_CREAT|O_TRUNC, 0640) = 9</w/y/z>)", OpKind::open, "/w/y/z",
         WITH(o.flags == 01101 && o.mode == 0640)},
        {R"(openat(AT_FDCWD, "/d/x", O_RDONLY|0x8000000) = 9)", OpKind::open, "/d/x", WITH(o.flags == 0x8000000)},
        {R"(openat2(AT_FDCWD</w>, "q", {flags=O_RDWR|O_CREAT, mode=0600, resolve=RESOLVE_BENEATH}, 24) = 9</w/q>)",
         OpKind::open, "/w/q", WITH(o.flags == 0102 && o.mode == 0600)},
        {R"(creat("/d/n", 0644) = 9</d/n>)", OpKind::open, "/d/n", WITH(o.flags == 01101)},
        {R"(close(3</d/a>) = 0)", OpKind::close, "/d/a", WITH(o.fd == 3)},
        {R"(close_range(4, 4294967295, 0) = 0)", OpKind::close, "", WITH(o.fd == 7)},
        {R"(dup(3</d/a>) = 9</d/a>)", OpKind::dup, "/d/a", WITH(o.arg == 1 && o.result == 9)},
        {R"(dup2(3</d/a>, 11</d/b>) = 11</d/a>)", OpKind::dup, "/d/a", WITH(o.arg == 2 && o.fd2 == 11)},
        {R"(dup3(3</d/a>, 12, O_CLOEXEC) = 12</d/a>)", OpKind::dup, "/d/a", WITH(o.arg == 3 && o.flags == 02000000)},
        {R"(fcntl(3</d/a>, F_GETFD) = 0x1 (flags FD_CLOEXEC))", OpKind::fcntl, "/d/a",
         WITH(o.arg == 1 && o.result == 1)},
        {R"(fcntl(3</d/a>, F_DUPFD_CLOEXEC, 10) = 10</d/a>)", OpKind::dup, "/d/a", WITH(o.arg == 4 && o.fd2 == 10)},
        {R"(fcntl(3</d/a>, F_SETLK, {l_type=F_RDLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0)", OpKind::fcntl,
         "/d/a", WITH(o.arg == 6 && (unpack_range_lock(o.flags) == RangeLock{F_RDLCK}))},
        {R"(fcntl(3</d/a>, F_OFD_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=5, l_len=10, l_pid=0}) = 0)",
         OpKind::fcntl, "/d/a", WITH(o.arg == 38 && (unpack_range_lock(o.flags) == RangeLock{F_WRLCK, 5, 15}))},
        {R"(fcntl(3</d/a>, F_SETLK, {l_type=F_UNLCK, l_whence=SEEK_CUR, l_start=0, l_len=10}) = 0)", OpKind::fcntl,
         "/d/a", WITH(o.arg == 6 && o.flags == 0)},
        {R"(fcntl(3</d/a>, F_GETLK, {l_type=F_UNLCK, l_whence=SEEK_SET, l_start=0, l_len=0, l_pid=0}) = 0)",
         OpKind::fcntl, "/d/a", WITH(o.arg == 5 && o.flags == 0)},
        {R"(fcntl64(3</d/a>, F_SETFL, O_RDONLY|O_NONBLOCK) = 0)", OpKind::fcntl, "/d/a",
         WITH(o.arg == 4 && o.flags == 04000)},
        {R"(read(3</d/a>, "a\"b\\", 100) = 4)", OpKind::read, "/d/a",
         WITH(o.size == 100 && o.result == 4 && o.offset == 0)},
        {R"(read(5<pipe:[9]>, "xy", 2) = 2)", OpKind::receive, "", WITH(o.size == 2)},
        {R"(pread64(3</d/a>, "\177ELF"..., 832, 4096) = 832)", OpKind::pread, "/d/a",
         WITH(o.offset == 4096 && o.size == 832)},
        {R"(pread(3</d/a>, ""..., 1, 2) = 0)", OpKind::pread, "/d/a", WITH(o.offset == 2)},
        {R"(readv(3</d/a>, [{iov_base="iov_len=7, ", iov_len=10}, {iov_base="", iov_len=20}], 2) = 10)", OpKind::readv,
         "/d/a", WITH(o.size == 30)},
        {R"(preadv(3</d/a>, [{iov_base="ab", iov_len=2}], 1, 50) = 2)", OpKind::preadv, "/d/a",
         WITH(o.offset == 50 && o.size == 2)},
        {R"(preadv2(3</d/a>, [{iov_base="ab", iov_len=2}], 1, 60, RWF_HIPRI|RWF_NOWAIT) = 2)", OpKind::preadv, "/d/a",
         WITH(o.offset == 60 && o.flags == 9)},
        {R"(write(4</d/b>, "hello", 5) = 5)", OpKind::write, "/d/b", WITH(o.size == 5)},
        {R"(write(6<pipe:[9]>, "hello", 5) = 5)", OpKind::send, "", WITH(o.size == 5)},
        {R"(pwrite64(4</d/b>, "x"..., 4096, 8192) = 4096)", OpKind::pwrite, "/d/b", WITH(o.offset == 8192)},
        {R"(pwrite(4</d/b>, "x", 1, 1) = 1)", OpKind::pwrite, "/d/b"},
        {R"(writev(4</d/b>, [{iov_base="a, b]", iov_len=5}, {iov_base="\"}", iov_len=2}], 2) = 7)", OpKind::writev,
         "/d/b", WITH(o.size == 7)},
        {R"(pwritev(4</d/b>, [{iov_base="a", iov_len=1}], 1, 9) = 1)", OpKind::pwritev, "/d/b", WITH(o.offset == 9)},
        {R"(pwritev2(4</d/b>, [{iov_base="a", iov_len=1}], 1, 9, RWF_DSYNC) = 1)", OpKind::pwritev, "/d/b",
         WITH(o.flags == 2)},
        {R"(vmsplice(6<pipe:[9]>, [{iov_base="a", iov_len=1}], 1, SPLICE_F_MORE) = 1)", OpKind::send, ""},
        {R"(lseek(3</d/a>, -60, SEEK_END) = 54)", OpKind::lseek, "/d/a",
         WITH(o.offset == -60 && o.arg == 2 && o.result == 54)},
        {R"(_llseek(3</d/a>, 7, [7], SEEK_SET) = 0)", OpKind::lseek, "/d/a", WITH(o.offset == 7 && o.arg == 0)},
        {R"(stat("/d/s", {st_mode=S_IFREG|0644, st_size=1234, ...}) = 0)", OpKind::stat, "/d/s",
         WITH(t.files[o.file].size == 1234 && t.files[o.file].mode == 0644)},
        {R"(stat64("/d/s", {st_mode=S_IFDIR|0755, st_size=4096, ...}) = 0)", OpKind::stat, "/d/s",
         WITH(t.files[o.file].type == FileType::directory && t.files[o.file].size == 0)},
        {R"(lstat("/d/l", {st_mode=S_IFLNK|0777, st_size=4, ...}) = 0)", OpKind::stat, "/d/l",
         WITH(o.flags == 0x100 && t.files[o.file].type == FileType::symlink)},
        {R"(lstat64("/d/l", 0x7ffd) = -1 ENOENT (No such file or directory))", OpKind::stat, "/d/l",
         WITH(o.result == -2)},
        {R"(newfstatat(AT_FDCWD</w>, "s", {st_mode=S_IFREG|S_ISUID|0755, st_size=99, ...}, AT_SYMLINK_NOFOLLOW) = 0)",
         OpKind::stat, "/w/s", WITH(t.files[o.file].mode == 04755 && o.flags == 0x100)},
        {R"(newfstatat(3</d/a>, "", {st_mode=S_IFREG|0644, st_size=68343, ...}, AT_EMPTY_PATH) = 0)", OpKind::fstat,
         "/d/a", WITH(o.fd == 3 && t.files[t.file_of(o)].size == 68343)},
        {R"(fstatat64(AT_FDCWD</w>, "/d/v", {st_dev=makedev(0x8, 0x1), st_ino=77, st_mode=S_IFREG|0644, st_nlink=1, st_size=3}, 0) = 0)",
         OpKind::stat, "/d/v", WITH(t.files[o.file].inode == 77 && t.files[o.file].device == 0x801)},
        {R"(fstat(3</d/a>, {st_mode=S_IFREG|0644, st_size=5, ...}) = 0)", OpKind::fstat, "/d/a",
         WITH(t.files[t.file_of(o)].size == 5)},
        {R"(fstat64(3</d/a>, {st_mode=S_IFREG|0644, st_size=5, ...}) = 0)", OpKind::fstat, "/d/a"},
        {R"(statx(AT_FDCWD</w>, "/d/sx", AT_STATX_SYNC_AS_STAT|AT_NO_AUTOMOUNT, STATX_MODE|STATX_SIZE, {stx_mask=STATX_ALL, stx_attributes=0, stx_mode=S_IFREG|0600, stx_size=777, ...}) = 0)",
         OpKind::statx, "/d/sx", WITH(o.arg == 0x202 && o.flags == 0x800 && t.files[o.file].size == 777)},
        {R"(statx(3</d/a>, "", AT_STATX_SYNC_AS_STAT|AT_EMPTY_PATH, STATX_SIZE, {stx_mask=STATX_ALL, stx_mode=S_IFREG|0600, stx_size=778, ...}) = 0)",
         OpKind::statx, "/d/a", WITH(o.file == 0 && o.fd == 3)},
        {R"(access("/d/c", R_OK|W_OK) = 0)", OpKind::access, "/d/c", WITH(o.mode == 6)},
        {R"(faccessat(AT_FDCWD</w>, "c", F_OK) = -1 EACCES (Permission denied))", OpKind::access, "/w/c",
         WITH(o.result == -13)},
        {R"(faccessat2(AT_FDCWD</w>, "c", X_OK, AT_EACCESS) = 0)", OpKind::access, "/w/c",
         WITH(o.mode == 1 && o.flags == 0x200)},
        {R"(getdents64(3</d/a>, 0x25694150 /* 209 entries */, 32768) = 6984)", OpKind::getdents, "/d/a",
         WITH(o.size == 32768 && o.result == 6984)},
        {R"(getdents(3</d/a>, 0x25694150 /* 2 entries */, 32768) = 48)", OpKind::getdents, "/d/a"},
        {R"(readlink("/d/r", "../t", 4096) = 4)", OpKind::readlink, "/d/r",
         WITH(t.strings[t.files[o.file].target] == "../t")},
        {R"(readlinkat(AT_FDCWD</w>, "r", 0x7ffe, 4096) = -1 EINVAL (Invalid argument))", OpKind::readlink, "/w/r",
         WITH(o.size == 4096)},
        {R"(mkdir("/d/m", 0700) = 0)", OpKind::mkdir, "/d/m", WITH(o.mode == 0700)},
        {R"(mkdirat(AT_FDCWD</w>, "m", 0777) = -1 EEXIST (File exists))", OpKind::mkdir, "/w/m", WITH(o.result == -17)},
        {R"(rmdir("/d/m") = 0)", OpKind::rmdir, "/d/m"},
        {R"(unlink("/d/u") = 0)", OpKind::unlink, "/d/u"},
        {R"(unlinkat(AT_FDCWD</w>, "u", 0) = 0)", OpKind::unlink, "/w/u"},
        {R"(unlinkat(3</d/dir>, "u", AT_REMOVEDIR) = 0)", OpKind::rmdir, "/d/dir/u"},
        {R"(rename("/d/1", "/d/2") = 0)", OpKind::rename, "/d/1", WITH(t.path(o.file2) == "/d/2")},
        {R"(renameat(AT_FDCWD</w>, "1", AT_FDCWD</w>, "2") = 0)", OpKind::rename, "/w/1",
         WITH(t.path(o.file2) == "/w/2")},
        {R"(renameat2(8</d/x>, "1", 9</d/y>, "2", RENAME_NOREPLACE) = 0)", OpKind::rename, "/d/x/1",
         WITH(t.path(o.file2) == "/d/y/2" && o.flags == 1)},
        {R"(link("/d/1", "/d/3") = 0)", OpKind::link, "/d/1", WITH(t.path(o.file2) == "/d/3")},
        {R"(linkat(AT_FDCWD</w>, "1", AT_FDCWD</w>, "3", AT_SYMLINK_FOLLOW) = 0)", OpKind::link, "/w/1",
         WITH(o.flags == 0x400)},
        {R"(symlink("to", "/d/sl") = 0)", OpKind::symlink, "/d/sl", WITH(t.strings[o.text] == "to")},
        {R"(symlinkat("../to", AT_FDCWD</w>, "sl") = 0)", OpKind::symlink, "/w/sl", WITH(t.strings[o.text] == "../to")},
        {R"(truncate("/d/t", 100) = 0)", OpKind::truncate, "/d/t", WITH(o.size == 100)},
        {R"(truncate64("/d/t", 100) = 0)", OpKind::truncate, "/d/t"},
        {R"(ftruncate(4</d/b>, 200) = 0)", OpKind::ftruncate, "/d/b", WITH(o.size == 200)},
        {R"(ftruncate64(4</d/b>, 200) = 0)", OpKind::ftruncate, "/d/b"},
        {R"(fallocate(4</d/b>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 10, 20) = 0)", OpKind::fallocate, "/d/b",
         WITH(o.flags == 3 && o.offset == 10 && o.size == 20)},
        {R"(fsync(4</d/b>) = 0)", OpKind::fsync, "/d/b"},
        {R"(fdatasync(4</d/b>) = 0)", OpKind::fdatasync, "/d/b"},
        {R"(sync_file_range(4</d/b>, 1, 2, SYNC_FILE_RANGE_WRITE) = 0)", OpKind::sync_file_range, "/d/b",
         WITH(o.offset == 1 && o.size == 2 && o.flags == 2)},
        {R"(syncfs(4</d/b>) = 0)", OpKind::syncfs, "/d/b"},
        {R"(sync() = 0)", OpKind::syncfs, "", WITH(o.handle == 0)},
        {R"(fadvise64(3</d/a>, 5, 6, POSIX_FADV_SEQUENTIAL) = 0)", OpKind::fadvise, "/d/a",
         WITH(o.arg == 2 && o.offset == 5 && o.size == 6)},
        {R"(fadvise64_64(3</d/a>, 5, 6, POSIX_FADV_DONTNEED) = 0)", OpKind::fadvise, "/d/a", WITH(o.arg == 4)},
        {R"(readahead(3</d/a>, 7, 8) = 0)", OpKind::readahead, "/d/a", WITH(o.offset == 7 && o.size == 8)},
        {R"(chmod("/d/m", 0600) = 0)", OpKind::chmod, "/d/m", WITH(o.mode == 0600)},
        {R"(fchmod(4</d/b>, 0600) = 0)", OpKind::chmod, "/d/b", WITH(o.file == 0)},
        {R"(fchmodat(AT_FDCWD</w>, "m", 0600) = 0)", OpKind::chmod, "/w/m"},
        {R"(fchmodat2(AT_FDCWD</w>, "m", 0600, AT_SYMLINK_NOFOLLOW) = 0)", OpKind::chmod, "/w/m"},
        {R"(chown("/d/m", 0, -1) = 0)", OpKind::chown, "/d/m", WITH(o.flags == 0)},
        {R"(lchown("/d/m", -1, 5) = 0)", OpKind::chown, "/d/m", WITH(o.flags == 0x100)},
        {R"(fchown(4</d/b>, 0, 0) = 0)", OpKind::chown, "/d/b", WITH(o.file == 0)},
        {R"(chown32("/d/m", 0, 0) = 0)", OpKind::chown, "/d/m"},
        {R"(lchown32("/d/m", 0, 0) = 0)", OpKind::chown, "/d/m"},
        {R"(fchown32(4</d/b>, 0, 0) = 0)", OpKind::chown, "/d/b"},
        {R"(fchownat(AT_FDCWD</w>, "m", 0, 0, AT_SYMLINK_NOFOLLOW) = 0)", OpKind::chown, "/w/m"},
        {R"(utime("/d/m", NULL) = 0)", OpKind::utimens, "/d/m"},
        {R"(utimes("/d/m", [{tv_sec=1, tv_usec=2}, {tv_sec=1, tv_usec=2}]) = 0)", OpKind::utimens, "/d/m"},
        {R"(futimesat(AT_FDCWD</w>, "m", NULL) = 0)", OpKind::utimens, "/w/m"},
        {R"(utimensat(4</d/b>, NULL, [UTIME_NOW, UTIME_OMIT], 0) = 0)", OpKind::utimens, "/d/b", WITH(o.file == 0)},
        {R"(mmap(NULL, 4096, PROT_READ|PROT_EXEC, MAP_PRIVATE|MAP_FIXED|MAP_DENYWRITE, 3</d/a>, 0x26000) = 0x7fc5d1c7a000)",
         OpKind::mmap, "/d/a",
         WITH(o.offset == 0x26000 && o.mode == 5 && o.flags == 0x812 && o.map == 2 && o.result == 0)},
        {R"(mmap2(NULL, 4096, PROT_READ, MAP_SHARED, 3</d/a>, 0) = -1 ENOMEM (Cannot allocate memory))", OpKind::mmap,
         "/d/a", WITH(o.map == 0 && o.result == -12)},
        {R"(munmap(0x7f0000000000, 4096) = 0)", OpKind::munmap, "", WITH(o.map == 1 && o.size == 4096)},
        {R"(mremap(0x7f0000001000, 4096, 8192, MREMAP_MAYMOVE) = 0x7f1000000000)", OpKind::mremap, "",
         WITH(o.map == 1 && o.offset == 4096 && o.arg == 4096 && o.size == 8192 && o.flags == 1)},
        {R"(madvise(0x7f0000001000, 4096, MADV_WILLNEED) = 0)", OpKind::madvise, "",
         WITH(o.offset == 4096 && o.arg == 3)},
        {R"(msync(0x7f0000000000, 8192, MS_SYNC) = 0)", OpKind::msync, "", WITH(o.flags == 4)},
        {R"(mprotect(0x7f0000000000, 4096, PROT_NONE) = 0)", OpKind::mprotect, "", WITH(o.mode == 0)},
        {R"(pkey_mprotect(0x7f0000000000, 4096, PROT_READ|PROT_WRITE, 1) = 0)", OpKind::mprotect, "",
         WITH(o.mode == 3)},
        {R"(sendfile(4</d/b>, 3</d/a>, [100] => [150], 50) = 50)", OpKind::sendfile, "/d/a",
         WITH(o.fd == 3 && o.fd2 == 4 && o.offset == 100 && o.offset2 == 0 && o.size == 50)},
        {R"(sendfile64(7<UNIX-STREAM:[88]>, 3</d/a>, NULL, 50) = 50)", OpKind::sendfile, "/d/a", WITH(o.offset == 0)},
        {R"(copy_file_range(3</d/a>, NULL, 4</d/b>, [7], 50, 0) = 50)", OpKind::copy_file_range, "/d/a",
         WITH(o.offset == 0 && o.offset2 == 7 && o.flags == kCopyToOffset)},
        {R"(ioctl(4</d/b>, BTRFS_IOC_CLONE or FICLONE, 3</d/a>) = 0)", OpKind::copy_file_range, "/d/a",
         WITH(o.fd == 3 && o.fd2 == 4 && o.offset == 0 && o.offset2 == 0 &&
              o.flags == (kCopyFromOffset | kCopyToOffset | kCopyClones))},
        {R"(ioctl(4</d/b>, FICLONE, 3</d/a>) = 0)", OpKind::copy_file_range, "/d/a", WITH(o.size == o.result)},
        {R"(ioctl(4</d/b>, BTRFS_IOC_CLONE_RANGE or FICLONERANGE, {src_fd=3</d/a>, src_offset=4096, src_length=8192, dest_offset=12288}) = 0)",
         OpKind::copy_file_range, "/d/a",
         WITH(o.offset == 4096 && o.offset2 == 12288 && o.size == 8192 && o.result == 8192 && (o.flags & kCopyClones))},
        {R"(ioctl(4</d/b>, TCGETS, 0x7ffd5a3c1d50) = -1 ENOTTY (Inappropriate ioctl for device))", OpKind::ioctl,
         "/d/b", WITH(o.fd == 4 && o.result == -ENOTTY && o.arg == kAskTerminal && o.handle2 == 0)},
        {R"(ioctl(3</d/a>, TCGETS2, 0x7ffd5a3c1d50) = -1 ENOTTY (Inappropriate ioctl for device))", OpKind::ioctl,
         "/d/a", WITH(o.arg == kAskTerminal2)},
        {R"(mlock(0x7f0000001064, 100) = 0)", OpKind::madvise, "",
         WITH(o.map == 1 && o.offset == 4096 && o.size == 4096 && o.arg == 0x16)},
        {R"(mlock2(0x7f0000000000, 8192, 0) = 0)", OpKind::madvise, "", WITH(o.size == 8192 && o.arg == 0x16)},
        {R"(mlockall(MCL_CURRENT|MCL_FUTURE) = 0)", OpKind::madvise, "",
         WITH(o.map == 1 && o.offset == 0 && o.size == 8192 && o.arg == 0x16)},
        {R"(splice(3</d/a>, [9], 6<pipe:[9]>, NULL, 50, SPLICE_F_MOVE) = 50)", OpKind::splice, "/d/a",
         WITH(o.offset == 9 && o.flags == (kCopyFromOffset | 1))},
        {R"(tee(5<pipe:[9]>, 6<pipe:[9]>, 50, 0) = 50)", OpKind::splice, ""},
        {R"(getxattr("/d/x", "user.a", 0x7ffe, 100) = -1 ENODATA (No data available))", OpKind::getxattr, "/d/x",
         WITH(t.strings[o.text] == "user.a" && o.size == 100 && o.result == -61)},
        {R"(lgetxattr("/d/x", "user.a", "v", 100) = 1)", OpKind::getxattr, "/d/x", WITH(o.flags == 1)},
        {R"(fgetxattr(3</d/a>, "user.a", NULL, 0) = 1)", OpKind::getxattr, "/d/a"},
        {R"(setxattr("/d/x", "user.a", "v", 1, XATTR_CREATE) = 0)", OpKind::setxattr, "/d/x",
         WITH(o.size == 1 && o.flags == 0)},
        {R"(lsetxattr("/d/x", "user.a", "v", 1, 0) = 0)", OpKind::setxattr, "/d/x", WITH(o.flags == 1)},
        {R"(fsetxattr(4</d/b>, "user.a", "v", 1, 0) = 0)", OpKind::setxattr, "/d/b"},
        {R"(listxattr("/d/x", 0x7ffe, 100) = 0)", OpKind::listxattr, "/d/x", WITH(o.size == 100)},
        {R"(llistxattr("/d/x", "user.a\0", 100) = 7)", OpKind::listxattr, "/d/x", WITH(o.flags == 1)},
        {R"(flistxattr(3</d/a>, NULL, 0) = 0)", OpKind::listxattr, "/d/a"},
        {R"(removexattr("/d/x", "user.a") = 0)", OpKind::removexattr, "/d/x", WITH(t.strings[o.text] == "user.a")},
        {R"(lremovexattr("/d/x", "user.a") = 0)", OpKind::removexattr, "/d/x", WITH(o.flags == 1)},
        {R"(fremovexattr(4</d/b>, "user.a") = 0)", OpKind::removexattr, "/d/b"},
        {R"(flock(3</d/a>, LOCK_EX|LOCK_NB) = 0)", OpKind::flock, "/d/a", WITH(o.arg == 6)},
        {R"(statfs("/d", {f_type=EXT2_SUPER_MAGIC, f_bsize=4096, ...}) = 0)", OpKind::statfs, "/d"},
        {R"(fstatfs(3</d/a>, {f_type=TMPFS_MAGIC, f_bsize=4096, ...}) = 0)", OpKind::statfs, "/d/a"},
        {R"(io_uring_enter(9<anon_inode:[io_uring]>, 8, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 8)", OpKind::uring_enter,
         "", WITH(o.size == 8 && o.arg == 1)},
        {R"(io_getevents(0x7f2, 1, 4, [{data=0, obj=0x55, res=4096, res2=0}], NULL) = 1)", OpKind::wait, "",
         WITH(o.arg == 2)},
        {R"(io_pgetevents(0x7f2, 1, 4, [], NULL, NULL) = 0)", OpKind::wait},
        {R"(futex(0x7f37d0, FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME, 0, NULL, FUTEX_BITSET_MATCH_ANY) = 0)",
         OpKind::wait, "", WITH(o.arg == 1)},
        {R"(futex_wait(0x55, 5, FUTEX_BITSET_MATCH_ANY, FUTEX2_SIZE_U32|FUTEX2_PRIVATE, NULL, CLOCK_MONOTONIC) = 0)",
         OpKind::wait, "", WITH(o.arg == kWaitFutex)},
        {R"(futex_wake(0x55, FUTEX_BITSET_MATCH_ANY, 1, FUTEX2_SIZE_U32|FUTEX2_PRIVATE) = 1)", OpKind::wait, "",
         WITH(o.arg == kWaitWokeOthers)},
        {R"(futex_requeue([{val=1, uaddr=0x55, flags=FUTEX2_SIZE_U32}, {val=0, uaddr=0x66, flags=FUTEX2_SIZE_U32}], 0, 1, 1) = 2)",
         OpKind::wait, "", WITH(o.arg == kWaitWokeOthers)},
        {R"(futex_waitv([{val=1, uaddr=0x55, flags=FUTEX_32}], 1, 0, NULL, CLOCK_MONOTONIC) = 0)", OpKind::wait},
        {R"(poll([{fd=5<pipe:[9]>, events=POLLIN}], 1, 100) = 1 ([{fd=5, revents=POLLIN}]))", OpKind::wait, "",
         WITH(o.arg == 2 && o.result == 1)},
        {R"(ppoll([{fd=5, events=POLLIN}], 1, NULL, NULL, 8) = 1 ([{fd=5, revents=POLLIN}]))", OpKind::wait},
        {R"(select(6, [5], NULL, NULL, {tv_sec=1, tv_usec=0}) = 0 (Timeout))", OpKind::wait, "", WITH(o.result == 0)},
        {R"(pselect6(6, [5], NULL, NULL, NULL, NULL) = 1 (in [5]))", OpKind::wait},
        {R"(epoll_wait(9<anon_inode:[eventpoll]>, [{events=EPOLLIN, data={u32=5, u64=5}}], 10, -1) = 1)", OpKind::wait},
        {R"(epoll_pwait(9, [], 10, 0, NULL, 8) = 0)", OpKind::wait},
        {R"(epoll_pwait2(9, [], 10, {tv_sec=0, tv_nsec=1}, NULL, 8) = 0)", OpKind::wait},
        {R"(nanosleep({tv_sec=0, tv_nsec=1000}, NULL) = 0)", OpKind::wait, "", WITH(o.arg == 3)},
        {R"(clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=1000}, NULL) = 0)", OpKind::wait, "",
         WITH(o.arg == 3)},
        {R"(pause() = ? ERESTARTNOHAND (To be restarted if no handler))", OpKind::wait, "", WITH(o.result == -4)},
        {R"(rt_sigtimedwait([CHLD], NULL, NULL, 8) = 17 (SIGCHLD))", OpKind::wait},
        {R"(rt_sigsuspend([], 8) = ? ERESTARTNOHAND (To be restarted if no handler))", OpKind::wait},
        {R"(restart_syscall(<... resuming interrupted futex ...>) = 0)", OpKind::wait},
        {R"(semop(5, [{0, -1, SEM_UNDO}], 1) = 0)", OpKind::wait, "", WITH(o.arg == 1)},
        {R"(semtimedop(5, [{0, -1, SEM_UNDO}], 1, NULL) = 0)", OpKind::wait},
        {R"(msgsnd(5, {1, "text"}, 4, 0) = 0)", OpKind::wait, "", WITH(o.arg == 0)},
        {R"(msgrcv(5, {1, "text"}, 8, 0, 0) = 4)", OpKind::wait, "", WITH(o.arg == 0 && o.result == 4)},
        {R"(mq_timedsend(5, "text", 4, 0, NULL) = 0)", OpKind::wait},
        {R"(mq_timedreceive(5, "text", 8, [0], NULL) = 4)", OpKind::wait, "", WITH(o.result == 4)},
        {R"(wait4(-1, 0x7ffd, WNOHANG, NULL) = -1 ECHILD (No child processes))", OpKind::wait, "", WITH(o.arg == 4)},
        {R"(waitpid(-1, NULL, 0) = 0)", OpKind::wait},
        {R"(waitid(P_PID, 22383, {}, WNOHANG|WEXITED, NULL) = 0)", OpKind::wait},
        {R"(pipe([8, 9]) = 0)", OpKind::pipe, "", WITH(o.arg == 1 && o.fd == 8 && o.fd2 == 9 && o.handle && o.handle2)},
        {R"(pipe2([8<pipe:[5]>, 9<pipe:[5]>], O_CLOEXEC|O_DIRECT) = 0)", OpKind::pipe, "",
         WITH(o.flags == (02000000 | 040000))},
        {R"(socketpair(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0, [8<UNIX-STREAM:[1->2]>, 9<UNIX-STREAM:[2->1]>]) = 0)",
         OpKind::pipe, "", WITH(o.arg == 2 && o.fd == 8 && o.fd2 == 9)},
        {R"(eventfd(0) = 8)", OpKind::pipe, "", WITH(o.arg == 3 && o.fd == 8)},
        {R"(eventfd2(0, EFD_CLOEXEC|EFD_NONBLOCK) = 8<anon_inode:[eventfd]>)", OpKind::pipe, "",
         WITH(o.arg == 3 && o.fd == 8 && o.flags == 02004000)},
        {R"(memfd_create("buf", MFD_CLOEXEC) = 8</memfd:buf (deleted)>)", OpKind::pipe, "",
         WITH(o.arg == 4 && o.fd == 8 && o.flags == 1)},
        {R"(sendto(7<UNIX-STREAM:[88]>, "ab", 2, MSG_NOSIGNAL, NULL, 0) = 2)", OpKind::send, "", WITH(o.size == 2)},
        {R"(send(7, "ab", 2, 0) = 2)", OpKind::send},
        {R"(sendmsg(7<UNIX-STREAM:[88]>, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="a", iov_len=1}, {iov_base="bc", iov_len=2}], msg_iovlen=2, msg_controllen=0, msg_flags=0}, 0) = 3)",
         OpKind::send, "", WITH(o.size == 3)},
        {R"(sendmmsg(7<UNIX-STREAM:[88]>, [{msg_hdr={msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="ab", iov_len=2}], msg_iovlen=1, msg_controllen=0, msg_flags=0}, msg_len=2}, {msg_hdr={msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="cde", iov_len=3}], msg_iovlen=1, msg_controllen=0, msg_flags=0}, msg_len=3}], 2, MSG_NOSIGNAL) = 2)",
         OpKind::send, "", WITH(o.size == 5 && o.result == 5)},
        {R"(recvmmsg(7<UNIX-STREAM:[88]>, [{msg_hdr={msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="ab", iov_len=100}], msg_iovlen=1, msg_controllen=0, msg_flags=0}, msg_len=2}], 1, 0, NULL) = 1)",
         OpKind::receive, "", WITH(o.size == 2 && o.result == 2)},
        {R"(recvfrom(7<UNIX-STREAM:[88]>, "ab", 100, 0, NULL, NULL) = 2)", OpKind::receive, "",
         WITH(o.size == 100 && o.result == 2)},
        {R"(recv(7, "ab", 100, 0) = 2)", OpKind::receive},
        {R"(recvmsg(7<UNIX-STREAM:[88]>, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="x", iov_len=1}], msg_iovlen=1, msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[11</dev/shm/torch_1>(deleted)]}], msg_controllen=24, msg_flags=MSG_CMSG_CLOEXEC}, MSG_CMSG_CLOEXEC) = 1)",
         OpKind::receive, "", WITH(t.handles.back().fd == 11 && t.path(t.handles.back().file) == "/dev/shm/torch_1")},
        {R"(clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7feb91114310) = 200)",
         OpKind::spawn, "", WITH(o.peer == 2 && o.flags == 0x1200011 && t.processes.size() == 3)},
        {R"(clone2(child_stack=NULL, flags=SIGCHLD) = 200)", OpKind::spawn},
        {R"(clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM, child_tid=0x7feb6a089990, exit_signal=0, stack=0x7feb69889000, stack_size=0x7fff80} => {parent_tid=[200]}, 88) = 200)",
         OpKind::spawn, "", WITH(o.peer == 2 && t.processes.size() == 2)},
        {R"(fork() = 200)", OpKind::spawn, "", WITH(o.flags == 17)},
        {R"(vfork() = 5 /* 200 in strace's PID NS */)", OpKind::spawn, "", WITH(t.processes.back().pid == 200)},
        {R"(execve("/usr/bin/python3", ["python3", "a \"b\".py"], 0x7ffd /* 41 vars */) = 0)", OpKind::exec,
         "/usr/bin/python3", WITH(t.strings[t.processes[1].command] == "python3 a \"b\".py")},
        {R"(execveat(AT_FDCWD</w>, "x", ["x"], 0x7ffd /* 1 var */, 0) = -1 ENOENT (No such file or directory))",
         OpKind::exec, "/w/x", WITH(o.result == -2)},
        {R"(exit(3) = ?)", OpKind::exit, "", WITH(o.arg == 3)},
        {R"(exit_group(0) = ?)", OpKind::exit, "", WITH(o.arg == 0)},
    };
    return all_cases;
}

}  // namespace

TEST_CASE("strace: every call of the table") {
    std::set<std::string> seen = {"socket"};
    for (const Case& c : cases()) {
        const std::string line = c.line;
        CAPTURE(line);
        seen.insert(line.substr(0, line.find('(')));
        std::vector<std::string> lines = before;
        lines.push_back(line);
        StraceImported log(strace_lines(lines));
        REQUIRE_FALSE(log->ops().empty());
        const Op op = log->ops().back();
        CHECK(info(op.kind).name == info(c.kind).name);
        // As a recording of the same call, but for waits: strace does not show requests, nor who a child was.
        const std::string from = " " + calls_of(op.kind) + " ";
        const Syscall* row = find_syscall(line.substr(0, line.find('(')));
        REQUIRE(row != nullptr);
        const std::string name(find_syscall(row->nr)->name);
        const bool listed =
            from.find(" " + name + " ") != std::string::npos || from.find(" " + name + ":") != std::string::npos;
        CHECK((listed || op.kind == OpKind::wait));
        CHECK(log->path_of(op) == c.path);
        if (!line.starts_with("close_range")) {
            CHECK(op.duration == 10'000);  // there the first close has it all
        }
        if (c.check) {
            CHECK(c.check(op, log->tables()));
        }
        CHECK(log->counter("unrecognized_lines") == 0);
        CHECK(log->counter("symbols_unknown") == 0);
    }
    // Those that are no op of their own.
    for (const char* name : {"chdir",        "fchdir",         "getcwd",         "accept",     "accept4",
                             "epoll_create", "epoll_create1",  "timerfd_create", "signalfd",   "signalfd4",
                             "inotify_init", "inotify_init1",  "fanotify_init",  "pidfd_open", "perf_event_open",
                             "userfaultfd",  "io_uring_setup", "munlockall",     "io_submit",  "open_by_handle_at",
                             "pidfd_getfd",  "umask",          "unshare"}) {
        seen.insert(name);
    }
    for (const auto& table : {all_syscalls(), all_syscall_aliases()}) {
        for (const Syscall& row : table) {
            CAPTURE(row.name);
            CHECK(seen.contains(std::string(row.name)) == (row.strace != kNotImported));
        }
    }
}

TEST_CASE("strace: calls without an op of their own move the current directory and make descriptors") {
    StraceImported log(strace_lines({
        R"(stat("early", 0x7f) = -1 ENOENT (No such file or directory))",
        R"(getcwd("/w", 4096) = 3)",
        R"(chdir("sub") = 0)",
        R"(stat("x", 0x7f) = -1 ENOENT (No such file or directory))",
        R"(openat(AT_FDCWD, "/q", O_RDONLY|O_DIRECTORY) = 3</q>)",
        R"(fchdir(3</q>) = 0)",
        R"(stat("x", 0x7f) = -1 ENOENT (No such file or directory))",
        R"(chdir("/nowhere") = -1 ENOENT (No such file or directory))",
        R"(stat("y", 0x7f) = -1 ENOENT (No such file or directory))",
        R"(epoll_create1(EPOLL_CLOEXEC) = 4<anon_inode:[eventpoll]>)",
        R"(accept4(9, NULL, NULL, SOCK_CLOEXEC) = 5<TCP:[127.0.0.1:80->127.0.0.1:99]>)",
        R"(read(5<TCP:[127.0.0.1:80->127.0.0.1:99]>, "ab", 10) = 2)",
        R"(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC) = 6<anon_inode:[timerfd]>)",
        R"(read(6<anon_inode:[timerfd]>, "\1\0\0\0\0\0\0\0", 8) = 8)",
        R"(open_by_handle_at(3</q>, {handle_bytes=8}, O_RDONLY) = 8</q/by_handle>)",
        R"(read(8</q/by_handle>, "ab", 10) = 2)",
        R"(pidfd_getfd(9<anon_inode:[pidfd]>, 5, 0) = 10</q/got>)",
        R"(read(10</q/got>, "ab", 10) = 2)",
        R"(ioctl(6, TIOCGWINSZ, 0x7f) = -1 ENOTTY (Inappropriate ioctl for device))",
        R"(io_submit(0x7f2, 1, [{aio_data=0, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3}]) = 1)",
    }));
    const auto stats = log->of_kind(OpKind::stat);
    CHECK(log->path_of(stats.at(0)) == "/w/early");
    CHECK(log->path_of(stats.at(1)) == "/w/sub/x");
    CHECK(log->path_of(stats.at(2)) == "/q/x");
    CHECK(log->path_of(stats.at(3)) == "/q/y");
    const auto received = log->of_kind(OpKind::receive);
    REQUIRE(received.size() == 2);
    CHECK(log->tables().handles[received[0].handle].kind == HandleKind::socket);
    const auto reads = log->of_kind(OpKind::read);
    REQUIRE(reads.size() == 2);
    CHECK(log->path_of(reads[0]) == "/q/by_handle");
    CHECK(log->path_of(reads[1]) == "/q/got");
    CHECK(log->counter("dropped_ioctl") == 1);
    CHECK(log->counter("asynchronous_requests_unseen") == 1);
    CHECK(log->tables().losses() == 1);
}

TEST_CASE("strace: the umask is taken off the modes of what is made") {
    StraceImported log(strace_lines({
        R"(umask(022) = 002)",
        R"(mkdir("/d", 0777) = 0)",
        R"(umask(077) = 022)",
        R"(openat(AT_FDCWD</w>, "/d/a", O_RDWR|O_CREAT, 0644) = 3</d/a>)",
    }));
    CHECK(log->of_kind(OpKind::mkdir).at(0).mode == 0755);
    CHECK(log->of_kind(OpKind::open).at(0).mode == 0600);
}

TEST_CASE("strace: clones copy to the end of the source, and other ioctls, or those that fail, are none") {
    StraceImported log(strace_lines({
        R"(openat(AT_FDCWD</w>, "/d/a", O_RDONLY) = 3</d/a>)",
        R"(fstat(3</d/a>, {st_mode=S_IFREG|0644, st_size=5000, ...}) = 0)",
        R"(openat(AT_FDCWD</w>, "/d/b", O_RDWR|O_CREAT|O_EXCL, 0644) = 4</d/b>)",
        R"(ioctl(4</d/b>, FICLONERANGE, {src_fd=3</d/a>, src_offset=4096, src_length=0, dest_offset=0}) = 0)",
        R"(ioctl(4</d/b>, BTRFS_IOC_CLONE or FICLONE, 3</d/a>) = -1 EOPNOTSUPP (Operation not supported))",
        R"(ioctl(4</d/b>, FS_IOC_GETFLAGS, [0]) = 0)",
        R"(ioctl(4</d/b>, FICLONE, 3</d/a>) = 0)",
        R"(write(4</d/b>, "x", 1) = 1)",
    }));
    const auto copies = log->of_kind(OpKind::copy_file_range);
    REQUIRE(copies.size() == 2);
    CHECK(copies[0].offset == 4096);
    CHECK(copies[0].size == 904);
    CHECK(copies[1].size == 5000);
    CHECK(copies[1].result == 5000);
    CHECK(log->of_kind(OpKind::write).at(0).offset == 0);  // no position moved
    CHECK(log->counter("dropped_ioctl") == 2);
}

TEST_CASE("strace: locks bring mapped pages in, unless they wait for faults, and all mappings to come") {
    const std::string map = R"(mmap(NULL, 8192, PROT_READ, MAP_SHARED, 3</d/a>, 0) = 0x7f0000000000)";
    StraceImported log(strace_lines({
        R"(openat(AT_FDCWD</w>, "/d/a", O_RDONLY) = 3</d/a>)",
        map,
        R"(mlock2(0x7f0000000000, 8192, MLOCK_ONFAULT) = 0)",
        R"(mlockall(MCL_CURRENT|MCL_FUTURE|MCL_ONFAULT) = 0)",
        map,
        R"(mlock(0x7f0000000000, 8192) = -1 ENOMEM (Cannot allocate memory))",
        R"(mlockall(MCL_FUTURE) = 0)",
        map,
        R"(munlockall() = 0)",
        map,
    }));
    CHECK(log->of_kind(OpKind::madvise).empty());
    const auto maps = log->of_kind(OpKind::mmap);
    REQUIRE(maps.size() == 4);
    constexpr int64_t kMapPopulate = 0x8000;
    CHECK((maps[1].flags & kMapPopulate) == 0);
    CHECK((maps[2].flags & kMapPopulate) != 0);
    CHECK((maps[3].flags & kMapPopulate) == 0);
}

TEST_CASE("strace: pid columns and clocks") {
    const std::string call = R"(openat(AT_FDCWD, "/a", O_RDONLY) = 3)";
    const auto first = [](StraceImported& log) { return log->ops().at(0); };
    SUBCASE("-ttt -f -T") {
        StraceImported log("8861  1795198645.707261 " + call + " <0.000173>\n");
        CHECK(first(log).duration == 173'000);
        CHECK(log->tables().tasks[1].tid == 8861);
        CHECK(log->reader.header().origin_unix_ns == 1795198645707261000);
        CHECK(log->reader.header().time_unit_ns == 1000);
        CHECK(log->counter("durations_unknown") == 0);
    }
    SUBCASE("without -T") {
        StraceImported log("8861  1795198645.707261 " + call + "\n");
        CHECK(first(log).duration == 0);
        CHECK(log->counter("durations_unknown") == 1);
    }
    SUBCASE("nanoseconds, no pid") {
        StraceImported log("1795198645.707261123 " + call + " <0.000173001>\n");
        CHECK(log->reader.header().time_unit_ns == 1);
        CHECK(first(log).duration == 173'001);
    }
    SUBCASE("-tt") {
        StraceImported log("12 10:00:00.000001 " + call + "\n12 10:00:00.000003 close(3) = 0\n");
        CHECK(log->ops().at(1).begin == 2000);
        CHECK(log->reader.header().origin_unix_ns == 0);
    }
    SUBCASE("-tt, no pid") {
        StraceImported log("10:00:00.000000 " + call + "\n10:00:02.000000 close(3) = 0\n");
        CHECK(log->ops().at(1).begin == 2'000'000'000);
    }
    SUBCASE("midnight") {
        StraceImported log("12 23:59:59.500000 " + call +
                           "\n12 00:00:00.500000 close(3) = 0\n12 00:00:01.500000 sync() = 0\n");
        CHECK(log->ops().at(1).begin == 1'000'000'000);
        CHECK(log->ops().at(2).begin == 2'000'000'000);
    }
    SUBCASE("-r beside -ttt, -i, -n, -Y") {
        StraceImported log("8861<python3> 1795198645.707261 (+     0.000123) [  257] [00007f1c2a3b4c5d] " + call +
                           " <0.000173>\n");
        CHECK(log->tables().tasks[1].tid == 8861);
        CHECK(first(log).kind == OpKind::open);
    }
    SUBCASE("on a terminal: the first task has no number until there are two") {
        StraceImported log(
            "1795198645.000001 " + call + " <0.000001>\n" +
            "1795198645.000002 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLDstrace: Process 9001 attached\n"
            " <unfinished ...>\n"
            "[pid  9001] 1795198645.000003 read(3, \"ab\", 2) = 2 <0.000001>\n"
            "[pid  9000] 1795198645.000004 <... clone resumed>, child_tidptr=0x7f) = 9001 <0.000002>\n"
            "[pid  9000] 1795198645.000005 read(3, \"ab\", 2) = 2 <0.000001>\n"
            "[pid  9001] 1795198645.000006 exit_group(0) = ?\n"
            "[pid  9001] 1795198645.000007 +++ exited with 0 +++\n"
            "1795198645.000008 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=9001} ---\n"
            "1795198645.000009 read(3, \"ab\", 2) = 2 <0.000001>\n");
        CHECK(log->tables().tasks.size() == 3);
        CHECK(log->tables().processes.size() == 3);
        std::vector<int64_t> offsets;
        for (const Op& op : log->ops(1)) {
            if (op.kind == OpKind::read) {
                offsets.push_back(op.offset);
            }
        }
        CHECK(offsets == std::vector<int64_t>{2, 4});
        CHECK(log->counter("unrecognized_lines") == 0);
        CHECK(log->of_kind(OpKind::exit).size() == 1);
    }
    SUBCASE("CRLF and empty lines") {
        StraceImported log("12 1795198645.000001 " + call + " <0.000001>\r\n\n\r\n");
        CHECK(log->op_count() == 1);
    }
}

TEST_CASE("strace: unfinished and resumed") {
    SUBCASE("other calls between the halves") {
        StraceImported log(
            "10 1700000000.000001 openat(AT_FDCWD, \"/a\", O_RDONLY <unfinished ...>\n"
            "11 1700000000.000002 stat(\"/x\",  <unfinished ...>\n"
            "10 1700000000.000005 <... openat resumed>) = 3 <0.000004>\n"
            "10 1700000000.000006 read(3,  <unfinished ...>\n"
            "11 1700000000.000007 <... stat resumed>{st_mode=S_IFREG|0644, st_size=5, ...}) = 0 <0.000005>\n"
            "10 1700000000.000009 <... read resumed> \"abc\", 100) = 3 <0.000003>\n");  // old: blank behind resumed>
        CHECK(log->op_count() == 3);
        CHECK(log->file("/x").size == 5);
        const Op read = log->of_kind(OpKind::read).at(0);
        CHECK(read.begin == 5000);
        CHECK(read.duration == 3000);
        CHECK(read.size == 100);
    }
    SUBCASE("without -T the halves give the duration") {
        StraceImported log(
            "10 1700000000.000001 openat(AT_FDCWD, \"/a\", O_RDONLY <unfinished ...>\n"
            "11 1700000000.000002 sync() = 0\n"
            "10 1700000000.000005 <... openat resumed>) = 3\n");
        CHECK(log->of_kind(OpKind::open).at(0).duration == 4000);
        CHECK(log->counter("durations_unknown") == 1);
    }
    SUBCASE("a close frees its number when it begins") {
        StraceImported log(
            "10 1700000000.000001 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3 <0.000001>\n"
            "10 1700000000.000002 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, exit_signal=0}, 88) = 11 "
            "<0.000001>\n"
            "10 1700000000.000003 close(3 <unfinished ...>\n"
            "11 1700000000.000004 openat(AT_FDCWD, \"/b\", O_RDONLY) = 3 <0.000001>\n"
            "11 1700000000.000005 read(3, \"x\", 1) = 1 <0.000001>\n"
            "10 1700000000.000006 <... close resumed>) = 0 <0.000003>\n"
            "11 1700000000.000007 read(3, \"y\", 1) = 1 <0.000001>\n");
        const auto reads = log->of_kind(OpKind::read);
        REQUIRE(reads.size() == 2);
        CHECK(log->path_of(reads[0]) == "/b");
        CHECK(log->path_of(reads[1]) == "/b");
        CHECK(log->path_of(log->of_kind(OpKind::close).at(0)) == "/a");
        CHECK(log->counter("descriptors_adopted") == 0);
    }
    SUBCASE("a child runs before its parent's fork returns") {
        StraceImported log(
            "10 1700000000.000001 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3 <0.000001>\n"
            "10 1700000000.000002 vfork( <unfinished ...>\n"
            "11 1700000000.000003 read(3, \"x\", 1) = 1 <0.000001>\n"
            "11 1700000000.000004 execve(\"/bin/true\", [\"true\"], 0x7f /* 1 var */) = 0 <0.000001>\n"
            "10 1700000000.000005 <... vfork resumed>) = 11 <0.000003>\n"
            "10 1700000000.000006 read(3, \"y\", 1) = 1 <0.000001>\n"
            "11 1700000000.000007 exit_group(1) = ?\n"
            "11 1700000000.000008 +++ exited with 1 +++\n"
            "10 1700000000.000009 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=11, si_status=1} ---\n"
            "10 1700000000.000010 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 1}], 0, NULL) = 11 <0.000001>\n");
        CHECK(log->tables().processes.size() == 3);
        CHECK(log->tables().processes[2].parent == 1);
        CHECK(log->ops(2).at(0).offset == 0);
        CHECK(log->ops(1).at(2).offset == 1);
        CHECK(log->of_kind(OpKind::join).at(0).peer == 2);
        CHECK(log->of_kind(OpKind::spawn).at(0).peer == 2);
        CHECK(log->of_kind(OpKind::exit).at(0).arg == 1);
    }
    SUBCASE("interrupted, restarted, killed") {
        StraceImported log(
            "10 1700000000.000001 pipe([3, 4]) = 0 <0.000001>\n"
            "10 1700000000.000002 read(3, 0x7ffe, 10) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) "
            "<0.000005>\n"
            "10 1700000000.000008 --- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_USER, si_pid=1, si_uid=0} ---\n"
            "10 1700000000.000009 read(3, \"abc\", 10) = 3 <0.000001>\n"
            "11 1700000000.000010 futex(0x7f, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>\n"
            "12 1700000000.000011 read(3,  <unfinished ...>\n"
            "10 1700000000.000012 exit_group(0) = ?\n"
            "11 1700000000.000013 <... futex resumed> <unfinished ...>) = ?\n"
            "12 1700000000.000014 +++ killed by SIGKILL +++\n"
            "11 1700000000.000014 +++ exited with 0 +++\n"
            "10 1700000000.000015 +++ exited with 0 +++\n");
        CHECK(log->counter("unrecognized_lines") == 0);
        CHECK(log->of_kind(OpKind::receive).size() == 1);
        CHECK(log->counter("calls_restarted") == 1);
        CHECK(log->counter("lines_without_second_half") == 1);
        CHECK(log->of_kind(OpKind::exit).size() == 3);
        std::vector<int64_t> codes;
        for (const Op& op : log->of_kind(OpKind::exit)) {
            codes.push_back(op.arg);
            CHECK(op.result == (op.arg == 137 ? -4 : 0));
        }
        CHECK(std::count(codes.begin(), codes.end(), 137) == 1);
        CHECK(log->of_kind(OpKind::wait).size() == 2);
    }
    SUBCASE("halves that belong to nothing, and a file cut in the middle") {
        StraceImported log(
            "10 1700000000.000001 <... read resumed>\"a\", 1) = 1 <0.000001>\n"
            "10 1700000000.000002 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3 <0.000001>\n"
            "10 1700000000.000003 close(3 <unfinished ...>\n"
            "11 1700000000.000004 stat(\"/b\", {st_mode=S_IFREG|0644, st_s");
        CHECK(log->counter("lines_without_first_half") == 1);
        CHECK(log->counter("lines_without_second_half") == 1);
        CHECK(log->counter("inputs_cut") == 1);
        CHECK(log->of_kind(OpKind::close).size() == 1);
    }
}

TEST_CASE("strace: several files of -ff are one run in the order of effects") {
    StraceImported log(std::vector<std::pair<std::string, std::string>>{
        {"t.101", "1700000000.000010 read(3, \"b\", 5) = 5 <0.000001>\n1700000000.000013 +++ exited with 0 +++\n"},
        {"t.100",
         "1700000000.000001 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3 <0.000001>\n"
         "1700000000.000003 fork() = 101 <0.000002>\n"
         "1700000000.000011 read(3, \"c\", 5) = 5 <0.000009>\n"
         "1700000000.000021 openat(AT_FDCWD, \"/b\", O_RDONLY) = 4 <0.000001>\n"},
    });
    CHECK(log->tables().tasks.size() == 3);
    CHECK(log->tables().tasks[1].tid == 100);
    CHECK(log->ops(2).at(0).offset == 0);
    CHECK(log->ops(1).at(2).offset == 5);
    CHECK(log->counter("descriptors_adopted") == 0);

    StraceImported midnight(std::vector<std::pair<std::string, std::string>>{
        {"t.7", "23:59:59.000000 fork() = 8 <0.000002>\n00:00:01.000000 sync() = 0 <0.000001>\n"},
        {"t.8", "00:00:00.000000 sync() = 0 <0.000001>\n"},
    });
    CHECK(midnight->ops(2).at(0).begin == 1'000'000'000);
    CHECK(midnight->ops(1).at(1).begin == 2'000'000'000);
}

TEST_CASE("strace: a log and its copy are refused, two tasks that say the same are not") {
    const std::string lines = strace_lines({R"(openat(AT_FDCWD, "/d/a", O_RDONLY) = 3)"});
    const auto both = [](std::string a, std::string b, std::string of_a, std::string of_b) {
        try {
            StraceImported log({{std::move(a), std::move(of_a)}, {std::move(b), std::move(of_b)}});
            return std::string();
        } catch (const Error& error) {
            return std::string(error.what());
        }
    };
    CHECK(both("job.strace", "copy.strace", lines, lines).find("is a copy of") != std::string::npos);
    CHECK(both("t.7", "t.7.bak", lines, lines).find("is a copy of") != std::string::npos);
    std::string other = lines;
    other[other.find("/d/a") + 3] = 'b';
    CHECK(both("job.strace", "copy.strace", lines, other).empty());
    const std::string end = "1700000000.000013 sync() = 0 <0.000001>\n";
    CHECK(both("t.7", "t.8", end, end).empty());
}

TEST_CASE("strace: names of descriptors lead to the files that they were opened on") {
    StraceImported log(strace_lines({
        R"(openat(AT_FDCWD</w>, "/d/a", O_RDONLY) = 3</d/a>)",
        R"(dup2(3</d/a>, 0) = 0</d/a>)",
        R"(openat(AT_FDCWD</w>, "/dev/stdin", O_RDONLY) = 4</d/a>)",
        R"(read(4</d/a>, "x"..., 100) = 100)",
        R"(openat(AT_FDCWD</w>, "/dev/stderr", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 5</w/e.sum>)",
        R"(write(5</w/e.sum>, "x", 1) = 1)",
        R"(openat(AT_FDCWD</w>, "/proc/self/cwd/b", O_RDONLY) = 6</w/b>)",
        R"(read(6</w/b>, "x"..., 50) = 50)",
        R"(openat(AT_FDCWD</w>, "/dev/fd/7", O_RDONLY) = 8<pipe:[9]>)",
    }));
    const auto opens = log->of_kind(OpKind::open);
    REQUIRE(opens.size() == 5);
    CHECK(log->path_of(opens[1]) == "/d/a");
    CHECK(log->path_of(opens[2]) == "/w/e.sum");
    CHECK(log->path_of(opens[3]) == "/w/b");
    CHECK(log->path_of(opens[4]) == "/dev/fd/7");
    CHECK(log->file("/d/a").role == Role::dataset);
    CHECK(log->file("/w/b").role == Role::dataset);
    CHECK(log->file("/w/e.sum").role != Role::system);
    // Without descriptions, by the table of descriptors.
    StraceImported plain(strace_lines({
        R"(openat(AT_FDCWD, "/d/a", O_RDONLY) = 3)",
        R"(dup2(3, 0) = 0)",
        R"(openat(AT_FDCWD, "/dev/stdin", O_RDONLY) = 4)",
        R"(read(4, "x"..., 100) = 100)",
    }));
    CHECK(plain->path_of(plain->of_kind(OpKind::open).at(1)) == "/d/a");
    CHECK(plain->files("/dev/stdin").empty());
}

TEST_CASE("strace: strings with escapes, newlines and bytes that are not UTF-8") {
    StraceImported log(strace_lines({
        R"(openat(AT_FDCWD, "/d/new\nline\ttab\"quote\\back", O_RDONLY) = 3)",
        R"(openat(AT_FDCWD, "/d/\303\251\377\0011", O_RDONLY) = 4)",
        R"(openat(AT_FDCWD, "\x2f\x64\x2f\x78\xff", O_RDONLY) = 5)",
        R"(openat(AT_FDCWD, "/d/a, b) = 7 <c>", O_RDONLY) = 6</d/a, b) = 7 \74c\76>)",
        R"(read(6</d/a, b) = 7 \74c\76>, "x", 9) = 1)",
        R"(read(3</d/new\nline\ttab"quote\\back>, "x", 9) = 1)",
        R"(stat("/d/very long"..., 0x7f) = -1 ENAMETOOLONG (File name too long))",
        R"(stat(0x7fff, 0x7f) = -1 EFAULT (Bad address))",
        R"(stat("", 0x7f) = -1 ENOENT (No such file or directory))",
        "openat(AT_FDCWD, \"/d/raw\xff\x80\", O_RDONLY) = 7",
    }));
    const auto opens = log->of_kind(OpKind::open);
    REQUIRE(opens.size() == 5);
    CHECK(log->path_of(opens[0]) == "/d/new\nline\ttab\"quote\\back");
    CHECK(log->path_of(opens[1]) ==
          "/d/\303\251\377\001"
          "1");
    CHECK(log->path_of(opens[2]) == "/d/x\xff");
    CHECK(log->path_of(opens[3]) == "/d/a, b) = 7 <c>");
    CHECK(log->path_of(opens[4]) == "/d/raw\xff\x80");
    CHECK(log->of_kind(OpKind::read).at(0).handle == opens[3].handle);
    CHECK(log->of_kind(OpKind::read).at(1).handle == opens[0].handle);
    CHECK(log->counter("paths_abbreviated") == 1);
    CHECK(log->counter("calls_with_unreadable_paths") == 1);
    CHECK(log->counter("unrecognized_lines") == 0);
}

TEST_CASE("strace: numbers beyond 64 bits and unknown names are counted, not fatal") {
    StraceImported log(strace_lines({
        R"(openat(AT_FDCWD, "/a", O_RDONLY|O_NEWFLAG) = 3)",
        R"(pread64(3, "x", 18446744073709551615, 99999999999999999999999) = 1)",
        R"(read(3, "x", 1) = 99999999999999999999999999)",
        R"(lseek(3, -99999999999999999999, SEEK_SET) = -1 EWHATEVER (Strange))",
        R"(close(99999999999) = -1 EBADF (Bad file descriptor))",
        R"(mmap(NULL, 0xffffffffffffffffffff, PROT_READ, MAP_SHARED, 3, 0) = 0xfffffffffffff000)",
        R"(stat("/b", {st_mode=S_IFREG|0644, st_size=18446744073709551615, ...}) = 0)",
        R"(newcall(1, 2) = 0)",
        R"(ioctl(3, BTRFS_IOC, 1) = -1 ENOTTY (Inappropriate ioctl for device))",
    }));
    CHECK(log->counter("symbols_unknown") == 1);
    CHECK(log->counter("numbers_too_large") >= 6);
    CHECK(log->counter("errors_unknown") == 1);
    CHECK(log->counter("dropped_newcall") == 1);
    CHECK(log->of_kind(OpKind::lseek).at(0).result == -5);
    CHECK(log->of_kind(OpKind::pread).at(0).size == INT64_MAX);
}

TEST_CASE("strace: bad lines are counted with the first one's place") {
    StraceImported log(
        "10 1700000000.000001 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3 <0.000001>\n"
        "Epoch 1: loss 0.5\n"
        "main() failed\n"
        "10 1700000000.000002 read(3, \"unterminated) = 5\n"
        "10 1700000000.000003 read(3</never/ends, 5) = 5\n"
        "10 1700000000.000004 read(3, \"x\", 1) = what <0.000001>\n"
        "10 1700000000.000005 close(3) = 0 <0.000001>\n");
    CHECK(log->counter("unrecognized_lines") == 5);
    CHECK(log->op_count() == 2);
    bool told = false;
    for (const Counter& c : log->tables().counters) {
        told |= c.name == "unrecognized_lines" && c.meaning.find("t.strace:2") != std::string::npos &&
                c.severity == Severity::warning;
    }
    CHECK(told);
}

TEST_CASE("strace: a last line without a newline was cut") {
    const std::string whole =
        "10 1700000000.000001 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3</a> <0.000001>\n"
        "11 1700000000.000002 read(3</a>, \"x\", 4096) = 4096 <0.000001>\n";
    const auto ops_of = [](const std::string& text, uint64_t cut) {
        StraceImported log(text);
        CHECK(log->counter("inputs_cut") == cut);
        return log->op_count();
    };
    // All of 16384 came; a file with 16 bytes of result says otherwise.
    CHECK(ops_of(whole + "10 1700000000.000003 read(3</a>, \"x\"..., 16384) = 16", 1) == 2);
    CHECK(ops_of(whole + "10 1700000000.000003 read(3</a>, \"x\"..., 16384) = 16\n", 0) == 3);
    CHECK(ops_of(whole + "10 1700000000.000003 read(3</a>, \"x\"..., 16384) = 16 <0.000001>", 0) == 3);
    CHECK(ops_of(whole + "10 1700000000.000003 +++ exited with 0 +++", 0) == 3);
}

TEST_CASE("strace: a log in which nothing ends may be cut") {
    const std::string line = "10 1700000000.000001 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3</a> <0.000001>\n";
    CHECK(StraceImported(line)->counter("exits_missing") == 1);
    CHECK(StraceImported(line + "11 1700000000.000002 close(5) = 0 <0.000001>\n")->counter("exits_missing") == 2);
    CHECK(StraceImported(line + "10 1700000000.000002 exit_group(0) = ?\n")->counter("exits_missing") == 0);
    CHECK(StraceImported(line + "10 1700000000.000002 +++ killed by SIGKILL +++\n")->counter("exits_missing") == 0);
}

TEST_CASE("strace: what cannot be imported at all") {
    CHECK(strace_error("").find("no line is a call") != std::string::npos);
    CHECK(strace_error("hello\nworld\n").find("t.strace:1: no line is a call") != std::string::npos);
    CHECK(strace_error("10 close(3) = 0 <0.000001>\n").find("no time stamp") != std::string::npos);
    CHECK(strace_error("close(3) = 0\n").find("no time stamp") != std::string::npos);
    CHECK(strace_error("10      0.000012 close(3) = 0\n").find("strace -r") != std::string::npos);
    CHECK(strace_error("10 1700000000.000001 close(\n").find("no line is a call") != std::string::npos);
    const std::string binary("\0\1\2\3\377\n\0\0", 8);
    CHECK(strace_error(binary).find("no line is a call") != std::string::npos);
    TempDir dir;
    write_file(dir / "a.1", "1700000000.000001 sync() = 0 <0.000001>\n");
    write_file(dir / "a.2", "10:00:00.000001 sync() = 0 <0.000001>\n");
    const std::vector<std::filesystem::path> paths = {dir / "a.1", dir / "a.2"};
    CHECK_THROWS_AS(import_strace.import(paths, dir / "o.oplog", {}), Error);
    CHECK_FALSE(std::filesystem::exists(dir / "o.oplog"));
    CHECK_FALSE(std::filesystem::exists(dir / "o.oplog.partial"));
}

TEST_CASE("strace: sniffing") {
    CHECK(import_strace.sniff("8861  1795198645.707261 execve(\"/p\", [\"p\"], 0x7f /* 41 vars */) = 0 <0.000173>\n"));
    CHECK(import_strace.sniff("10:00:00 close(3) = 0\n"));
    CHECK(import_strace.sniff("10 close(3) = 0\n"));  // then refused with the reason
    CHECK_FALSE(import_strace.sniff("fio version 3 iolog\n1 /a add\n"));
    CHECK_FALSE(import_strace.sniff("[\n{\"id\":\"0\",\"name\":\"read\",\"ph\":\"X\"}\n"));
    CHECK_FALSE(import_strace.sniff("# DXT, file_id: 1, file_name: /a\n X_POSIX 0 write 0 0 10 0.1 0.2\n"));
    CHECK_FALSE(import_strace.sniff("#include <stdio.h>\nint main() { return f(3); }\n"));
    CHECK_FALSE(import_strace.sniff(""));
}

}  // namespace reprise::test

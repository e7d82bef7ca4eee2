// SPDX-License-Identifier: MIT
// The kernel's constants by name, both ways: the one table of them, what strace writes and what `reprise dump` prints.
#include "formats/oplog/kernel_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <span>
#include <unordered_map>
#include <vector>

#include "formats/oplog/op_fields.h"
#include "formats/support/escape.h"

namespace reprise {
namespace {

struct Symbol {
    std::string_view name;
    int64_t value;
};
using Symbols = std::span<const Symbol>;

// As the kernel defines them on x86-64 and, but for a few O_* flags, everywhere else. Names of several bits stand
// before those of their parts, other names of the same bits after the one to print.
constexpr Symbol kOpenFlags[] = {
    {"O_RDONLY", 0},         {"O_WRONLY", 0x1},        {"O_RDWR", 0x2},         {"O_SYNC", 0x101000},
    {"O_TMPFILE", 0x410000}, {"O_CREAT", 0x40},        {"O_EXCL", 0x80},        {"O_NOCTTY", 0x100},
    {"O_TRUNC", 0x200},      {"O_APPEND", 0x400},      {"O_NONBLOCK", 0x800},   {"O_NDELAY", 0x800},
    {"O_DSYNC", 0x1000},     {"O_RSYNC", 0x101000},    {"O_ASYNC", 0x2000},     {"FASYNC", 0x2000},
    {"O_DIRECT", 0x4000},    {"O_DIRECTORY", 0x10000}, {"O_NOFOLLOW", 0x20000}, {"O_NOATIME", 0x40000},
    {"O_CLOEXEC", 0x80000},  {"O_PATH", 0x200000},     {"O_LARGEFILE", 0x8000},
};
constexpr Symbol kDescriptorFlags[] = {
    {"FD_CLOEXEC", 0x1},
};
constexpr Symbol kFcntlCommands[] = {
    {"F_DUPFD", 0},
    {"F_GETFD", 0x1},
    {"F_SETFD", 0x2},
    {"F_GETFL", 0x3},
    {"F_SETFL", 0x4},
    {"F_GETLK", 0x5},
    {"F_SETLK", 0x6},
    {"F_SETLKW", 0x7},
    {"F_SETOWN", 0x8},
    {"F_GETOWN", 0x9},
    {"F_SETSIG", 0xa},
    {"F_GETSIG", 0xb},
    {"F_SETOWN_EX", 0xf},
    {"F_GETOWN_EX", 0x10},
    {"F_OFD_GETLK", 0x24},
    {"F_OFD_SETLK", 0x25},
    {"F_OFD_SETLKW", 0x26},
    {"F_SETLEASE", 0x400},
    {"F_GETLEASE", 0x401},
    {"F_NOTIFY", 0x402},
    {"F_DUPFD_CLOEXEC", 0x406},
    {"F_SETPIPE_SZ", 0x407},
    {"F_GETPIPE_SZ", 0x408},
    {"F_ADD_SEALS", 0x409},
    {"F_GET_SEALS", 0x40a},
    {"F_GET_RW_HINT", 0x40b},
    {"F_SET_RW_HINT", 0x40c},
    {"F_GET_FILE_RW_HINT", 0x40d},
    {"F_SET_FILE_RW_HINT", 0x40e},
};
constexpr Symbol kAtFlags[] = {
    {"AT_EACCESS", 0x200},          {"AT_STATX_FORCE_SYNC", 0x2000}, {"AT_STATX_DONT_SYNC", 0x4000},
    {"AT_SYMLINK_NOFOLLOW", 0x100}, {"AT_REMOVEDIR", 0x200},         {"AT_SYMLINK_FOLLOW", 0x400},
    {"AT_NO_AUTOMOUNT", 0x800},     {"AT_EMPTY_PATH", 0x1000},       {"AT_STATX_SYNC_TYPE", 0x6000},
    {"AT_RECURSIVE", 0x8000},
};
constexpr Symbol kStatxMasks[] = {
    {"STATX_ALL", 0xfff},    {"STATX_BASIC_STATS", 0x7ff}, {"STATX_TYPE", 0x1},      {"STATX_MODE", 0x2},
    {"STATX_NLINK", 0x4},    {"STATX_UID", 0x8},           {"STATX_GID", 0x10},      {"STATX_ATIME", 0x20},
    {"STATX_MTIME", 0x40},   {"STATX_CTIME", 0x80},        {"STATX_INO", 0x100},     {"STATX_SIZE", 0x200},
    {"STATX_BLOCKS", 0x400}, {"STATX_BTIME", 0x800},       {"STATX_MNT_ID", 0x1000}, {"STATX_DIOALIGN", 0x2000},
};
constexpr Symbol kAccessModes[] = {
    {"F_OK", 0},
    {"R_OK", 0x4},
    {"W_OK", 0x2},
    {"X_OK", 0x1},
};
constexpr Symbol kFileModes[] = {
    {"S_IFMT", 0xf000},  {"S_IFSOCK", 0xc000}, {"S_IFLNK", 0xa000}, {"S_IFREG", 0x8000},
    {"S_IFBLK", 0x6000}, {"S_IFDIR", 0x4000},  {"S_IFCHR", 0x2000}, {"S_IFIFO", 0x1000},
    {"S_ISUID", 0x800},  {"S_ISGID", 0x400},   {"S_ISVTX", 0x200},
};
constexpr Symbol kQuestions[] = {{"TCGETS", kAskTerminal}, {"TCGETS2", kAskTerminal2}};
constexpr Symbol kWhence[] = {
    {"SEEK_SET", 0}, {"SEEK_CUR", 0x1}, {"SEEK_END", 0x2}, {"SEEK_DATA", 0x3}, {"SEEK_HOLE", 0x4},
};
constexpr Symbol kProtections[] = {
    {"PROT_NONE", 0},
    {"PROT_READ", 0x1},
    {"PROT_WRITE", 0x2},
    {"PROT_EXEC", 0x4},
    {"PROT_GROWSDOWN", 0x1000000},
    {"PROT_GROWSUP", 0x2000000},
};
constexpr Symbol kMapFlags[] = {
    {"MAP_SHARED_VALIDATE", 0x3}, {"MAP_SHARED", 0x1},       {"MAP_PRIVATE", 0x2},
    {"MAP_FIXED", 0x10},          {"MAP_ANONYMOUS", 0x20},   {"MAP_ANON", 0x20},
    {"MAP_32BIT", 0x40},          {"MAP_GROWSDOWN", 0x100},  {"MAP_DENYWRITE", 0x800},
    {"MAP_EXECUTABLE", 0x1000},   {"MAP_LOCKED", 0x2000},    {"MAP_NORESERVE", 0x4000},
    {"MAP_POPULATE", 0x8000},     {"MAP_NONBLOCK", 0x10000}, {"MAP_STACK", 0x20000},
    {"MAP_HUGETLB", 0x40000},     {"MAP_SYNC", 0x80000},     {"MAP_FIXED_NOREPLACE", 0x100000},
};
constexpr Symbol kMremapFlags[] = {
    {"MREMAP_MAYMOVE", 0x1},
    {"MREMAP_FIXED", 0x2},
    {"MREMAP_DONTUNMAP", 0x4},
};
constexpr Symbol kMsyncFlags[] = {
    {"MS_ASYNC", 0x1},
    {"MS_INVALIDATE", 0x2},
    {"MS_SYNC", 0x4},
};
constexpr Symbol kMemoryAdvice[] = {
    {"MADV_NORMAL", 0},
    {"MADV_RANDOM", 0x1},
    {"MADV_SEQUENTIAL", 0x2},
    {"MADV_WILLNEED", 0x3},
    {"MADV_DONTNEED", 0x4},
    {"MADV_FREE", 0x8},
    {"MADV_REMOVE", 0x9},
    {"MADV_DONTFORK", 0xa},
    {"MADV_DOFORK", 0xb},
    {"MADV_HWPOISON", 0x64},
    {"MADV_SOFT_OFFLINE", 0x65},
    {"MADV_COLLAPSE", 0x19},
    {"MADV_MERGEABLE", 0xc},
    {"MADV_UNMERGEABLE", 0xd},
    {"MADV_HUGEPAGE", 0xe},
    {"MADV_NOHUGEPAGE", 0xf},
    {"MADV_DONTDUMP", 0x10},
    {"MADV_DODUMP", 0x11},
    {"MADV_WIPEONFORK", 0x12},
    {"MADV_KEEPONFORK", 0x13},
    {"MADV_COLD", 0x14},
    {"MADV_PAGEOUT", 0x15},
    {"MADV_POPULATE_READ", 0x16},
    {"MADV_POPULATE_WRITE", 0x17},
    {"MADV_DONTNEED_LOCKED", 0x18},
};
constexpr Symbol kFileAdvice[] = {
    {"POSIX_FADV_NORMAL", 0},     {"POSIX_FADV_RANDOM", 0x1},   {"POSIX_FADV_SEQUENTIAL", 0x2},
    {"POSIX_FADV_WILLNEED", 0x3}, {"POSIX_FADV_DONTNEED", 0x4}, {"POSIX_FADV_NOREUSE", 0x5},
};
constexpr Symbol kDataFlags[] = {
    {"RWF_HIPRI", 0x1},  {"RWF_DSYNC", 0x2},   {"RWF_SYNC", 0x4},
    {"RWF_NOWAIT", 0x8}, {"RWF_APPEND", 0x10}, {"FRESH_MEMORY", kFreshMemory},
};
constexpr Symbol kFallocateModes[] = {
    {"FALLOC_FL_KEEP_SIZE", 0x1},      {"FALLOC_FL_PUNCH_HOLE", 0x2},  {"FALLOC_FL_NO_HIDE_STALE", 0x4},
    {"FALLOC_FL_COLLAPSE_RANGE", 0x8}, {"FALLOC_FL_ZERO_RANGE", 0x10}, {"FALLOC_FL_INSERT_RANGE", 0x20},
    {"FALLOC_FL_UNSHARE_RANGE", 0x40},
};
constexpr Symbol kSyncFileRangeFlags[] = {
    {"SYNC_FILE_RANGE_WAIT_BEFORE", 0x1},
    {"SYNC_FILE_RANGE_WRITE", 0x2},
    {"SYNC_FILE_RANGE_WAIT_AFTER", 0x4},
};
constexpr Symbol kSpliceFlags[] = {
    {"SPLICE_F_MOVE", 0x1}, {"SPLICE_F_NONBLOCK", 0x2},       {"SPLICE_F_MORE", 0x4},
    {"SPLICE_F_GIFT", 0x8}, {"FROM_OFFSET", kCopyFromOffset}, {"TO_OFFSET", kCopyToOffset},
};
// The kernel has none of copy_file_range.
constexpr Symbol kCopyFlags[] = {
    {"FROM_OFFSET", kCopyFromOffset},
    {"TO_OFFSET", kCopyToOffset},
    {"CLONE", kCopyClones},
};
constexpr Symbol kLockCommands[] = {
    {"LOCK_SH", 0x1},
    {"LOCK_EX", 0x2},
    {"LOCK_NB", 0x4},
    {"LOCK_UN", 0x8},
};
constexpr Symbol kMemoryLocks[] = {
    {"MCL_CURRENT", 0x1},
    {"MCL_FUTURE", 0x2},
    {"MCL_ONFAULT", 0x4},
    {"MLOCK_ONFAULT", 0x1},
};
constexpr Symbol kRenameFlags[] = {
    {"RENAME_NOREPLACE", 0x1},
    {"RENAME_EXCHANGE", 0x2},
    {"RENAME_WHITEOUT", 0x4},
};
constexpr Symbol kCloseRangeFlags[] = {
    {"CLOSE_RANGE_UNSHARE", 0x2},
    {"CLOSE_RANGE_CLOEXEC", 0x4},
};
constexpr Symbol kXattrFlags[] = {
    {"XATTR_CREATE", 0x1},
    {"XATTR_REPLACE", 0x2},
};
constexpr Symbol kSocketTypes[] = {
    {"SOCK_STREAM", 0x1}, {"SOCK_DGRAM", 0x2},       {"SOCK_SEQPACKET", 0x5},
    {"SOCK_RAW", 0x3},    {"SOCK_CLOEXEC", 0x80000}, {"SOCK_NONBLOCK", 0x800},
};
constexpr Symbol kEventfdFlags[] = {
    {"EFD_CLOEXEC", 0x80000},
    {"EFD_NONBLOCK", 0x800},
    {"EFD_SEMAPHORE", 0x1},
};
constexpr Symbol kOtherFlags[] = {
    {"EPOLL_CLOEXEC", 0x80000}, {"TFD_CLOEXEC", 0x80000},     {"TFD_NONBLOCK", 0x800},
    {"SFD_CLOEXEC", 0x80000},   {"SFD_NONBLOCK", 0x800},      {"IN_CLOEXEC", 0x80000},
    {"IN_NONBLOCK", 0x800},     {"AT_STATX_SYNC_AS_STAT", 0}, {"AT_FDCWD", -100},
};
constexpr Symbol kMemfdFlags[] = {
    {"MFD_CLOEXEC", 0x1},
    {"MFD_ALLOW_SEALING", 0x2},
    {"MFD_HUGETLB", 0x4},
};
constexpr Symbol kMessageFlags[] = {
    {"MSG_OOB", 0x1},
    {"MSG_PEEK", 0x2},
    {"MSG_DONTROUTE", 0x4},
    {"MSG_CTRUNC", 0x8},
    {"MSG_TRUNC", 0x20},
    {"MSG_DONTWAIT", 0x40},
    {"MSG_EOR", 0x80},
    {"MSG_WAITALL", 0x100},
    {"MSG_NOSIGNAL", 0x4000},
    {"MSG_MORE", 0x8000},
    {"MSG_CMSG_CLOEXEC", 0x40000000},
    {"MSG_ZEROCOPY", 0x4000000},
};
constexpr Symbol kRingEnterFlags[] = {
    {"IORING_ENTER_GETEVENTS", 0x1},
    {"IORING_ENTER_SQ_WAKEUP", 0x2},
    {"IORING_ENTER_SQ_WAIT", 0x4},
    {"IORING_ENTER_EXT_ARG", 0x8},
};
constexpr Symbol kCloneFlags[] = {
    {"CLONE_VM", 0x100},
    {"CLONE_FS", 0x200},
    {"CLONE_FILES", 0x400},
    {"CLONE_SIGHAND", 0x800},
    {"CLONE_PIDFD", 0x1000},
    {"CLONE_PTRACE", 0x2000},
    {"CLONE_VFORK", 0x4000},
    {"CLONE_PARENT", 0x8000},
    {"CLONE_THREAD", 0x10000},
    {"CLONE_NEWNS", 0x20000},
    {"CLONE_SYSVSEM", 0x40000},
    {"CLONE_SETTLS", 0x80000},
    {"CLONE_PARENT_SETTID", 0x100000},
    {"CLONE_CHILD_CLEARTID", 0x200000},
    {"CLONE_DETACHED", 0x400000},
    {"CLONE_UNTRACED", 0x800000},
    {"CLONE_CHILD_SETTID", 0x1000000},
    {"CLONE_NEWCGROUP", 0x2000000},
    {"CLONE_NEWUTS", 0x4000000},
    {"CLONE_NEWIPC", 0x8000000},
    {"CLONE_NEWUSER", 0x10000000},
    {"CLONE_NEWPID", 0x20000000},
    {"CLONE_NEWNET", 0x40000000},
    {"CLONE_IO", 0x80000000},
    {"CLONE_CLEAR_SIGHAND", 0x100000000},
    {"CLONE_INTO_CGROUP", 0x200000000},
};
constexpr Symbol kSignals[] = {
    {"SIGHUP", 0x1},     {"SIGINT", 0x2},   {"SIGQUIT", 0x3},   {"SIGILL", 0x4},   {"SIGTRAP", 0x5},
    {"SIGABRT", 0x6},    {"SIGBUS", 0x7},   {"SIGFPE", 0x8},    {"SIGKILL", 0x9},  {"SIGUSR1", 0xa},
    {"SIGSEGV", 0xb},    {"SIGUSR2", 0xc},  {"SIGPIPE", 0xd},   {"SIGALRM", 0xe},  {"SIGTERM", 0xf},
    {"SIGSTKFLT", 0x10}, {"SIGCHLD", 0x11}, {"SIGCONT", 0x12},  {"SIGSTOP", 0x13}, {"SIGTSTP", 0x14},
    {"SIGTTIN", 0x15},   {"SIGTTOU", 0x16}, {"SIGURG", 0x17},   {"SIGXCPU", 0x18}, {"SIGXFSZ", 0x19},
    {"SIGVTALRM", 0x1a}, {"SIGPROF", 0x1b}, {"SIGWINCH", 0x1c}, {"SIGIO", 0x1d},   {"SIGPWR", 0x1e},
    {"SIGSYS", 0x1f},
};
constexpr Symbol kRingOps[] = {
    {"IORING_OP_NOP", 0},
    {"IORING_OP_READV", 1},
    {"IORING_OP_WRITEV", 2},
    {"IORING_OP_FSYNC", 3},
    {"IORING_OP_READ_FIXED", 4},
    {"IORING_OP_WRITE_FIXED", 5},
    {"IORING_OP_POLL_ADD", 6},
    {"IORING_OP_POLL_REMOVE", 7},
    {"IORING_OP_SYNC_FILE_RANGE", 8},
    {"IORING_OP_SENDMSG", 9},
    {"IORING_OP_RECVMSG", 10},
    {"IORING_OP_TIMEOUT", 11},
    {"IORING_OP_TIMEOUT_REMOVE", 12},
    {"IORING_OP_ACCEPT", 13},
    {"IORING_OP_ASYNC_CANCEL", 14},
    {"IORING_OP_LINK_TIMEOUT", 15},
    {"IORING_OP_CONNECT", 16},
    {"IORING_OP_FALLOCATE", 17},
    {"IORING_OP_OPENAT", 18},
    {"IORING_OP_CLOSE", 19},
    {"IORING_OP_FILES_UPDATE", 20},
    {"IORING_OP_STATX", 21},
    {"IORING_OP_READ", 22},
    {"IORING_OP_WRITE", 23},
    {"IORING_OP_FADVISE", 24},
    {"IORING_OP_MADVISE", 25},
    {"IORING_OP_SEND", 26},
    {"IORING_OP_RECV", 27},
    {"IORING_OP_OPENAT2", 28},
    {"IORING_OP_EPOLL_CTL", 29},
    {"IORING_OP_SPLICE", 30},
    {"IORING_OP_PROVIDE_BUFFERS", 31},
    {"IORING_OP_REMOVE_BUFFERS", 32},
    {"IORING_OP_TEE", 33},
    {"IORING_OP_SHUTDOWN", 34},
    {"IORING_OP_RENAMEAT", 35},
    {"IORING_OP_UNLINKAT", 36},
    {"IORING_OP_MKDIRAT", 37},
    {"IORING_OP_SYMLINKAT", 38},
    {"IORING_OP_LINKAT", 39},
    {"IORING_OP_MSG_RING", 40},
    {"IORING_OP_FSETXATTR", 41},
    {"IORING_OP_SETXATTR", 42},
    {"IORING_OP_FGETXATTR", 43},
    {"IORING_OP_GETXATTR", 44},
    {"IORING_OP_SOCKET", 45},
    {"IORING_OP_URING_CMD", 46},
    {"IORING_OP_SEND_ZC", 47},
    {"IORING_OP_SENDMSG_ZC", 48},
};
constexpr Symbol kRingRequestFlags[] = {
    {"IOSQE_FIXED_FILE", 0x1},        {"IOSQE_IO_DRAIN", 0x2}, {"IOSQE_IO_LINK", 0x4},
    {"IOSQE_IO_HARDLINK", 0x8},       {"IOSQE_ASYNC", 0x10},   {"IOSQE_BUFFER_SELECT", 0x20},
    {"IOSQE_CQE_SKIP_SUCCESS", 0x40},
};
constexpr Symbol kAioCommands[] = {
    {"IOCB_CMD_PREAD", 0}, {"IOCB_CMD_PWRITE", 1}, {"IOCB_CMD_FSYNC", 2},  {"IOCB_CMD_FDSYNC", 3},
    {"IOCB_CMD_POLL", 5},  {"IOCB_CMD_NOOP", 6},   {"IOCB_CMD_PREADV", 7}, {"IOCB_CMD_PWRITEV", 8},
};
constexpr Symbols kGroups[] = {
    kOpenFlags,   kDescriptorFlags, kFcntlCommands, kAtFlags,          kStatxMasks,      kAccessModes,
    kFileModes,   kQuestions,       kWhence,        kProtections,      kMapFlags,        kMremapFlags,
    kMsyncFlags,  kMemoryAdvice,    kFileAdvice,    kDataFlags,        kFallocateModes,  kSyncFileRangeFlags,
    kSpliceFlags, kLockCommands,    kMemoryLocks,   kRenameFlags,      kCloseRangeFlags, kXattrFlags,
    kSocketTypes, kEventfdFlags,    kOtherFlags,    kMemfdFlags,       kMessageFlags,    kRingEnterFlags,
    kCloneFlags,  kSignals,         kRingOps,       kRingRequestFlags, kAioCommands,
};

// errno(3) of Linux, asm-generic.
constexpr Symbol kErrors[] = {
    {"EPERM", 1},
    {"ENOENT", 2},
    {"ESRCH", 3},
    {"EINTR", 4},
    {"EIO", 5},
    {"ENXIO", 6},
    {"E2BIG", 7},
    {"ENOEXEC", 8},
    {"EBADF", 9},
    {"ECHILD", 10},
    {"EAGAIN", 11},
    {"ENOMEM", 12},
    {"EACCES", 13},
    {"EFAULT", 14},
    {"ENOTBLK", 15},
    {"EBUSY", 16},
    {"EEXIST", 17},
    {"EXDEV", 18},
    {"ENODEV", 19},
    {"ENOTDIR", 20},
    {"EISDIR", 21},
    {"EINVAL", 22},
    {"ENFILE", 23},
    {"EMFILE", 24},
    {"ENOTTY", 25},
    {"ETXTBSY", 26},
    {"EFBIG", 27},
    {"ENOSPC", 28},
    {"ESPIPE", 29},
    {"EROFS", 30},
    {"EMLINK", 31},
    {"EPIPE", 32},
    {"EDOM", 33},
    {"ERANGE", 34},
    {"EDEADLK", 35},
    {"ENAMETOOLONG", 36},
    {"ENOLCK", 37},
    {"ENOSYS", 38},
    {"ENOTEMPTY", 39},
    {"ELOOP", 40},
    {"ENOMSG", 42},
    {"EIDRM", 43},
    {"ECHRNG", 44},
    {"EL2NSYNC", 45},
    {"EL3HLT", 46},
    {"EL3RST", 47},
    {"ELNRNG", 48},
    {"EUNATCH", 49},
    {"ENOCSI", 50},
    {"EL2HLT", 51},
    {"EBADE", 52},
    {"EBADR", 53},
    {"EXFULL", 54},
    {"ENOANO", 55},
    {"EBADRQC", 56},
    {"EBADSLT", 57},
    {"EBFONT", 59},
    {"ENOSTR", 60},
    {"ENODATA", 61},
    {"ETIME", 62},
    {"ENOSR", 63},
    {"ENONET", 64},
    {"ENOPKG", 65},
    {"EREMOTE", 66},
    {"ENOLINK", 67},
    {"EADV", 68},
    {"ESRMNT", 69},
    {"ECOMM", 70},
    {"EPROTO", 71},
    {"EMULTIHOP", 72},
    {"EDOTDOT", 73},
    {"EBADMSG", 74},
    {"EOVERFLOW", 75},
    {"ENOTUNIQ", 76},
    {"EBADFD", 77},
    {"EREMCHG", 78},
    {"ELIBACC", 79},
    {"ELIBBAD", 80},
    {"ELIBSCN", 81},
    {"ELIBMAX", 82},
    {"ELIBEXEC", 83},
    {"EILSEQ", 84},
    {"ERESTART", 85},
    {"ESTRPIPE", 86},
    {"EUSERS", 87},
    {"ENOTSOCK", 88},
    {"EDESTADDRREQ", 89},
    {"EMSGSIZE", 90},
    {"EPROTOTYPE", 91},
    {"ENOPROTOOPT", 92},
    {"EPROTONOSUPPORT", 93},
    {"ESOCKTNOSUPPORT", 94},
    {"EOPNOTSUPP", 95},
    {"EPFNOSUPPORT", 96},
    {"EAFNOSUPPORT", 97},
    {"EADDRINUSE", 98},
    {"EADDRNOTAVAIL", 99},
    {"ENETDOWN", 100},
    {"ENETUNREACH", 101},
    {"ENETRESET", 102},
    {"ECONNABORTED", 103},
    {"ECONNRESET", 104},
    {"ENOBUFS", 105},
    {"EISCONN", 106},
    {"ENOTCONN", 107},
    {"ESHUTDOWN", 108},
    {"ETOOMANYREFS", 109},
    {"ETIMEDOUT", 110},
    {"ECONNREFUSED", 111},
    {"EHOSTDOWN", 112},
    {"EHOSTUNREACH", 113},
    {"EALREADY", 114},
    {"EINPROGRESS", 115},
    {"ESTALE", 116},
    {"EUCLEAN", 117},
    {"ENOTNAM", 118},
    {"ENAVAIL", 119},
    {"EISNAM", 120},
    {"EREMOTEIO", 121},
    {"EDQUOT", 122},
    {"ENOMEDIUM", 123},
    {"EMEDIUMTYPE", 124},
    {"ECANCELED", 125},
    {"ENOKEY", 126},
    {"EKEYEXPIRED", 127},
    {"EKEYREVOKED", 128},
    {"EKEYREJECTED", 129},
    {"EOWNERDEAD", 130},
    {"ENOTRECOVERABLE", 131},
    {"ERFKILL", 132},
    {"EHWPOISON", 133},
    {"ENOTSUPP", 524},
};

using Index = std::unordered_map<std::string_view, int64_t>;

std::optional<int64_t> find(const Index& in, std::string_view name) {
    const auto it = in.find(name);
    if (it == in.end()) {
        return std::nullopt;
    }
    return it->second;
}

void append_octal(std::string& out, int64_t value) {
    char digits[24];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, static_cast<uint64_t>(value), 8);
    out += value != 0 ? "0" : "";
    out.append(digits, end);
}

void append_hex(std::string& out, uint64_t value) {
    char digits[24];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value, 16);
    out += "0x";
    out.append(digits, end);
}

/// How a field of an op is spelled.
struct Spelling {
    enum class Form { number, octal, one_of, flags } form = Form::number;
    Symbols names = {};
    int64_t choice = 0;  // of flags: bits that hold one of `choices`, as the access mode of open
    Symbols choices = {};
};

Spelling one_of(Symbols names) { return {Spelling::Form::one_of, names}; }
Spelling flags(Symbols names) { return {Spelling::Form::flags, names}; }
Spelling open_flags() {
    constexpr int64_t kAccessMode = 3;
    return {Spelling::Form::flags, Symbols(kOpenFlags).subspan(3), kAccessMode, Symbols(kOpenFlags).first(3)};
}
/// Of calls that take O_CLOEXEC, O_NONBLOCK and the like but no access mode.
Spelling status_flags() { return flags(Symbols(kOpenFlags).subspan(3)); }
Spelling socket_flags() { return {Spelling::Form::flags, kSocketTypes, 0xf, kSocketTypes}; }
Spelling clone_flags() { return {Spelling::Form::flags, kCloneFlags, 0xff, kSignals}; }

/// `flags` of fcntl is the argument of its command.
Spelling fcntl_argument(const Op& op) {
    constexpr int64_t kSetDescriptorFlags = 2, kSetStatusFlags = 4;
    return op.arg == kSetStatusFlags       ? open_flags()
           : op.arg == kSetDescriptorFlags ? flags(kDescriptorFlags)
                                           : Spelling{};
}

/// `flags` of pipe, socketpair, eventfd and memfd_create, told apart by arg.
Spelling maker_flags(const Op& op) {
    switch (op.arg) {
        case 1: return status_flags();
        case 2: return socket_flags();
        case 3: return flags(kEventfdFlags);
        case 4: return flags(kMemfdFlags);
        default: return {};
    }
}

constexpr Field kFieldsSpelled[] = {Field::flags, Field::arg, Field::mode};
size_t column_of(Field field) {
    return static_cast<size_t>(std::find(std::begin(kFieldsSpelled), std::end(kFieldsSpelled), field) -
                               std::begin(kFieldsSpelled));
}

struct Row {
    OpKind kind;
    Field field;
    Spelling how;
};

/// Fields that hold something of the kernel's; all others are numbers.
std::vector<Row> spelled_fields() {
    using enum OpKind;
    std::vector<Row> rows = {
        {open, Field::flags, open_flags()},
        {dup, Field::flags, status_flags()},
        {rename, Field::flags, flags(kRenameFlags)},
        {fallocate, Field::flags, flags(kFallocateModes)},
        {sync_file_range, Field::flags, flags(kSyncFileRangeFlags)},
        {mmap, Field::flags, flags(kMapFlags)},
        {mremap, Field::flags, flags(kMremapFlags)},
        {msync, Field::flags, flags(kMsyncFlags)},
        {splice, Field::flags, flags(kSpliceFlags)},
        {copy_file_range, Field::flags, flags(kCopyFlags)},
        {uring_submit, Field::flags, flags(kRingRequestFlags)},
        {spawn, Field::flags, clone_flags()},
        {fcntl, Field::arg, one_of(kFcntlCommands)},
        {ioctl, Field::arg, one_of(kQuestions)},
        {lseek, Field::arg, one_of(kWhence)},
        {statx, Field::arg, flags(kStatxMasks)},
        {fadvise, Field::arg, one_of(kFileAdvice)},
        {madvise, Field::arg, one_of(kMemoryAdvice)},
        {flock, Field::arg, flags(kLockCommands)},
        {uring_submit, Field::arg, one_of(kRingOps)},
        {aio_submit, Field::arg, one_of(kAioCommands)},
        {access, Field::mode, flags(kAccessModes)},
        {mmap, Field::mode, flags(kProtections)},
        {mprotect, Field::mode, flags(kProtections)},
    };
    for (const OpKind kind : {read, pread, readv, preadv, write, pwrite, writev, pwritev, aio_submit}) {
        rows.push_back({kind, Field::flags, flags(kDataFlags)});
    }
    for (const OpKind kind : {stat, statx, access, link, utimens, chown}) {
        rows.push_back({kind, Field::flags, flags(kAtFlags)});
    }
    for (const OpKind kind : {open, mkdir, chmod}) {
        rows.push_back({kind, Field::mode, {Spelling::Form::octal, {}}});
    }
    return rows;
}

Spelling spelling_of(const Op& op, Field field) {
    if (field == Field::flags && op.kind == OpKind::fcntl) {
        return fcntl_argument(op);
    }
    if (field == Field::flags && op.kind == OpKind::pipe) {
        return maker_flags(op);
    }
    static const auto table = [] {
        std::array<std::array<Spelling, std::size(kFieldsSpelled)>, kOpKindLimit> out{};
        for (const Row& row : spelled_fields()) {
            out[static_cast<size_t>(row.kind)][column_of(row.field)] = row.how;
        }
        return out;
    }();
    const size_t column = column_of(field);
    return column < std::size(kFieldsSpelled) ? table[static_cast<size_t>(op.kind)][column] : Spelling{};
}

const Symbol* with_value(Symbols names, int64_t value) {
    for (const Symbol& symbol : names) {
        if (symbol.value == value) {
            return &symbol;
        }
    }
    return nullptr;
}

void append_flags(std::string& out, const Spelling& how, int64_t value) {
    const size_t start = out.size();
    const auto gap = [&] {
        if (out.size() != start) {
            out += '|';
        }
    };
    auto rest = static_cast<uint64_t>(value);
    // The choice of 0 has a name in some (O_RDONLY), and so has no flag at all (PROT_NONE).
    const Symbol* const chosen = how.choice != 0 ? with_value(how.choices, value & how.choice)
                                 : value == 0    ? with_value(how.names, 0)
                                                 : nullptr;
    if (chosen != nullptr) {
        out += chosen->name;
        rest &= ~static_cast<uint64_t>(how.choice);
    }
    for (const Symbol& symbol : how.names) {
        const auto bits = static_cast<uint64_t>(symbol.value) & ~static_cast<uint64_t>(how.choice);
        if (bits != 0 && (rest & bits) == bits) {
            gap();
            out += symbol.name;
            rest &= ~bits;
        }
    }
    if (rest != 0) {
        gap();
        append_hex(out, rest);
    } else if (out.size() == start) {
        out += '0';
    }
}

void append_spelled(std::string& out, const Spelling& how, int64_t value) {
    switch (how.form) {
        case Spelling::Form::number: append_number(out, value); return;
        case Spelling::Form::octal: append_octal(out, value); return;
        case Spelling::Form::flags: append_flags(out, how, value); return;
        case Spelling::Form::one_of:
            if (const Symbol* const symbol = with_value(how.names, value)) {
                out += symbol->name;
            } else {
                append_number(out, value);
            }
            return;
    }
}

}  // namespace

std::optional<int64_t> symbol_value(std::string_view name) {
    static const auto symbols = [] {
        Index out;
        for (const Symbols group : kGroups) {
            for (const Symbol& symbol : group) {
                out.emplace(symbol.name, symbol.value);
            }
        }
        return out;
    }();
    return find(symbols, name);
}

std::optional<int64_t> errno_value(std::string_view name) {
    static const auto errors = [] {
        Index out;
        for (const Symbol& symbol : kErrors) {
            out.emplace(symbol.name, symbol.value);
        }
        return out;
    }();
    return find(errors, name);
}

std::string open_flags_text(int64_t value) {
    std::string out;
    append_flags(out, open_flags(), value);
    return out;
}
std::string mode_text(int64_t value) {
    std::string out;
    append_octal(out, value);
    return out;
}

void append_field(std::string& out, const Op& op, Field field) {
    append_spelled(out, spelling_of(op, field), field_value(op, field));
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "formats/import/strace/calls.h"

#include <unordered_map>

namespace reprise {
namespace {

using A = StraceAction;
using K = OpKind;
constexpr int64_t kNoFollow = 0x100;  // AT_SYMLINK_NOFOLLOW
constexpr int64_t kCreate = 0x241;    // O_CREAT|O_WRONLY|O_TRUNC

constexpr StraceCallRow kCalls[] = {
    // open instances
    {"open", K::open, "pFm"},
    {"openat", K::open, "dpFm"},
    {"openat2", K::open, "dpHx"},
    {"creat", K::open, "pm", A::op, kCreate},
    {"close", K::close, "f"},
    {"close_range", K::close, "f2F"},
    {"dup", K::dup, "f", A::op, 0, 1},
    {"dup2", K::dup, "f2", A::op, 0, 2},
    {"dup3", K::dup, "f2F", A::op, 0, 3},
    {"fcntl", K::fcntl, "faF"},
    {"fcntl64", K::fcntl, "faF"},
    // data
    {"read", K::read, "fxs"},
    {"pread64", K::pread, "fxso"},
    {"pread", K::pread, "fxso"},
    {"readv", K::readv, "fix"},
    {"preadv", K::preadv, "fixo"},
    {"preadv2", K::preadv, "fixoF"},
    {"write", K::write, "fxs"},
    {"pwrite64", K::pwrite, "fxso"},
    {"pwrite", K::pwrite, "fxso"},
    {"writev", K::writev, "fix"},
    {"pwritev", K::pwritev, "fixo"},
    {"pwritev2", K::pwritev, "fixoF"},
    {"lseek", K::lseek, "foa"},
    {"_llseek", K::lseek, "foxa"},
    // names and attributes
    {"stat", K::stat, "pS"},
    {"stat64", K::stat, "pS"},
    {"lstat", K::stat, "pS", A::op, kNoFollow},
    {"lstat64", K::stat, "pS", A::op, kNoFollow},
    {"newfstatat", K::stat, "dpSF"},
    {"fstatat64", K::stat, "dpSF"},
    {"fstat", K::fstat, "fS"},
    {"fstat64", K::fstat, "fS"},
    {"statx", K::statx, "dpFaS"},
    {"access", K::access, "pm"},
    {"faccessat", K::access, "dpmF"},
    {"faccessat2", K::access, "dpmF"},
    {"getdents", K::getdents, "fxs"},
    {"getdents64", K::getdents, "fxs"},
    {"readlink", K::readlink, "pLs"},
    {"readlinkat", K::readlink, "dpLs"},
    {"mkdir", K::mkdir, "pm"},
    {"mkdirat", K::mkdir, "dpm"},
    {"rmdir", K::rmdir, "p"},
    {"unlink", K::unlink, "p"},
    {"unlinkat", K::unlink, "dpF"},
    {"rename", K::rename, "pP"},
    {"renameat", K::rename, "dpDP"},
    {"renameat2", K::rename, "dpDPF"},
    {"link", K::link, "pP"},
    {"linkat", K::link, "dpDPF"},
    {"symlink", K::symlink, "tp"},
    {"symlinkat", K::symlink, "tdp"},
    {"truncate", K::truncate, "ps"},
    {"truncate64", K::truncate, "ps"},
    {"ftruncate", K::ftruncate, "fs"},
    {"ftruncate64", K::ftruncate, "fs"},
    {"fallocate", K::fallocate, "fFos"},
    {"fsync", K::fsync, "f"},
    {"fdatasync", K::fdatasync, "f"},
    {"sync_file_range", K::sync_file_range, "fosF"},
    {"syncfs", K::syncfs, "f"},
    {"sync", K::syncfs, ""},
    {"fadvise64", K::fadvise, "fosa"},
    {"fadvise64_64", K::fadvise, "fosa"},
    {"readahead", K::readahead, "fos"},
    {"chmod", K::chmod, "pm"},
    {"fchmod", K::chmod, "fm"},
    {"fchmodat", K::chmod, "dpm"},
    {"fchmodat2", K::chmod, "dpmF"},
    {"utime", K::utimens, "px"},
    {"utimes", K::utimens, "px"},
    {"futimesat", K::utimens, "dpx"},
    {"utimensat", K::utimens, "dpxF"},
    // memory
    {"mmap", K::mmap, "xsmFfo"},
    {"mmap2", K::mmap, "xsmFfo"},
    {"munmap", K::munmap, "As"},
    {"mremap", K::mremap, "AasFx"},
    {"madvise", K::madvise, "Asa"},
    {"msync", K::msync, "AsF"},
    {"mprotect", K::mprotect, "Asm"},
    {"pkey_mprotect", K::mprotect, "Asmx"},
    // copies inside the kernel
    {"sendfile", K::sendfile, "2fOs"},
    {"sendfile64", K::sendfile, "2fOs"},
    {"copy_file_range", K::copy_file_range, "fO2QsF"},
    {"splice", K::splice, "fO2QsF"},
    {"tee", K::splice, "f2sF"},
    {"vmsplice", K::writev, "fixF"},
    // the rest of the file interface
    {"getxattr", K::getxattr, "ptxs"},
    {"lgetxattr", K::getxattr, "ptxs", A::op, 1},
    {"fgetxattr", K::getxattr, "ftxs"},
    {"setxattr", K::setxattr, "ptxsx"},
    {"lsetxattr", K::setxattr, "ptxsx", A::op, 1},
    {"fsetxattr", K::setxattr, "ftxsx"},
    {"listxattr", K::listxattr, "pxs"},
    {"llistxattr", K::listxattr, "pxs", A::op, 1},
    {"flistxattr", K::listxattr, "fxs"},
    {"removexattr", K::removexattr, "pt"},
    {"lremovexattr", K::removexattr, "pt", A::op, 1},
    {"fremovexattr", K::removexattr, "ft"},
    {"flock", K::flock, "fa"},
    {"statfs", K::statfs, "px"},
    {"fstatfs", K::statfs, "fx"},
    // asynchronous input and output
    {"io_uring_enter", K::uring_enter, "fsaFxx", A::unseen_requests},
    {"io_uring_setup", K::wait, "xx", A::make_other},
    {"io_submit", K::wait, "xxx", A::unseen_requests},
    {"io_getevents", K::wait, "xxxxx", A::op, 0, kWaitPoll},
    {"io_pgetevents", K::wait, "xxxxxx", A::op, 0, kWaitPoll},
    // causes
    {"futex", K::wait, "", A::op, 0, kWaitFutex},
    {"futex_waitv", K::wait, "", A::op, 0, kWaitFutex},
    {"poll", K::wait, "", A::op, 0, kWaitPoll},
    {"ppoll", K::wait, "", A::op, 0, kWaitPoll},
    {"select", K::wait, "", A::op, 0, kWaitPoll},
    {"pselect6", K::wait, "", A::op, 0, kWaitPoll},
    {"epoll_wait", K::wait, "", A::op, 0, kWaitEpoll},
    {"epoll_pwait", K::wait, "", A::op, 0, kWaitEpoll},
    {"epoll_pwait2", K::wait, "", A::op, 0, kWaitEpoll},
    {"nanosleep", K::wait, "", A::op, 0, kWaitSleep},
    {"clock_nanosleep", K::wait, "", A::op, 0, kWaitSleep},
    {"pause", K::wait, ""},
    {"rt_sigtimedwait", K::wait, ""},
    {"rt_sigsuspend", K::wait, ""},
    {"restart_syscall", K::wait, ""},
    {"semop", K::wait, "", A::op, 0, kWaitLock},
    {"semtimedop", K::wait, "", A::op, 0, kWaitLock},
    {"wait4", K::join, "", A::wait_for_child, 0, kWaitChild},
    {"waitpid", K::join, "", A::wait_for_child, 0, kWaitChild},
    {"waitid", K::join, "", A::wait_for_child, 0, kWaitChild},
    {"pipe", K::pipe, "|", A::op, 0, 1},
    {"pipe2", K::pipe, "|F", A::op, 0, 1},
    {"socketpair", K::pipe, "xFx|", A::op, 0, 2},
    {"eventfd", K::pipe, "s", A::eventfd, 0, 3},
    {"eventfd2", K::pipe, "sF", A::eventfd, 0, 3},
    {"memfd_create", K::pipe, "tF", A::memfd, 0, 4},
    {"sendto", K::send, "fxsF"},
    {"send", K::send, "fxsF"},
    {"sendmsg", K::send, "fMF"},
    {"recvfrom", K::receive, "fxsF"},
    {"recv", K::receive, "fxsF"},
    {"recvmsg", K::receive, "fMF", A::receive_message},
    {"clone", K::spawn, "", A::spawn},
    {"clone2", K::spawn, "", A::spawn},
    {"clone3", K::spawn, "", A::spawn},
    {"fork", K::spawn, "", A::spawn, 17},
    {"vfork", K::spawn, "", A::spawn, 0x4111},
    {"execve", K::exec, "pxx", A::exec},
    {"execveat", K::exec, "dpxxx", A::exec},
    {"exit", K::exit, "a"},
    {"exit_group", K::exit, "a"},
    // the current directory
    {"chdir", K::wait, "p", A::chdir},
    {"fchdir", K::wait, "f", A::fchdir},
    {"getcwd", K::wait, "", A::getcwd},
    // descriptors of no file
    {"socket", K::wait, "xF", A::make_socket},
    {"accept", K::wait, "xxx", A::make_socket},
    {"accept4", K::wait, "xxxF", A::make_socket},
    {"epoll_create", K::wait, "x", A::make_epoll},
    {"epoll_create1", K::wait, "F", A::make_epoll},
    {"timerfd_create", K::wait, "xF", A::make_other},
    {"signalfd", K::wait, "xxx", A::make_other},
    {"signalfd4", K::wait, "xxxF", A::make_other},
    {"inotify_init", K::wait, "", A::make_other},
    {"inotify_init1", K::wait, "F", A::make_other},
    {"fanotify_init", K::wait, "xx", A::make_other},
    {"pidfd_open", K::wait, "xx", A::make_other},
    {"perf_event_open", K::wait, "xxxxx", A::make_other},
    {"userfaultfd", K::wait, "F", A::make_other},
};

}  // namespace

std::span<const StraceCallRow> all_strace_calls() { return kCalls; }

const StraceCallRow* find_strace_call(std::string_view name) {
    static const auto rows = [] {
        std::unordered_map<std::string_view, const StraceCallRow*> out;
        for (const StraceCallRow& row : kCalls) {
            out.emplace(row.name, &row);
        }
        return out;
    }();
    const auto it = rows.find(name);
    return it == rows.end() ? nullptr : it->second;
}

}  // namespace reprise

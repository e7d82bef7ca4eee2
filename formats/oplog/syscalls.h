// SPDX-License-Identifier: MIT
// The table of system calls (formats/oplog/syscalls.def) as rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/oplog/op.h"
#include "formats/oplog/syscall_numbers.h"

namespace reprise {

/// What a call does besides being an op, or instead.
enum class CallAction : uint8_t {
    op,           // nothing: its arguments say it all
    none,         // nothing that a log holds; recorded because it can wake or block
    close_range,  // one close per descriptor
    fcntl,        // may be a dup; some commands take an address
    mmap,
    mremap,
    brk,
    lock_memory,   // brings pages in
    clone_blocks,  // two files share blocks: a copy
    make,          // the result is a descriptor of no file
    make_socket,
    make_epoll,
    pipe,     // two descriptors, or one where arg is kEventFd or kMemFd
    receive,  // may carry descriptors
    spawn,
    exec,
    exit,
    wait_child,
    ask_task,  // whether a process is there, where its signal is 0
    wait,      // blocks
    futex,     // wakes, or blocks
    wake,      // wakes
    marker,
    chdir,
    fchdir,
    getcwd,
    umask,
    chroot,
    pivot_root,
    mount,
    umount,
    unshare,
    setns,
    uring_enter,
    aio_submit,
    aio_reap,
};

/// Why a blocked call goes on. A call can end another's wait where the one's `wakes` and the other's `waits` meet.
namespace wake {
inline constexpr uint16_t futex = 1;
inline constexpr uint16_t data = 2;  // data came, there is room for more, or the other end is closed
inline constexpr uint16_t end = 4;   // a process or a program ended
inline constexpr uint16_t signal = 8;
inline constexpr uint16_t connect = 16;
inline constexpr uint16_t queue =
    32;  // System V's and POSIX's: of messages, one came or there is room for one; semaphores
inline constexpr uint16_t lock = 64;                        // of a range of a file
inline constexpr uint16_t fifo = 128;                       // its other end was opened
inline constexpr uint16_t names = 256;                      // what inotify tells: a name or a file changed
inline constexpr uint16_t bytes = data | connect | signal;  // a signal comes out of a signalfd
inline constexpr uint16_t ready = data | connect | end | signal | names;
inline constexpr uint16_t ended = futex | data | end | signal | lock;
}  // namespace wake

/// Syscall::strace of calls that are not imported from strace logs.
inline constexpr std::string_view kNotImported = "-";

/// One row; see formats/oplog/syscalls.def for the fields.
struct Syscall {
    uint16_t nr = 0;
    std::string_view name;
    bool makes_op = true;
    OpKind kind = OpKind::wait;  // where makes_op
    std::string_view arguments;  // one letter each
    bool makes_descriptor = false;
    CallAction action = CallAction::op;
    int64_t flags = 0;
    int64_t arg = 0;
    uint16_t wakes = 0;
    uint16_t waits = 0;
    std::string_view strace{};
    std::string_view also{};
    bool recorded = true;
};

std::span<const Syscall> all_syscalls();
/// The rows of other names, with the numbers of the calls they stand for.
std::span<const Syscall> all_syscall_aliases();

/// nullptr for a call that is not in the table.
const Syscall* find_syscall(unsigned nr);
/// Also by the names of aliases.
const Syscall* find_syscall(std::string_view name);

/// The calls an op comes from, separated by spaces: "name" or "name:condition".
std::string calls_of(OpKind kind);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// The system calls the strace importer knows: one row each.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "formats/oplog/op.h"

namespace reprise {

/// What to do with a call once its arguments are read.
enum class StraceAction : uint8_t {
    op,      // an op of the table
    ignore,  // says nothing a log holds
    chdir,
    fchdir,
    getcwd,
    make_other,  // the result is a new descriptor of no file
    make_socket,
    make_epoll,
    eventfd,
    memfd,
    spawn,
    wait_for_child,
    exec,
    receive_message,  // may carry descriptors
    unseen_requests,  // asynchronous requests whose contents strace does not show
};

struct StraceCallRow {
    std::string_view name;
    OpKind kind;
    /// How to read the arguments, one letter each:
    ///   f descriptor   2 second descriptor   d D directory of p, of P   | pair of descriptors
    ///   p path   P second path   t text   L target of a link   x nothing
    ///   s size   o offset   O Q offset behind a pointer, of the second descriptor   F flags   m mode   a arg   A
    ///   address i array of buffers   M message with buffers   S struct stat   H struct open_how
    std::string_view arguments;
    StraceAction action = StraceAction::op;
    int64_t flags = 0;  // added to the flags
    int64_t arg = 0;    // added to arg
};

std::span<const StraceCallRow> all_strace_calls();
/// nullptr for a call that is not in the table.
const StraceCallRow* find_strace_call(std::string_view name);

}  // namespace reprise

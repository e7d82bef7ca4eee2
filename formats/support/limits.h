// SPDX-License-Identifier: MIT
// Limits of the process (setrlimit(2)): named in messages where they are the cause of an error, and those that reprise
// needs otherwise than they are given.
#pragma once

#include <string>
#include <string_view>

namespace reprise {

/// As strerror(3); the limit, where one is the cause.
std::string reason(int error);
/// What to do about a limit or a full disk, where that is the cause; else `otherwise`.
std::string remedy(int error, std::string_view otherwise);

/// Whether nobody wants to hear of the signal, as after `nohup`.
bool is_ignored(int signal);

/// Called once, first: writing beyond `ulimit -f` fails with EFBIG in place of ending the process, and stacks are large
/// enough. Throws Error (machine) where they cannot be.
void take_limits();
/// In a child before exec: as they were before take_limits(). Async-signal-safe.
void restore_limits();

}  // namespace reprise

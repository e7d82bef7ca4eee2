// SPDX-License-Identifier: MIT
// Names of the system calls of formats/oplog/syscalls.def.
#pragma once

#include <string_view>

namespace reprise {

/// Empty for a call that is not in the table.
std::string_view syscall_name(unsigned nr);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// The names strace writes instead of numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace reprise {

/// "O_RDONLY", "PROT_READ", "SIGCHLD", ...
std::optional<int64_t> symbol_value(std::string_view name);
/// "ENOENT": 2
std::optional<int64_t> errno_value(std::string_view name);

}  // namespace reprise

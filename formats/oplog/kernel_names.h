// SPDX-License-Identifier: MIT
// The kernel's constants by name: O_*, MAP_*, E* and the like.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/oplog/op.h"

namespace reprise {

/// "O_RDONLY", "PROT_READ", "SIGCHLD", ...
std::optional<int64_t> symbol_value(std::string_view name);
/// "ENOENT": 2
std::optional<int64_t> errno_value(std::string_view name);

/// Appends a field as a person reads it: flags and commands of the kernel by name ("O_WRONLY|O_CREAT"; bits without a
/// name in hexadecimal), permission bits in octal ("0644"), all others as numbers. Not for Field::text and Field::list.
void append_field(std::string& out, const Op& op, Field field);
/// The flags of an open instance and permission bits, likewise.
std::string open_flags_text(int64_t value);
std::string mode_text(int64_t value);

}  // namespace reprise

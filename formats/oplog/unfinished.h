// SPDX-License-Identifier: MIT
// What a log is called until it is whole, and what may have that name already.
#pragma once

#include <filesystem>

namespace reprise {

std::filesystem::path unfinished_log(const std::filesystem::path& log);

/// Throws Error (usage) where a file of that name is there, and is no log that a killed writer left: writing the log
/// would replace it. A link is replaced, and what it leads to stays.
void check_unfinished_log(const std::filesystem::path& log);

}  // namespace reprise

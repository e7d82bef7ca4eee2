// SPDX-License-Identifier: MIT
// Where a command may write: checked before it begins, not after hours of work.
#pragma once

#include <filesystem>
#include <string_view>

#include "cli/command.h"

namespace reprise::cli {

/// Throws Error (usage) where -o names no file: empty, or "-" for standard output.
void check_log_name(const std::filesystem::path& path);

/// Throws Error (usage) unless `path` names a regular file, a new one or, with `overwrite`, one that is there. Throws
/// Error (machine) where the directory does not exist.
void check_log_output(const std::filesystem::path& path, bool overwrite);

/// Throws Error (machine) where the directory of `path` does not exist.
void check_directory_of(const std::filesystem::path& path);

/// Throws Error (usage) where `path`, shown as `shown`, is below the replay root of --root, whose files it could
/// replace.
void check_outside_root(const std::filesystem::path& path, std::string_view shown, const po::variables_map& values);

}  // namespace reprise::cli

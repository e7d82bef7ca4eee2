// SPDX-License-Identifier: MIT
// Files that a command line names: no two outputs are one file, and no output is an input, however they are spelled.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace reprise::cli {

struct NamedFile {
    std::string shown;  ///< "--storage mm.json", or the path of a positional
    std::filesystem::path path;
    bool written = false;
};

/// Those of a command line, standard input and output left out.
std::vector<NamedFile> named_files(const Command& command, const po::variables_map& values);

/// Whether two paths are the same file, or, where there is none yet, would be: links are followed. A character device
/// (/dev/null) is written to, not replaced, and the same as nothing.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b);

/// Throws Error (usage) where two outputs are the same file, or an output is an input.
void check_named_files(const Command& command, const po::variables_map& values);
/// The same of a file that is written besides, whose name an option's value ("-o fi") leads to.
void check_written_too(std::string_view command, const po::variables_map& values, const std::filesystem::path& path,
                       std::string_view option);
/// The same of the files that are written into a folder.
void check_folder_too(std::string_view command, const po::variables_map& values, const std::filesystem::path& folder,
                      std::span<const std::string_view> names);
/// A folder for those files, made where it is not there. Throws Error (usage) also where it has one of them already and
/// --force is not given, Error (machine) where it cannot be made.
void make_folder_of(std::string_view command, const po::variables_map& values, const std::filesystem::path& folder,
                    std::span<const std::string_view> names);
/// The same of a file that is read besides, as a log that a suite names.
void check_read_too(std::string_view command, const po::variables_map& values, const std::filesystem::path& path);

}  // namespace reprise::cli

// SPDX-License-Identifier: MIT
// --json, which means the same in every command: alone it prints JSON, and nothing else, on standard output;
// --json=FILE writes a file beside the usual output.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/table.h"

namespace reprise::cli {

/// Adds --json[=FILE]. options_of() adds -f, to overwrite FILE, where the command has none.
void add_json_option(po::options_description& options, const char* what = "print the result as JSON");
/// The arguments with what --json alone stands for, which would else take the next word.
std::vector<std::string> with_json_target(std::vector<std::string> arguments);
/// Error (usage) where FILE exists without --force, is a directory, or is below the replay root.
void check_json_option(const Command& command, const po::variables_map& values);

bool json_wanted(const po::variables_map& values);
/// --json alone: standard output is for JSON only.
bool json_alone(const po::variables_map& values);
/// Prints or writes it. Only where json_wanted().
void put_json(const po::variables_map& values, const Json& json);

}  // namespace reprise::cli

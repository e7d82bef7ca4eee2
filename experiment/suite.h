// SPDX-License-Identifier: MIT
// A suite of `regress`: which op logs are replayed on which targets, and how. An INI file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace reprise {

struct SuiteJob {
    std::string name;
    std::filesystem::path log;         // as from the folder of the suite
    std::vector<std::string> prepare;  // more options of `reprise prepare`
    std::vector<std::string> replay;   // more options of `reprise replay`
};

struct SuiteTarget {
    std::string name;
    std::filesystem::path folder;
    std::string remount;  // a command that unmounts it and mounts it again; empty: none
    std::string make;     // the command that makes such a file system on the device that is added to it; empty: none
    std::string mount_options;  // of that
    uint64_t size = 0;          // bytes of the device
    bool given = false;         // on the command line
};

struct Suite {
    std::vector<SuiteJob> jobs;
    std::vector<SuiteTarget> targets;
    size_t runs = 10, warm_up = 1;
    size_t seed = 1;   // of the order of the runs, and of the power cuts
    size_t cuts = 20;  // of the power
};

/// Throws Error (bad_input) with the number of the line for what it does not know, and says what is near.
///
///     [suite]
///     runs = 10
///     warm-up = 1
///     seed = 1
///     cuts = 20
///     [job NAME]
///     log = FILE
///     prepare = OPTIONS
///     replay = OPTIONS
///     [target NAME]
///     folder = DIR
///     remount = COMMAND
///     make = COMMAND
///     mount-options = OPTIONS
///     size = BYTES
Suite read_suite(const std::filesystem::path& file);

/// Adds "NAME=DIR", or gives a target of the suite its folder, before those that were not given. Throws Error (usage).
void add_target(Suite& suite, const std::string& text);

/// Throws Error where the suite has no job, no target, or a target no folder.
void check_suite(const Suite& suite, const std::filesystem::path& file);

/// Words as a shell would split them: blanks, and ' and " around a word. Throws Error (bad_input).
std::vector<std::string> split_words(const std::string& text, const std::string& where);

}  // namespace reprise

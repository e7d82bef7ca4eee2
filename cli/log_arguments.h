// SPDX-License-Identifier: MIT
// Options shared by commands that read logs (--recover, --task, --only, --not, --map) and by those
// that write logs of recordings (--role).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "formats/assemble/roles.h"
#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "replay/plan/paths.h"

namespace reprise::cli {

/// The whole number that an option was given as text. Throws Error (usage), which names the range, where it is none
/// from `least` to `most`.
int64_t whole_number(const po::variables_map& values, const char* option, int64_t least, int64_t most);

/// Adds --recover.
void add_recover_option(po::options_description& options);
/// Opens the log; reports on standard error what a recovery dropped.
LogReader open_log(const std::string& path, const po::variables_map& values);

/// Error (bad_input) where the log has no ops, of which nothing can be said.
void require_ops(const LogReader& log);

/// "--recover" where the log was truncated: a part of the job is another job. Else empty.
std::string recovered_words(const LogReader& log);
/// Appends a word after a blank; nothing where it is empty.
void add_word(std::string& text, const std::string& word);

/// Adds --task ID, which may be given several times.
void add_task_option(po::options_description& options);
/// Ids of the tasks asked for; none: all. Error (usage) where the log has no such task.
std::vector<TaskId> wanted_tasks(const LogReader& log, const po::variables_map& values);

/// Adds --only, --not and --allow-empty.
void add_filter_options(po::options_description& options);
/// What --only and --not keep of the log. Without --only: everything, or, where `Base::job`, all but program and system
/// files. Error (usage) where a word selects no file or all of them leave none, unless --allow-empty.
enum class Base : uint8_t { everything, job };
OpFilter wanted_filter(const po::variables_map& values, const LogReader& log, Base base);
/// "--only /data --not log", as given; empty where neither was.
std::string filter_words(const po::variables_map& values);

/// Adds --map OLD=NEW.
void add_map_option(po::options_description& options, const char* help);
/// The rules of --map; none where it was not given. Error (usage) where a rule matches no path of the log, unless
/// --allow-empty.
std::optional<PathMap> wanted_maps(const po::variables_map& values, const LogReader& log);

/// Adds --role PATTERN=ROLE, for commands that make logs of recordings.
void add_role_option(po::options_description& options);
/// `on_disk`: the recording is made on this machine, whose links are followed.
RoleOverrides wanted_roles(const po::variables_map& values, bool on_disk);

}  // namespace reprise::cli

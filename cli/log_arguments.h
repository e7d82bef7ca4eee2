// SPDX-License-Identifier: MIT
// Options shared by commands that read logs (--recover, --task, --only, --not) and by those
// that write logs of recordings (--role).
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "formats/assemble/roles.h"
#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"

namespace reprise::cli {

/// Adds --recover.
void add_recover_option(po::options_description& options);
/// Opens the log; reports on standard error what a recovery dropped.
LogReader open_log(const std::string& path, const po::variables_map& values);

/// Adds --task ID, which may be given several times.
void add_task_option(po::options_description& options);
/// Ids of the tasks asked for; none: all. Error (usage) where the log has no such task.
std::vector<TaskId> wanted_tasks(const LogReader& log, const po::variables_map& values);

/// Adds --only and --not.
void add_filter_options(po::options_description& options);
/// Keeps everything where neither was given.
OpFilter wanted_filter(const po::variables_map& values);

/// Adds --role PATTERN=ROLE, for commands that make logs of recordings.
void add_role_option(po::options_description& options);
RoleOverrides wanted_roles(const po::variables_map& values);

}  // namespace reprise::cli

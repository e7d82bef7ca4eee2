// SPDX-License-Identifier: MIT
// What `regress` checks besides times: what a replay says of its results and files, the files after a remount.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/regress_suite.h"

namespace reprise::cli {

/// Of a row of RegressSuite: why a run is wrong; none: it is not.
std::vector<std::string> failures_of(const RowFile::Json& row);
/// Why its times are not those of the job on this storage: what `replay` alone ends with 1 for. `late_may`: not that it
/// did not keep the recording's times.
std::vector<std::string> doubts_of_times(const RowFile::Json& row, bool late_may);
/// Of a verified run: results, files, content.
std::vector<CheckedThing> checks_of(const RowFile::Json& row);
/// Runs the target's remount command, then compares all files again. `run_log`: of the verified run.
CheckedThing check_after_remount(const RegressCell& cell, const std::filesystem::path& run_log);

RowFile::Json to_json(const std::vector<CheckedThing>& things);
std::vector<CheckedThing> checks_from(const RowFile::Json& json);

}  // namespace reprise::cli

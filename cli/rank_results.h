// SPDX-License-Identifier: MIT
// What several ranks made of one run: one result, and one op log.
#pragma once

#include <filesystem>
#include <string>

#include "cli/run_series.h"
#include "hosts/hosts.h"

namespace reprise::cli {

/// The end of a run of several ranks, on all of them. On rank 0, `run` becomes that of all ranks that answer, and has
/// their rows; on the others it stays their own. `mine`: what this rank says of its part. `log`: that was replayed.
void merge_ranks(Hosts& hosts, const PeerRow& mine, const LogReader& log, const std::filesystem::path& root,
                 SeriesRun& run);

/// Makes one log of the ranks' own (`part`: this rank's), which are removed then: on rank 0, where all others send
/// theirs. Returns why there is none, on rank 0; empty: there is.
std::string join_logs(Hosts& hosts, const std::filesystem::path& part, const std::filesystem::path& output);

}  // namespace reprise::cli

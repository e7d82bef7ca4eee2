// SPDX-License-Identifier: MIT
// What a cluster in virtual time came to: as text, a table, CSV, JSON and pictures.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "cli/table.h"
#include "replay/cluster/cluster.h"

namespace reprise::cli {

struct ClusterShown {
    std::string log, storage, network;  // files; network may be empty
    uint32_t recorded = 1;              // accelerators of the log
    bool swept = false;
    std::vector<ClusterResult> results;  // ascending
    std::vector<std::string> guesses;
    std::string poor;  // why the job's own prediction is not to be trusted; empty: it is
    double took_s = 0;
};

struct ClusterFiles {
    std::filesystem::path csv, svg, png;
};

/// The last count whose accelerators are busy for 90 % of the time, and the first one after it that is not; what bounds
/// there. Empty: they all are, or none.
std::string bend_of(const std::vector<ClusterResult>& results);
void print_cluster(std::ostream& out, const ClusterShown& shown, const ClusterFiles& files);
Json cluster_json(const ClusterShown& shown);
/// Into a folder. Throws Error (machine).
ClusterFiles write_cluster(const ClusterShown& shown, const std::filesystem::path& folder);

}  // namespace reprise::cli

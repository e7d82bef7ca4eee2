// SPDX-License-Identifier: MIT
// The results of the ranks of one run as one result.
//
// Every rank made the same plan of the same log and performed its part; times count from the start that all have in
// common. Each figure is merged by what it is:
//
//   what ops did (ops, bytes, errors, differences, left out, tasks, edges) and histograms   added up
//   waits for other ranks, by whom they were for    added up, and passed on to whom those ranks waited for themselves
//   elapsed time                      until the last rank was done
//   critical path, its interval, what the replay added to it                of the rank that was done last
//   what the plan and the recording say (doubts, queues, counters)          the same on all ranks: once
//   accounts of processes (bytes their reads and writes moved)               added up
//   counters of a device              once for each kernel (boot) and device, then added up
//   processors, steal time            once for each kernel; another rank is no "other program"
//   page cache                        of the kernel that had most in memory; what devices can have served: added up
//   epochs                            by number: from the first rank to begin it; bytes as above
//   trust                             the worst, with its rank
//   ended                             why a rank ended all others, with its name
//   sentences                         each once; with its rank where not all ranks say it
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "replay/run/peers.h"
#include "replay/run/runner.h"

namespace reprise {

/// Where a rank ran.
struct RankPlace {
    PeerRow row;
    std::string boot;    // of its kernel (boot_id()): ranks of one share processors, memory and devices
    std::string device;  // below the root, as the kernel numbers it; empty: none
};
/// "rank 5 on host c"
std::string rank_name(const RankPlace& place);

struct RankRun {
    RankPlace place;
    ReplayResult result;
};

/// At least one, by rank. One is returned as it is. `output` is that of rank 0: who joins the logs sets it.
ReplayResult merge_results(std::vector<RankRun> ranks);

/// Of this kernel, and of what lies below a directory; empty where unknown.
std::string boot_id();
std::string device_number(const std::filesystem::path& root);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Commands that several ranks carry out together: started by mpirun or srun.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/table.h"
#include "hosts/hosts.h"
#include "replay/run/peers.h"

namespace reprise::cli {

/// Runs `body` with the other ranks, or with none where this process was started alone, and returns its exit code. What
/// fails on one rank ends all; rank 0 says why. Only rank 0 has an exit code other than 0.
int with_ranks(const std::function<int(Hosts*)>& body);

/// Throws Error (usage) where several ranks were started: `command` works on one host.
void refuse_ranks(const std::string& command);

/// The rank that the others waited for most.
struct Straggler {
    uint32_t rank = 0;
    int64_t waited_ns = 0;  // what all ranks together waited for each other
    double share = 0;       // of it, what they waited for this one
};
/// None where no rank waited for another.
std::optional<Straggler> straggler_of(const PeersReport& report);

/// What the ranks did, a row each, how far apart they started, and who held up the others.
void print_ranks(std::ostream& out, const PeersReport& report, size_t hosts);
Json ranks_json(const PeersReport& report);

}  // namespace reprise::cli

// SPDX-License-Identifier: MIT
// The events of a cluster in virtual time.
#pragma once

#include "replay/cluster/cluster.h"

namespace reprise {

/// As simulate_cluster(), for numbers that were checked; without ClusterResult::bound.
ClusterResult run_cluster(const JobProfile& profile, const ClusterOptions& options);

}  // namespace reprise

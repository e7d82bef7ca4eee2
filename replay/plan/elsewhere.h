// SPDX-License-Identifier: MIT
// A job whose recorded ranks several ranks of a replay perform: who starts what, and whom to tell of what is done.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "replay/plan/plan.h"

namespace reprise {

/// Leaves to this rank, `mine`, the processes that `rank_of` gives it, by ProcessId. A process whose spawner another
/// rank performs starts with the run there, and its first op waits for the spawn op. All ranks number the sources of
/// the plan alike.
void perform_only(Plan& plan, std::span<const uint32_t> rank_of, uint32_t mine);

/// Which published counts of a task that this rank performs other ranks wait for.
struct ToldTask {
    TaskId task = 0;
    std::vector<std::pair<uint32_t, uint32_t>> told;  // count and rank, ascending
};
std::vector<ToldTask> told_elsewhere(const Plan& plan, std::span<const uint32_t> rank_of, uint32_t mine);

}  // namespace reprise

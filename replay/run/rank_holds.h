// SPDX-License-Identifier: MIT
// For whom the ranks of a run waited in the end: who waits for a rank that itself waits for a third one waits for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/oplog/op.h"

namespace reprise {

/// An op that stood still for an op of another rank: of several, the last that came.
struct RankHold {
    static constexpr size_t kMost = 100'000;  // that a rank keeps; what is beyond goes to the rank that it waited for

    TaskId task = 0;
    uint64_t op = 0;
    int64_t ns = 0;
    uint32_t by_rank = 0;
    TaskId by = 0;
    uint64_t by_op = 0;
};

/// What one rank has to say: its holds, and the task whose waits count.
struct RankHolds {
    uint32_t rank = 0;
    TaskId waiter = 0;
    std::span<const RankHold> holds;
};

/// `waits`: what all ranks waited, by the rank that they waited for. Moves of it what that rank spent in waiting, at
/// the very op, for yet another one. The sum stays. Time that would come back to the rank that waited is left.
void pass_on(std::span<const RankHolds> ranks, std::vector<int64_t>& waits);

}  // namespace reprise

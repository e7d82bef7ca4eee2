// SPDX-License-Identifier: MIT
#include "replay/run/rank_holds.h"

#include <algorithm>
#include <tuple>

namespace reprise {

void pass_on(std::span<const RankHolds> ranks, std::vector<int64_t>& waits) {
    std::vector<RankHold> all;
    for (const RankHolds& rank : ranks) {
        all.insert(all.end(), rank.holds.begin(), rank.holds.end());
    }
    const auto before = [](const RankHold& a, const RankHold& b) {
        return std::tie(a.task, a.op) < std::tie(b.task, b.op);
    };
    std::stable_sort(all.begin(), all.end(), before);
    // The last of an op: its end is what others wait for.
    const auto of_op = [&](TaskId task, uint64_t op) -> const RankHold* {
        const auto at = std::upper_bound(all.begin(), all.end(), RankHold{task, op, 0, 0, 0, 0}, before);
        return at != all.begin() && (at - 1)->task == task && (at - 1)->op == op ? &*(at - 1) : nullptr;
    };
    const auto known = [&](const RankHold& hold) { return hold.by_rank < waits.size(); };
    for (const RankHolds& rank : ranks) {
        for (const RankHold& first : rank.holds) {
            if (first.task != rank.waiter || !known(first)) {
                continue;
            }
            const RankHold* hold = &first;
            int64_t left = first.ns;
            for (size_t further = 0; further < ranks.size(); ++further) {  // causes are no circle
                const RankHold* const next = of_op(hold->by, hold->by_op);
                if (next == nullptr || next->by_rank == rank.rank || !known(*next)) {
                    break;
                }
                left = std::min(left, next->ns);
                waits[hold->by_rank] -= left;
                waits[next->by_rank] += left;
                hold = next;
            }
        }
    }
}

}  // namespace reprise

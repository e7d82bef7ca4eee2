// SPDX-License-Identifier: MIT
// Sleeps up to points of a time grid: a player, a load at a fixed rate, a sampler.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/oplog/op.h"
#include "replay/plan/timers.h"

namespace reprise {

/// Where the ends of sleeps are evenly spaced although the sleeps differ in length, the program sleeps until a point in
/// time: what comes before takes from the sleep. Where the sleeps are equally long, it sleeps that long.
class PacedSleeps {
public:
    /// The ops of one task, in their order. ns.
    void see(uint64_t op, OpKind kind, int64_t arg, int64_t begin, int64_t duration);
    /// Of the task seen so far, ascending: all sleeps of a series but the first end as long after its begin as
    /// recorded. The next op is of another task.
    std::vector<Timer> take();

private:
    struct Sleep {
        uint64_t op = 0;
        int64_t begin = 0, duration = 0;
        int64_t end() const { return begin + duration; }
    };
    void series(size_t from, size_t to, std::vector<Timer>& out) const;

    std::vector<Sleep> sleeps_;
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Waits for locks that others held while they used files, which a replay does not take.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/plan/plan.h"

namespace reprise {

/// Sees all ops of a log, a block at a time and in any order.
class HeldLocks {
public:
    explicit HeldLocks(const Plan& plan) : plan_(plan) {}

    void see(const OpBlock& block, size_t i);
    /// Of the task that waited longest: ns of waits during a tenth of which, or more, one other task was in calls on
    /// files that the filter keeps; 0 where that is no more than 2 % of the recording. Reads the log again where there
    /// may be such. Short waits, which make no difference one by one, and those that the replay makes (find_guards())
    /// do not count.
    int64_t waited(int64_t span_ns);

private:
    struct Wait {
        int64_t begin = 0, end = 0;
        TaskId task = 0;
    };
    const Plan& plan_;
    std::vector<Wait> waits_;
};

}  // namespace reprise

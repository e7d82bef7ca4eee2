// SPDX-License-Identifier: MIT
// Ops of several tasks in the order of time, for a range of it, by way of the footer index.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>

#include "formats/oplog/oplog.h"

namespace reprise {

/// Ops that begin at or after `from` and before `to` (ns since the origin of the log).
struct TimeRange {
    int64_t from = std::numeric_limits<int64_t>::min();
    int64_t to = std::numeric_limits<int64_t>::max();

    bool operator==(const TimeRange&) const = default;
};

/// Calls visit(task, op, number within the task) by (begin, task, number). `tasks` empty: all. Only blocks that can
/// hold such ops are decoded; one per task is in memory, and only while the task has ops near the current time.
void for_each_between(const LogReader& log, TimeRange range, std::span<const TaskId> tasks,
                      const std::function<void(TaskId, const Op&, uint64_t)>& visit);

}  // namespace reprise

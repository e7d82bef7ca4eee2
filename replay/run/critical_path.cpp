// SPDX-License-Identifier: MIT
#include "replay/run/critical_path.h"

#include <algorithm>

namespace reprise {
namespace {

constexpr int kBits = 31;  // of each part
constexpr int64_t kMost = (int64_t{1} << (kBits - 1)) - 1;

int64_t part(int64_t ns) { return std::clamp(ns / PathRow::kUnit, -kMost, kMost); }

/// The wait of op `op` that was over last.
const WaitFor* last_released(const TaskPlan& task, uint64_t op, const std::function<int64_t(const WaitFor&)>& ended) {
    const auto first =
        std::partition_point(task.waits.begin(), task.waits.end(), [&](const WaitFor& wait) { return wait.op < op; });
    const WaitFor* last = nullptr;
    int64_t at = INT64_MIN;
    for (auto wait = first; wait != task.waits.end() && wait->op == op; ++wait) {
        if (const int64_t end = ended(*wait); end > at) {
            at = end;
            last = &*wait;
        }
    }
    return last;
}

}  // namespace

int64_t PathRow::pack() const {
    return part(added_ns) * (int64_t{1} << (kBits + 1)) + (part(behind_ns) * 2 & ((int64_t{1} << (kBits + 1)) - 1)) +
           (released ? 1 : 0);
}

PathRow PathRow::unpack(int64_t packed) {
    PathRow row;
    row.released = (packed & 1) != 0;
    row.added_ns = (packed >> (kBits + 1)) * kUnit;
    // The sign of the lower part is its highest bit.
    row.behind_ns = (static_cast<int64_t>(static_cast<uint64_t>(packed) << (64 - kBits - 1)) >> (64 - kBits)) * kUnit;
    return row;
}

int64_t added_on_critical_path(const Plan& plan, SharedRun& run, TaskId task, uint64_t last,
                               const std::function<int64_t(const WaitFor&)>& ended) {
    const auto row_of = [&](TaskId id, uint64_t op) {
        const SpoolRow& row = run.spool(plan.tasks[id].spool_first)[op];
        return (row.begin & kNotPerformed) == 0 ? PathRow::unpack(row.result) : PathRow{};
    };
    uint64_t op = last;
    int64_t added = row_of(task, op).behind_ns;
    bool begun = false;  // the path came from the begin of the op, not from its end
    for (uint64_t steps = 0; steps <= plan.ops; ++steps) {
        const TaskPlan& here = plan.tasks[task];
        const PathRow row = row_of(task, op);
        added += begun ? 0 : row.added_ns;
        begun = false;
        if (const WaitFor* const wait = row.released ? last_released(here, op, ended) : nullptr; wait != nullptr) {
            task = wait->task;
            op = wait->source;
            added += row_of(task, op).behind_ns;
        } else if (op != 0) {
            --op;
        } else if (here.spawner != 0) {
            op = here.spawn_op;
            task = here.spawner;
            added += row_of(task, op).behind_ns;
            begun = true;
        } else {
            break;
        }
    }
    return added;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/plan/elsewhere.h"

#include <algorithm>

namespace reprise {
namespace {

/// Nobody here can fork it: it starts with the run, and its first op waits for the spawn op.
void cut_spawn(Plan& plan, ProcessPlan& process) {
    const TaskId first = process.first_task;
    TaskPlan& task = plan.tasks[first];
    task.waits.insert(task.waits.begin(), {0, task.spawn_op, task.spawner, 0, EdgeKind::lifecycle});
    ++plan.edges_by_kind[static_cast<size_t>(EdgeKind::lifecycle)];
    process.tasks_at_start.insert(process.tasks_at_start.begin(), first);
    process.spawner = process.first_task = 0;
    task.spawner = 0;
    task.spawn_op = 0;
    task.spawn_begin = 0;
}

}  // namespace

void perform_only(Plan& plan, std::span<const uint32_t> rank_of, uint32_t mine) {
    bool cut = false;
    for (ProcessPlan& process : plan.processes) {
        const auto id = static_cast<size_t>(&process - plan.processes.data());
        if (process.spawner != 0 && process.first_task != 0 &&
            rank_of[plan.tasks[process.spawner].process] != rank_of[id]) {
            cut_spawn(plan, process);
            cut = true;
        }
    }
    if (cut) {
        number_sources(plan);
    }
    plan.rank_of.assign(rank_of.begin(), rank_of.end());
    plan.elsewhere.assign(plan.processes.size(), 0);
    for (ProcessId process = 1; process < plan.processes.size(); ++process) {
        plan.elsewhere[process] = rank_of[process] != mine ? 1 : 0;
    }
    for (const ToldTask& each : told_elsewhere(plan, rank_of, mine)) {
        std::vector<uint32_t>& told = plan.tasks[each.task].told;
        for (const auto& [count, rank] : each.told) {
            if (told.empty() || told.back() != count) {
                told.push_back(count);
            }
        }
    }
}

std::vector<ToldTask> told_elsewhere(const Plan& plan, std::span<const uint32_t> rank_of, uint32_t mine) {
    std::vector<ToldTask> all;
    for (TaskId id = 1; id < plan.tasks.size(); ++id) {
        const TaskPlan& task = plan.tasks[id];
        if (rank_of[task.process] != mine) {
            continue;
        }
        ToldTask one{id, {}};
        for (uint32_t source = 0; source < task.sources.size(); ++source) {
            for (uint32_t i = task.listens[source]; i < task.listens[source + 1]; ++i) {
                if (const uint32_t rank = rank_of[plan.tasks[task.listeners[i].task].process]; rank != mine) {
                    one.told.emplace_back(source + 1, rank);
                }
            }
        }
        std::sort(one.told.begin(), one.told.end());
        one.told.erase(std::unique(one.told.begin(), one.told.end()), one.told.end());
        if (!one.told.empty()) {
            all.push_back(std::move(one));
        }
    }
    return all;
}

}  // namespace reprise

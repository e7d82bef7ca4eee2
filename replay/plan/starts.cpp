// SPDX-License-Identifier: MIT
// Who starts whom: which processes and tasks begin with the run, which with an op of another task.
#include <algorithm>
#include <queue>
#include <vector>

#include "replay/plan/plan.h"

namespace reprise {

void plan_starts(Plan& plan, const std::vector<SpawnSite>& sites, const std::vector<uint8_t>& spawn_refused) {
    std::vector<std::vector<const SpawnSite*>> by_spawner(plan.tasks.size());
    std::vector<const SpawnSite*> by_peer(plan.tasks.size(), nullptr);
    uint64_t refused = 0;
    for (const SpawnSite& site : sites) {
        if (site.peer < spawn_refused.size() && spawn_refused[site.peer] != 0) {
            ++refused;
            continue;
        }
        by_spawner[site.spawner].push_back(&site);
        by_peer[site.peer] = &site;
    }
    // The spawn op that makes a process is the first one that names a task of it from outside.
    std::vector<const SpawnSite*> process_site(plan.processes.size(), nullptr);
    for (const SpawnSite& site : sites) {
        const ProcessId child = plan.tasks[site.peer].process;
        if (by_peer[site.peer] == &site && plan.tasks[site.spawner].process != child &&
            process_site[child] == nullptr) {
            process_site[child] = &site;
        }
    }
    std::vector<bool> process_started(plan.processes.size()), task_started(plan.tasks.size());
    std::vector<std::vector<TaskId>> members(plan.processes.size());
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        members[plan.tasks[task].process].push_back(task);
    }
    std::queue<TaskId> reached;
    const auto start_task = [&](TaskId task, const SpawnSite* site) {
        task_started[task] = true;
        plan.tasks[task].spawner = site != nullptr ? site->spawner : 0;
        plan.tasks[task].spawn_op = site != nullptr ? site->op : 0;
        plan.tasks[task].spawn_begin = site != nullptr ? site->begin : 0;
        if (site != nullptr) {
            plan.tasks[site->spawner].spawns.push_back(site->op);
        }
        reached.push(task);
    };
    const auto start_process = [&](ProcessId process, const SpawnSite* site) {
        process_started[process] = true;
        ProcessPlan& row = plan.processes[process];
        if (site != nullptr) {
            row.spawner = site->spawner;
            row.first_task = site->peer;
            start_task(site->peer, site);
        }
        for (const TaskId task : members[process]) {
            const SpawnSite* const own = by_peer[task];
            const bool by_thread = own != nullptr && plan.tasks[own->spawner].process == process;
            if (!task_started[task] && !by_thread) {
                row.tasks_at_start.push_back(task);
                start_task(task, nullptr);
            }
        }
    };
    const auto follow = [&] {
        while (!reached.empty()) {
            const TaskId spawner = reached.front();
            reached.pop();
            for (const SpawnSite* site : by_spawner[spawner]) {
                const ProcessId child = plan.tasks[site->peer].process;
                if (child == plan.tasks[spawner].process) {
                    if (!task_started[site->peer]) {
                        start_task(site->peer, site);
                    }
                } else if (!process_started[child] && process_site[child] == site) {
                    start_process(child, site);
                }
            }
        }
    };
    for (ProcessId process = 1; process < plan.processes.size(); ++process) {
        if (process_site[process] == nullptr) {
            start_process(process, nullptr);
        }
    }
    follow();
    // Whatever is left hangs on a circle of spawns that cannot be true.
    for (ProcessId process = 1; process < plan.processes.size(); ++process) {
        if (!process_started[process]) {
            ++refused;
            start_process(process, nullptr);
            follow();
        }
        for (const TaskId task : members[process]) {
            if (!task_started[task]) {
                ++refused;
                plan.processes[process].tasks_at_start.push_back(task);
                start_task(task, nullptr);
                follow();
            }
        }
    }
    for (TaskPlan& task : plan.tasks) {
        std::sort(task.spawns.begin(), task.spawns.end());
    }
    if (refused != 0) {
        plan.count(Count::spawns_not_followed, refused);
    }
}

}  // namespace reprise

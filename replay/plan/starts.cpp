// SPDX-License-Identifier: MIT
// Who starts whom: which processes and tasks begin with the run, which with an op of another task.
#include <algorithm>
#include <queue>
#include <vector>

#include "replay/plan/plan.h"

namespace reprise {
namespace {

/// Starts every task once: those of processes that nobody spawns first, then what their spawn ops reach.
class Starts {
public:
    Starts(Plan& plan, const std::vector<SpawnSite>& sites, const std::vector<uint8_t>& spawn_refused)
        : plan_(plan),
          by_spawner_(plan.tasks.size()),
          by_peer_(plan.tasks.size(), nullptr),
          process_site_(plan.processes.size(), nullptr),
          members_(plan.processes.size()),
          process_started_(plan.processes.size()),
          task_started_(plan.tasks.size()) {
        for (const SpawnSite& site : sites) {
            if (site.peer < spawn_refused.size() && spawn_refused[site.peer] != 0) {
                ++refused_;
                continue;
            }
            by_spawner_[site.spawner].push_back(&site);
            by_peer_[site.peer] = &site;
        }
        // The spawn op that makes a process is the first one that names a task of it from outside.
        for (const SpawnSite& site : sites) {
            const ProcessId child = plan.tasks[site.peer].process;
            if (by_peer_[site.peer] == &site && plan.tasks[site.spawner].process != child &&
                process_site_[child] == nullptr) {
                process_site_[child] = &site;
            }
        }
        for (TaskId task = 1; task < plan.tasks.size(); ++task) {
            members_[plan.tasks[task].process].push_back(task);
        }
    }

    void run() {
        for (ProcessId process = 1; process < plan_.processes.size(); ++process) {
            if (process_site_[process] == nullptr) {
                start_process(process, nullptr);
            }
        }
        follow();
        break_cycles();
    }
    /// Tasks whose spawn op was not followed.
    uint64_t refused() const { return refused_; }

private:
    void start_task(TaskId task, const SpawnSite* site) {
        task_started_[task] = true;
        plan_.tasks[task].spawner = site != nullptr ? site->spawner : 0;
        plan_.tasks[task].spawn_op = site != nullptr ? site->op : 0;
        plan_.tasks[task].spawn_begin = site != nullptr ? site->begin : 0;
        if (site != nullptr) {
            plan_.tasks[site->spawner].spawns.push_back(site->op);
        }
        reached_.push(task);
    }

    void start_process(ProcessId process, const SpawnSite* site) {
        process_started_[process] = true;
        ProcessPlan& row = plan_.processes[process];
        if (site != nullptr) {
            row.spawner = site->spawner;
            row.first_task = site->peer;
            start_task(site->peer, site);
        }
        for (const TaskId task : members_[process]) {
            const SpawnSite* const own = by_peer_[task];
            const bool by_thread = own != nullptr && plan_.tasks[own->spawner].process == process;
            if (!task_started_[task] && !by_thread) {
                row.tasks_at_start.push_back(task);
                start_task(task, nullptr);
            }
        }
    }

    /// Starts what the tasks reached so far spawn.
    void follow() {
        for (; !reached_.empty(); reached_.pop()) {
            const TaskId spawner = reached_.front();
            for (const SpawnSite* site : by_spawner_[spawner]) {
                const ProcessId child = plan_.tasks[site->peer].process;
                if (child == plan_.tasks[spawner].process) {
                    if (!task_started_[site->peer]) {
                        start_task(site->peer, site);
                    }
                } else if (!process_started_[child] && process_site_[child] == site) {
                    start_process(child, site);
                }
            }
        }
    }

    /// Whatever is left spawns itself in a cycle, which cannot be true.
    void break_cycles() {
        for (ProcessId process = 1; process < plan_.processes.size(); ++process) {
            if (!process_started_[process]) {
                ++refused_;
                start_process(process, nullptr);
                follow();
            }
            for (const TaskId task : members_[process]) {
                if (!task_started_[task]) {
                    ++refused_;
                    plan_.processes[process].tasks_at_start.push_back(task);
                    start_task(task, nullptr);
                    follow();
                }
            }
        }
    }

    Plan& plan_;
    std::vector<std::vector<const SpawnSite*>> by_spawner_;
    std::vector<const SpawnSite*> by_peer_, process_site_;
    std::vector<std::vector<TaskId>> members_;  // of each process
    std::vector<bool> process_started_, task_started_;
    std::queue<TaskId> reached_;
    uint64_t refused_ = 0;
};

}  // namespace

void plan_starts(Plan& plan, const std::vector<SpawnSite>& sites, const std::vector<uint8_t>& spawn_refused) {
    Starts starts(plan, sites, spawn_refused);
    starts.run();
    for (TaskPlan& task : plan.tasks) {
        std::sort(task.spawns.begin(), task.spawns.end());
    }
    if (starts.refused() != 0) {
        plan.count(Count::spawns_not_followed, starts.refused());
    }
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/run/watchdog.h"

#include <algorithm>

#include "formats/support/error.h"

namespace reprise {
namespace {

constexpr int64_t kStalled = 2'000'000'000;
// No task ran for so long, and still there is no dependency cycle: the source of some wait never comes.
constexpr int64_t kNoSource = 30'000'000'000;

}  // namespace

Watchdog::Wait Watchdog::wait_of(TaskId task) const {
    const TaskSlot& slot = run_.task(task);
    const TaskPlan& plan = plan_.tasks[task];
    if (slot.elsewhere) {
        return {};
    }
    if (slot.state.load() == TaskState::waiting_for_start) {
        const ProcessPlan& process = plan_.processes[plan.process];
        const TaskId starter = plan.spawner != 0 ? plan.spawner : process.spawner;
        const bool started = starter == 0 || (plan.spawner != 0 ? slot.spawned_tick.load() != 0
                                                                : run_.process(plan.process).pid.load() != 0);
        return {0, started ? TaskId{0} : starter};  // already started: it will run soon
    }
    const uint64_t edge = slot.waits_edge.load();
    if (edge == 0 || edge > plan.waits.size() || slot.let_go.load() >= edge) {
        return {};
    }
    const WaitFor& wait = plan.waits[edge - 1];
    const bool arrived = run_.task(wait.task).published.load() >= wait.count;
    return arrived ? Wait{} : Wait{edge, wait.task};
}

bool Watchdog::any_runs() const {
    for (TaskId task = 1; task < plan_.tasks.size(); ++task) {
        const TaskSlot& slot = run_.task(task);
        if (slot.state.load() == TaskState::running && slot.waits_edge.load() == 0 &&
            slot.needs_requests.load() != TaskSlot::kNeedsRequests) {
            return true;
        }
    }
    return false;
}

/// Gives up the weakest wait among these tasks. False where none waits for an edge.
bool Watchdog::give_up(const std::vector<TaskId>& tasks) {
    TaskId weakest = 0;
    for (const TaskId task : tasks) {
        const uint64_t edge = waits_[task].edge;
        if (edge == 0) {
            continue;
        }
        const auto rank = [&](TaskId of) { return evidence_rank(plan_.tasks[of].waits[waits_[of].edge - 1].kind); };
        if (weakest == 0 || rank(task) < rank(weakest)) {
            weakest = task;
        }
    }
    if (weakest == 0) {
        return false;
    }
    const WaitFor& wait = plan_.tasks[weakest].waits[waits_[weakest].edge - 1];
    broken_.push_back({weakest, wait.op, kind_of(weakest, wait.op), wait.task, wait.source, wait.kind});
    run_.task(weakest).let_go.store(waits_[weakest].edge);
    rouse(run_.task(weakest));
    return true;
}

/// Those that wait for requests which nobody makes.
bool Watchdog::give_up_requests() {
    bool any = false;
    for (TaskId task = 1; task < plan_.tasks.size(); ++task) {
        TaskSlot& slot = run_.task(task);
        uint32_t needs = TaskSlot::kNeedsRequests;
        if (slot.needs_requests.compare_exchange_strong(needs, TaskSlot::kGivesUp)) {
            const uint64_t op = slot.done.load();
            broken_.push_back({task, op, kind_of(task, op), 0, 0, EdgeKind::reaped});
            any = true;
        }
    }
    return any;
}

bool Watchdog::look(int64_t now_ns, bool others_run) {
    const size_t tasks = plan_.tasks.size();
    waits_.resize(tasks);
    for (TaskId task = 1; task < tasks; ++task) {
        waits_[task] = wait_of(task);
        TaskSlot& slot = run_.task(task);
        if (const uint64_t edge = slot.waits_edge.load(); edge != 0 && slot.let_go.load() >= edge) {
            rouse(slot);  // not seen yet
        }
    }
    seen_.assign(tasks, 0);
    bool any = false;
    std::vector<TaskId> cycle;
    for (TaskId from = 1; from < tasks; ++from) {
        TaskId at = from;
        while (at != 0 && seen_[at] == 0) {
            seen_[at] = from;
            at = waits_[at].next;
        }
        if (at == 0 || seen_[at] != from) {
            continue;
        }
        cycle.clear();
        bool holds = true;
        for (TaskId task = at; cycle.empty() || task != at; task = waits_[task].next) {
            cycle.push_back(task);
            // Edges of a task are waited for in order, so one that it waited for before and after the look at the
            // others it waited for all the time: the cycle is real, whatever ran meanwhile.
            const Wait again = wait_of(task);
            holds = holds && again.edge == waits_[task].edge && again.next == waits_[task].next;
        }
        any = (holds && give_up(cycle)) || any;
    }
    if (any || others_run || any_runs() || ran_ns_ == 0) {
        ran_ns_ = now_ns;
    } else if (now_ns - ran_ns_ > kNoSource) {
        std::vector<TaskId> all;
        for (TaskId task = 1; task < tasks; ++task) {
            all.push_back(task);
        }
        any = give_up_requests() || give_up(all);
        ran_ns_ = now_ns;
    }
    return any;
}

std::string Watchdog::stalled(int64_t now_ns) {
    uint64_t done = 0;
    TaskId runs = 0, waits = 0;  // the last ones found; a wait for what runs rather than another
    for (TaskId task = 1; task < plan_.tasks.size(); ++task) {
        const TaskSlot& slot = run_.task(task);
        done += slot.done.load(std::memory_order_relaxed);
        const TaskState state = slot.state.load(std::memory_order_relaxed);
        if (state != TaskState::running && state != TaskState::waiting_for_edge) {
            continue;
        }
        (slot.waits_edge.load(std::memory_order_relaxed) == 0 ? runs : waits) = task;
    }
    const auto wait_at = [&](TaskId task) -> const WaitFor* {
        const uint64_t edge = run_.task(task).waits_edge.load(std::memory_order_relaxed);
        return edge == 0 || edge > plan_.tasks[task].waits.size() ? nullptr : &plan_.tasks[task].waits[edge - 1];
    };
    for (TaskId task = 1; runs != 0 && task < plan_.tasks.size(); ++task) {
        if (const WaitFor* wait = wait_at(task); wait != nullptr && wait->task == runs) {
            waits = task;
        }
    }
    if (done != done_ || (runs == 0 && waits == 0)) {
        done_ = done;
        moved_ns_ = now_ns;
    }
    if (now_ns - moved_ns_ < kStalled) {
        return {};
    }
    const auto name = [&](TaskId task, uint64_t op) {
        return "op " + std::to_string(op) + " (" + std::string(info(kind_of(task, op)).name) + ") of task " +
               std::to_string(task);
    };
    // The running task blocks the others.
    std::string text = runs == 0 ? std::string() : name(runs, run_.task(runs).done.load()) + " takes its time";
    if (const WaitFor* wait = waits == 0 ? nullptr : wait_at(waits); wait != nullptr) {
        text += (text.empty() ? "" : "; ") + name(waits, wait->op) + " waits for " + name(wait->task, wait->source) +
                " (edge: " + std::string(edge_name(wait->kind)) + ")";
    }
    return text;
}

OpKind Watchdog::kind_of(TaskId task, uint64_t op) {
    for (const BlockInfo& where : plan_.tasks[task].blocks) {
        if (op < where.first || op - where.first >= where.ops) {
            continue;
        }
        if (block_.task != task || block_.first != where.first || block_.count() != where.ops) {
            try {
                plan_.log->decode(where, block_);
            } catch (const Error&) {
                break;  // reported by the task itself
            }
        }
        return static_cast<OpKind>(block_.kind[op - where.first]);
    }
    return OpKind::wait;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// The numbering of what tasks wait for: each waiter knows how far its source has to be, each source whom to wake.
#include <algorithm>
#include <numeric>

#include "replay/plan/plan.h"

namespace reprise {

void number_sources(Plan& plan) {
    for (TaskPlan& task : plan.tasks) {
        task.sources.clear();
    }
    for (TaskPlan& task : plan.tasks) {
        std::stable_sort(task.waits.begin(), task.waits.end(),
                         [](const WaitFor& a, const WaitFor& b) { return a.op < b.op; });
        for (const WaitFor& wait : task.waits) {
            plan.tasks[wait.task].sources.push_back(wait.source);
        }
    }
    for (TaskPlan& task : plan.tasks) {
        std::sort(task.sources.begin(), task.sources.end());
        task.sources.erase(std::unique(task.sources.begin(), task.sources.end()), task.sources.end());
        task.listens.assign(task.sources.size() + 1, 0);
    }
    for (TaskPlan& task : plan.tasks) {
        for (WaitFor& wait : task.waits) {
            TaskPlan& source = plan.tasks[wait.task];
            const auto at = std::lower_bound(source.sources.begin(), source.sources.end(), wait.source);
            wait.count = static_cast<uint32_t>(at - source.sources.begin()) + 1;
            ++source.listens[wait.count];
        }
    }
    for (TaskPlan& task : plan.tasks) {
        std::partial_sum(task.listens.begin(), task.listens.end(), task.listens.begin());
        task.listeners.resize(task.listens.back());
    }
    // Each list is filled from its begin on, which moves to its end, the begin of the next: as it was, one further.
    for (TaskId id = 0; id < plan.tasks.size(); ++id) {
        const auto& waits = plan.tasks[id].waits;
        for (size_t i = 0; i < waits.size(); ++i) {
            TaskPlan& source = plan.tasks[waits[i].task];
            source.listeners[source.listens[waits[i].count - 1]++] = {id, static_cast<uint32_t>(i + 1)};
        }
    }
    for (TaskPlan& task : plan.tasks) {
        std::rotate(task.listens.begin(), task.listens.end() - 1, task.listens.end());
        task.listens.front() = 0;
    }
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/plan/looks.h"

#include <algorithm>
#include <utility>

#include "replay/plan/plan.h"
#include "replay/plan/polls.h"

namespace reprise {
namespace {

constexpr size_t kLeastSameLooks = 3;

void join_looks(Plan& plan, TaskId id) {
    TaskPlan& task = plan.tasks[id];
    std::vector<LookSleep>& sleeps = task.looks.sleeps;
    settle_explained(task);
    std::erase_if(sleeps, [&](const LookSleep& each) {  // those of a sampler
        return each.child == 0 && std::binary_search(task.explained.begin(), task.explained.end(), each.op);
    });
    size_t first = 0;  // that nobody has ended yet
    for (size_t i = 0; i < sleeps.size(); ++i) {
        first = sleeps[i].follows ? first : i;
        // That the child which makes the file has ended is as good.
        auto wait = std::lower_bound(task.waits.begin(), task.waits.end(), sleeps[i].since,
                                     [](const WaitFor& each, uint64_t op) { return each.op < op; });
        wait = std::find_if(wait, task.waits.end(), [&](const WaitFor& each) {
            return each.task != sleeps[i].child || each.op > sleeps[i].last;
        });
        if (wait == task.waits.end() || wait->op > sleeps[i].last) {
            continue;
        }
        plan.count(Count::waits_joined, i + 1 - first);
        LookGrid grid{sleeps[first].since, sleeps[i].first, sleeps[i].last, {}, 0};
        for (size_t k = first; k <= i && grid.sleeps.size() < kMostLookSleeps; ++k) {
            grid.sleeps.push_back(sleeps[k].ns);
        }
        task.look_grids.push_back(std::move(grid));
        if (i + 1 < sleeps.size()) {
            sleeps[i + 1].follows = false;
        }
        for (; first <= i; ++first) {
            const int64_t slept = std::exchange(sleeps[first].ns, 0);
            task.look_grids.back().children += sleeps[first].child != 0 ? 1 : 0;
            if (const TaskId child = sleeps[first].child; child != 0 && child < plan.tasks.size()) {
                for (const uint64_t op : sleeps_alone(*plan.log, *plan.selector, child)) {
                    plan.tasks[child].explained.push_back(op);
                }
                settle_explained(plan.tasks[child]);
                continue;
            }
            task.explained.push_back(sleeps[first].op);
            if (id < plan.helpers.tasks.size() && plan.helpers.tasks[id].beats_at(sleeps[first].op)) {
                plan.helpers.beats_ns -= std::min(plan.helpers.beats_ns, slept);
            }
        }
    }
    settle_explained(task);
}

int64_t unexplained_looks(const TaskPlan& task) {
    int64_t all = 0, ns = 0;
    size_t count = 0;
    const auto leave = [&] {
        all += count >= kLeastSameLooks ? ns : 0;
        ns = 0;
        count = 0;
    };
    for (const LookSleep& each : task.looks.sleeps) {
        if (!each.follows) {
            leave();
        }
        if (each.ns == 0 ||
            (each.child == 0 && std::binary_search(task.explained.begin(), task.explained.end(), each.op))) {
            leave();
            continue;
        }
        ns += each.ns;
        ++count;
    }
    leave();
    return all;
}

}  // namespace

void join_looks(Plan& plan) {
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        if (!plan.tasks[task].looks.sleeps.empty()) {
            join_looks(plan, task);
        }
        std::sort(plan.tasks[task].look_grids.begin(), plan.tasks[task].look_grids.end(),
                  [](const LookGrid& a, const LookGrid& b) { return a.since < b.since; });
    }
}

int64_t unexplained_looks(const Plan& plan) {
    int64_t all = 0;
    for (const TaskPlan& task : plan.tasks) {
        all += unexplained_looks(task);
    }
    return all;
}

}  // namespace reprise

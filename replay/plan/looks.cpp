// SPDX-License-Identifier: MIT
#include "replay/plan/looks.h"

#include <algorithm>
#include <utility>

#include "replay/plan/plan.h"
#include "replay/plan/polls.h"

namespace reprise {
namespace {

constexpr size_t kLeastSameLooks = 3;

int64_t join_looks(Plan& plan, TaskId id) {
    TaskPlan& task = plan.tasks[id];
    std::vector<LookSleep>& sleeps = task.looks.sleeps;
    settle_explained(task);
    std::erase_if(sleeps, [&](const LookSleep& each) {  // those of a sampler
        return each.child == 0 && std::binary_search(task.explained.begin(), task.explained.end(), each.op);
    });
    size_t first = 0;  // that nobody has ended yet
    int64_t ns = 0, unexplained = 0;
    const auto leave = [&](size_t end) {
        unexplained += end - first >= kLeastSameLooks ? ns : 0;
        first = end;
        ns = 0;
    };
    for (size_t i = 0; i < sleeps.size(); ++i) {
        if (!sleeps[i].follows) {
            leave(i);
        }
        ns += sleeps[i].ns;
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
        for (; first <= i; ++first) {
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
                plan.helpers.beats_ns -= std::min(plan.helpers.beats_ns, sleeps[first].ns);
            }
        }
        ns = 0;
    }
    leave(sleeps.size());
    settle_explained(task);
    return unexplained;
}

}  // namespace

int64_t join_looks(Plan& plan) {
    int64_t unexplained = 0;
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        if (!plan.tasks[task].looks.sleeps.empty()) {
            unexplained += join_looks(plan, task);
        }
        std::sort(plan.tasks[task].look_grids.begin(), plan.tasks[task].look_grids.end(),
                  [](const LookGrid& a, const LookGrid& b) { return a.since < b.since; });
    }
    return unexplained;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/plan/sleeping_looks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "formats/support/sums.h"
#include "replay/plan/plan.h"

namespace reprise {
namespace {

/// Longer computing is no look, ns.
constexpr int64_t kMostLookedFor = 200'000;
/// Sleeps on end.
constexpr size_t kMostSleeps = size_t{1} << 16;
/// -ln of how likely chance puts the first result in one of the last two sleeps each time, and how often it has to be
/// there.
constexpr double kSleepEvidence = 12, kMostlyLast = 0.95;
/// As many in a row Polls takes for sleeps that somebody might end.
constexpr size_t kRepeatedSleeps = 3;

}  // namespace

void SleepingLooks::restart() {
    now_ = {};
    first_at_ = 0;
}

void SleepingLooks::at(TaskId task, uint64_t op) {
    if (task != task_ || op != next_) {
        restart();
        looked_ = false;
    }
    task_ = task;
    next_ = op + 1;
}

void SleepingLooks::follows(uint64_t op) {
    if (!now_.sleeps.empty() && now_.next == 0) {
        now_.next = op;
    }
}

void SleepingLooks::slept(TaskId task, uint64_t op, int64_t begin, int64_t ns) {
    at(task, op);
    now_.next = 0;
    if (now_.sleeps.size() < kMostSleeps) {
        now_.sleeps.push_back({op, begin, std::max<int64_t>(ns, 0), looked_});
    }
    looked_ = false;
}

void SleepingLooks::computed(TaskId task, uint64_t op, int64_t ns) {
    at(task, op);
    follows(op);
    if (ns > kMostLookedFor && first_at_ == 0) {
        restart();
        looked_ = false;
    }
}

void SleepingLooks::looked(TaskId task, uint64_t op, bool none) {
    at(task, op);
    follows(op);
    looked_ = none;
}

void SleepingLooks::result(TaskId task, uint64_t op, uint32_t request, bool aio, uint64_t reaped) {
    at(task, op);
    if (now_.sleeps.empty()) {
        return;
    }
    if (aio) {
        // Sleeps before the first look are the job's own.
        const auto first =
            std::find_if(now_.sleeps.begin(), now_.sleeps.end(), [](const auto& one) { return one.looked; });
        now_.sleeps.erase(now_.sleeps.begin(), first);
        if (!now_.sleeps.empty()) {
            found_.push_back({task, request, true, reaped, std::move(now_.sleeps), now_.next});
        }
        restart();
    } else if (first_at_ == 0) {
        first_at_ = now_.sleeps.size();
        now_.request = request;
        now_.reaped = reaped;
    }
}

void SleepingLooks::requests(TaskId task, uint64_t op) {
    at(task, op);
    follows(op);
    if (const size_t sleeps = now_.sleeps.size(); first_at_ != 0) {
        // In the last but one, where it came after the look at the end of that.
        const bool in_last = first_at_ + 1 >= sleeps;
        if (sleeps > 2) {
            Evidence& evidence = evidence_[task];
            ++(in_last ? evidence.in_last : evidence.before);
            evidence.chance += in_last ? std::log(static_cast<double>(sleeps) / 2) : 0;
        }
        if (in_last) {
            now_.task = task;
            found_.push_back(std::move(now_));
        }
    }
    restart();
    looked_ = false;
}

std::vector<SleptFor> SleepingLooks::take() {
    std::erase_if(found_, [&](const SleptFor& each) {
        if (each.aio) {
            return false;
        }
        const auto of = evidence_.find(each.task);
        return of == evidence_.end() || of->second.chance < kSleepEvidence ||
               static_cast<double>(of->second.in_last) <
                   kMostlyLast * static_cast<double>(of->second.in_last + of->second.before);
    });
    return std::exchange(found_, {});
}

int64_t sleep_until_results(Plan& plan, const std::vector<SleptFor>& all) {
    int64_t repeated = 0;
    for (const SleptFor& each : all) {
        TaskPlan& task = plan.tasks[each.task];
        LookGrid grid{each.sleeps.front().op, each.next, each.next, {}, 0, true};
        int64_t ns = 0;
        for (const SleptFor::Sleep& sleep : each.sleeps) {
            sum(ns, sleep.ns);
            task.requests.polls.push_back(sleep.op);
            if (grid.sleeps.size() < kMostLookSleeps) {
                grid.sleeps.push_back(sleep.ns);
            }
            if (each.task < plan.helpers.tasks.size() && plan.helpers.tasks[each.task].beats_at(sleep.op)) {
                plan.helpers.beats_ns -= std::min(plan.helpers.beats_ns, sleep.ns);
            }
        }
        plan.count(Count::waits_joined, each.sleeps.size() - 1);
        task.look_grids.push_back(std::move(grid));
        sum(repeated, !each.aio && each.sleeps.size() >= kRepeatedSleeps ? ns : 0);
    }
    return repeated;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/plan/timer_wheel.h"

#include <algorithm>
#include <map>

#include "replay/plan/edges_rules.h"
#include "replay/plan/plan.h"
#include "replay/plan/polls.h"

namespace reprise {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSlot = 64 * kMs;
// A wait ends up to a millisecond after what was asked for, as time-outs are whole ones, and a little later still.
constexpr int64_t kRounded = 3 * kMs / 2;
constexpr int64_t kMostComputed = 200'000;  // ns, to sort timers
// By chance four are that close together once in 19,000 times: 4 (1.5 / 64)^3.
constexpr size_t kLeast = 4;
// A job with timers of its own has others: one in eight at most.
constexpr size_t kOthers = 8;
// Waits of one length that follow one another in an even rhythm are sleeps. What is left until the next slot differs.
constexpr int64_t kLeastSpread = 8;  // ms
constexpr size_t kMostExpired = size_t{1} << 20;

}  // namespace

void TimerWheel::see(const OpBlock& block, size_t i) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    if (kind == OpKind::compute) {
        computed_ += std::min(block.duration[i], kSlot);
        open_ = open_ && computed_ <= kMostComputed;
        return;
    }
    const int64_t arg = block.arg[i];
    const bool waits = kind == OpKind::wait && !is_lock_wait(arg) && arg != kWaitWokeOthers;
    if (open_ && waits) {
        expired_.back().next = block.first + i;
    }
    open_ = false;
    const int64_t begin = block.begin[i];
    if (waits && wait_class(arg) == kWaitEpoll && ended_by_time(arg, block.result[i]) && begin >= 0 &&
        expired_.size() < kMostExpired) {
        expired_.push_back({0, block.first + i, 0, OpRef::end_of(begin, block.duration[i]), epoll_timeout(arg)});
        open_ = true;
        computed_ = 0;
    }
}

void TimerWheel::end_task(TaskId task) {
    for (; of_task_ < expired_.size(); ++of_task_) {
        expired_[of_task_].task = task;
    }
    open_ = false;
}

void TimerWheel::join_process(Plan& plan, std::vector<Expired>& expired) {
    if (expired.size() < kLeast) {
        return;
    }
    // Where the slots begin: the moment after which most of them run out.
    std::vector<int64_t> phases;
    phases.reserve(2 * expired.size());
    for (const Expired& each : expired) {
        phases.push_back(each.end % kSlot);
        phases.push_back(each.end % kSlot + kSlot);
    }
    std::sort(phases.begin(), phases.end());
    size_t most = 0, first = 0;
    for (size_t from = 0, to = 0; from < phases.size(); ++from) {
        while (to < phases.size() && phases[to] - phases[from] <= kRounded) {
            ++to;
        }
        if (to - from > most) {
            most = to - from;
            first = from;
        }
    }
    const size_t others = expired.size() - most;
    if (most < kLeast || others * kOthers > most) {
        return;
    }
    const int64_t phase = phases[first] % kSlot;
    std::erase_if(expired, [&](const Expired& each) { return (each.end % kSlot - phase + kSlot) % kSlot > kRounded; });
    const auto [least, greatest] = std::minmax_element(
        expired.begin(), expired.end(), [](const Expired& a, const Expired& b) { return a.timeout_ms < b.timeout_ms; });
    if (greatest->timeout_ms - least->timeout_ms < kLeastSpread) {
        return;
    }
    for (size_t i = 0; i < expired.size(); ++i) {
        if (i == 0 || expired[i].task != expired[i - 1].task) {
            settle_explained(plan.tasks[expired[i].task]);
        }
    }
    // The last ones first: what a wait goes on with may be one as well.
    std::vector<uint64_t> joined;
    for (auto each = expired.rbegin(); each != expired.rend(); ++each) {
        TaskPlan& task = plan.tasks[each->task];
        const auto is_explained = [&](uint64_t op) {
            return std::binary_search(task.explained.begin(), task.explained.end(), op);
        };
        if (each != expired.rbegin() && (each - 1)->task != each->task) {
            joined.clear();
        }
        const bool goes_on = !joined.empty() && joined.back() == each->next;
        if (each->next != 0 && !is_explained(each->op) && (is_explained(each->next) || goes_on)) {
            joined.push_back(each->op);
            plan.count(Count::waits_joined);
        }
        const bool last_of_task = each + 1 == expired.rend() || (each + 1)->task != each->task;
        if (last_of_task && !joined.empty()) {
            task.explained.insert(task.explained.end(), joined.begin(), joined.end());
            settle_explained(task);
        }
    }
}

void TimerWheel::join(Plan& plan) const {
    std::map<ProcessId, std::vector<Expired>> by_process;
    for (const Expired& each : expired_) {
        by_process[plan.tasks[each.task].process].push_back(each);
    }
    for (auto& [process, expired] : by_process) {
        join_process(plan, expired);
    }
}

}  // namespace reprise

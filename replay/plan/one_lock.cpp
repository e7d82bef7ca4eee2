// SPDX-License-Identifier: MIT
#include "replay/plan/one_lock.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "formats/oplog/time_order.h"
#include "replay/plan/edges_rules.h"
#include "replay/plan/plan.h"

namespace reprise {
namespace {

/// Handing the lock over looks like an overlap of as much, ns.
constexpr int64_t kHandOver = 1'000;
/// Less would not be seen to overlap: 2 us.
constexpr size_t kShortest = 12;
/// Overlaps, as a share of those that there would be by chance: of all that is as short, and of one length alone.
constexpr double kMostOfAll = 0.6, kMostOfLength = 0.8;
/// With fewer expected overlaps, none says nothing: of one length, of a task.
constexpr double kLeastOfLength = 5, kLeastOfTask = 20;
/// From 64 us on computing lasts longer than threads meet.
constexpr size_t kTelling = 17;
/// Computing that others waited for: so often, and as a share.
constexpr double kLeastWaited = 8, kWaitedShare = 0.2;
/// Thousands may wait at once: a few tell as much.
constexpr size_t kMostWaiting = 64;

/// The bits of lengths up to that one.
constexpr uint64_t up_to(size_t length) { return (uint64_t{2} << length) - 1; }

}  // namespace

void OneLock::ended(const Running& computing) {
    const int64_t duration = computing.end - computing.begin;
    if (2 * computing.waited_for >= duration) {
        ++tasks_[computing.task][length_of(duration)].waited_for;
    }
}

/// What is over by then, or was of that task.
void OneLock::end_before(TaskId task, int64_t begin) {
    std::erase_if(running_, [&](const Running& other) {
        const bool over = other.end <= begin + kHandOver || other.task == task;
        if (over) {
            ended(other);
        }
        return over;
    });
    std::erase_if(waiting_, [&](const Running& other) { return other.end <= begin || other.task == task; });
}

void OneLock::see_wait(TaskId task, int64_t begin, int64_t duration) {
    if (duration <= 0) {
        return;
    }
    const int64_t end = begin + duration;
    end_before(task, begin);
    for (Running& other : running_) {
        other.waited_for = std::max(other.waited_for, std::min(other.end, end) - begin);
    }
    if (waiting_.size() < kMostWaiting) {
        waiting_.push_back({task, begin, end});
    }
}

void OneLock::see(TaskId task, int64_t begin, int64_t duration) {
    if (duration <= 0) {
        return;
    }
    const int64_t end = begin + duration;
    first_ = tasks_.empty() ? begin : std::min(first_, begin);
    last_ = tasks_.empty() ? end : std::max(last_, end);
    Length& own = tasks_[task][length_of(duration)];
    for (Length* const length : {&own, &all_[length_of(duration)]}) {
        ++length->count;
        length->busy_ns += static_cast<double>(duration);
    }
    end_before(task, begin);
    for (const Running& other : running_) {
        if (std::min(other.end, end) - begin > kHandOver) {
            // One of the two did not hold the lock. Who holds it for long lets the others wait.
            const int64_t length = other.end - other.begin;
            ++(length > duration ? tasks_[other.task][length_of(length)] : own).overlaps;
        }
    }
    Running computing{task, begin, end};
    for (const Running& other : waiting_) {
        computing.waited_for = std::max(computing.waited_for, std::min(other.end, end) - begin);
    }
    running_.push_back(computing);
}

/// Overlaps with what is shorter, of other tasks, if all of it came at any time.
double OneLock::expected(TaskId task, size_t length) const {
    const Lengths& mine = tasks_.at(task);
    const Length& own = mine[length];
    double overlaps = 0;
    for (size_t shorter = kShortest; shorter <= length; ++shorter) {
        const double half = shorter == length ? 0.5 : 1.0;
        const auto count = static_cast<double>(all_[shorter].count - mine[shorter].count);
        const double busy_ns = all_[shorter].busy_ns - mine[shorter].busy_ns;
        overlaps += half * (own.busy_ns * count + static_cast<double>(own.count) * busy_ns);
    }
    return last_ > first_ ? overlaps / static_cast<double>(last_ - first_) : 0.0;
}

/// From the shortest on, as far as they do not overlap.
uint64_t OneLock::alone_from_below(TaskId task, const Lengths& lengths) const {
    double overlaps = 0, by_chance = 0;
    size_t held = 0;
    for (size_t length = kShortest; length + 1 < kLengths; ++length) {
        const double expect = expected(task, length);
        const auto found = static_cast<double>(lengths[length].overlaps);
        if (expect >= kLeastOfLength && found > kMostOfLength * expect) {
            break;
        }
        overlaps += found;
        by_chance += expect;
        const bool alone = overlaps <= kMostOfAll * by_chance;
        held = alone && expect >= kLeastOfLength ? length : held;
    }
    return held != 0 && by_chance >= kLeastOfTask ? up_to(held) : 0;
}

/// Long computing during which no other task computes, with what is shorter, unless that overlaps. `waited_for`: and
/// during which others wait for a lock.
uint64_t OneLock::alone_for_long(TaskId task, const Lengths& lengths, bool waited_for) const {
    size_t longest = 0;
    uint64_t overlapping = 0;
    for (size_t length = kTelling; length + 1 < kLengths; ++length) {
        const double expect = expected(task, length);
        const auto found = static_cast<double>(lengths[length].overlaps);
        if (expect >= kLeastOfLength && found > kMostOfLength * expect) {
            overlapping |= uint64_t{1} << length;
        }
        const bool waited =
            !waited_for || static_cast<double>(lengths[length].waited_for) >=
                               std::max(kLeastWaited, kWaitedShare * static_cast<double>(lengths[length].count));
        longest = waited && expect >= kLeastOfTask && found <= kMostOfAll * expect ? length : longest;
    }
    return longest == 0 ? 0 : up_to(longest) & ~overlapping;
}

std::map<TaskId, uint64_t> OneLock::held() {
    for (const Running& computing : running_) {
        ended(computing);
    }
    running_.clear();
    std::map<TaskId, uint64_t> out;
    // One that others wait for has the lock, and whoever hardly computes meanwhile shares it: what that one waits for
    // may be something else than the lock, as what a queue has.
    const bool waited_for = std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& task) {
        return alone_for_long(task.first, task.second, true) != 0;
    });
    for (const auto& [task, lengths] : tasks_) {
        const bool waits = !hardly_wait_.contains(task);
        const uint64_t held = (waits ? alone_from_below(task, lengths) : uint64_t{0}) |
                              (waited_for ? alone_for_long(task, lengths, !waits) : uint64_t{0});
        if (held != 0) {
            out[task] = held;
        }
    }
    return out.size() > 1 ? out : std::map<TaskId, uint64_t>{};
}

void find_locks(Plan& plan) {
    std::set<ProcessId> waiting;
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        if (plan.tasks[task].lock_waits >= kLeastLockWaits) {
            waiting.insert(plan.tasks[task].process);
        }
    }
    std::map<ProcessId, std::vector<TaskId>> suspects;
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        if (waiting.contains(plan.tasks[task].process)) {
            suspects[plan.tasks[task].process].push_back(task);
        }
    }
    for (const auto& [process, tasks] : suspects) {
        if (tasks.size() < 2) {
            continue;
        }
        std::set<TaskId> hardly_wait;
        std::copy_if(tasks.begin(), tasks.end(), std::inserter(hardly_wait, hardly_wait.end()),
                     [&](TaskId task) { return plan.tasks[task].lock_waits < kLeastLockWaits; });
        OneLock lock(std::move(hardly_wait));
        for_each_between(*plan.log, {}, tasks, [&](TaskId task, const Op& op, uint64_t) {
            if (Computing::surely(op.kind, op.flags)) {
                lock.see(task, op.begin, op.duration);
            } else if (waits_for_lock(op.kind, op.arg)) {
                lock.see_wait(task, op.begin, op.duration);
            }
        });
        const std::map<TaskId, uint64_t> held = lock.held();
        for (const auto& [task, lengths] : held) {
            plan.tasks[task].locked_lengths = lengths;
        }
        plan.count(Count::tasks_locked, held.size());
    }
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/plan/one_lock.h"

#include <algorithm>
#include <bit>

#include "formats/oplog/time_order.h"
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

size_t length_of(int64_t ns) { return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(ns))); }

}  // namespace

void OneLock::see(TaskId task, int64_t begin, int64_t duration) {
    if (duration <= 0) {
        return;
    }
    const int64_t end = begin + duration;
    first_ = tasks_.empty() ? begin : std::min(first_, begin);
    last_ = tasks_.empty() ? end : std::max(last_, end);
    Length& own = tasks_[task][length_of(duration)];
    ++own.count;
    own.busy_ns += static_cast<double>(duration);
    std::erase_if(running_, [&](const Running& other) { return other.end <= begin + kHandOver || other.task == task; });
    for (const Running& other : running_) {
        if (std::min(other.end, end) - begin > kHandOver) {
            // One of the two did not hold the lock. Who holds it for long lets the others wait.
            const int64_t length = other.end - other.begin;
            ++(length > duration ? tasks_[other.task][length_of(length)] : own).overlaps;
        }
    }
    running_.push_back({task, begin, end});
}

/// Overlaps with what is shorter, of other tasks, if all of it came at any time.
double OneLock::expected(TaskId task, size_t length) const {
    const Length& own = tasks_.at(task)[length];
    double overlaps = 0;
    for (const auto& [other, lengths] : tasks_) {
        for (size_t shorter = kShortest; other != task && shorter <= length; ++shorter) {
            const Length& of = lengths[shorter];
            const double half = shorter == length ? 0.5 : 1.0;
            overlaps +=
                half * (own.busy_ns * static_cast<double>(of.count) + static_cast<double>(own.count) * of.busy_ns);
        }
    }
    return last_ > first_ ? overlaps / static_cast<double>(last_ - first_) : 0.0;
}

std::map<TaskId, int64_t> OneLock::held_below() const {
    std::map<TaskId, int64_t> out;
    for (const auto& [task, lengths] : tasks_) {
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
        if (held != 0 && by_chance >= kLeastOfTask) {
            out[task] = int64_t{1} << held;
        }
    }
    return out.size() > 1 ? out : std::map<TaskId, int64_t>{};
}

void find_locks(Plan& plan) {
    std::map<ProcessId, std::vector<TaskId>> suspects;
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        if (plan.tasks[task].lock_waits >= kLeastLockWaits) {
            suspects[plan.tasks[task].process].push_back(task);
        }
    }
    for (const auto& [process, tasks] : suspects) {
        if (tasks.size() < 2) {
            continue;
        }
        OneLock lock;
        for_each_between(*plan.log, {}, tasks, [&](TaskId task, const Op& op, uint64_t) {
            if (Computing::surely(op.kind, op.flags)) {
                lock.see(task, op.begin, op.duration);
            }
        });
        const std::map<TaskId, int64_t> held = lock.held_below();
        for (const auto& [task, below] : held) {
            plan.tasks[task].locked_below = below;
        }
        plan.count(Count::tasks_locked, held.size());
    }
}

}  // namespace reprise

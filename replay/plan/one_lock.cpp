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
/// And up to as much at either end on a busy machine, where long computing is concerned.
constexpr int64_t kEdge = 16'000;
/// Less would not be seen to overlap: 2 us.
constexpr size_t kShortest = 12;
/// Overlaps, as a share of those that there would be by chance: of all that is as short, and of one length alone.
constexpr double kMostOfAll = 0.6, kMostOfLength = 0.8;
/// And of long computing that others wait for.
constexpr double kMostOfWaitedFor = 0.2;
/// With fewer expected overlaps, none says nothing: of one length, of a task.
constexpr double kLeastOfLength = 5, kLeastOfTask = 20;
/// From 64 us on computing lasts longer than threads meet.
constexpr size_t kTelling = 17;
/// Computing that others waited for: so often, and as a share.
constexpr double kLeastWaited = 8, kWaitedShare = 0.05;
/// Thousands may wait at once: a few tell as much.
constexpr size_t kMostWaiting = 64;

/// Of two that are as long it is the one that began first.
template <class Piece>
bool shorter(const Piece& one, const Piece& other) {
    return one.duration() < other.duration() || (one.duration() == other.duration() && one.begin < other.begin);
}

/// Of a piece without its ends, what comes after that time.
template <class Piece>
int64_t inner_after(const Piece& piece, int64_t time) {
    return std::max<int64_t>(piece.end - kEdge - std::max(piece.begin + kEdge, time), 0);
}

/// The bits of lengths up to that one.
constexpr uint64_t up_to(size_t length) { return (uint64_t{2} << length) - 1; }

}  // namespace

/// `until`: when the next op of its task begins.
void OneLock::ended(const Running& computing, int64_t until) {
    Length& own = tasks_[computing.task][length_of(computing.duration())];
    own.lasted_ns += static_cast<double>(until - computing.begin);
    int64_t beside = computing.beside;
    for (const Running& other : running_) {
        if (other.task != computing.task && shorter(other, computing)) {
            beside -= inner_after(other, until);
        }
    }
    own.beside_ns += static_cast<double>(beside);
    if (2 * computing.waited_for >= computing.duration()) {
        ++own.waited_for;
    }
}

void OneLock::see_next(TaskId task, int64_t begin) {
    std::erase_if(waiting_, [&](const Running& other) { return other.end <= begin || other.task == task; });
    const auto own = std::find_if(running_.begin(), running_.end(),
                                  [&](const Running& computing) { return computing.task == task; });
    if (own != running_.end()) {
        ended(*own, std::max(begin, own->end));
        running_.erase(own);
    }
}

void OneLock::see_wait(TaskId task, int64_t begin, int64_t duration) {
    see_next(task, begin);
    if (duration <= 0) {
        return;
    }
    const int64_t end = begin + duration;
    for (Running& other : running_) {
        other.waited_for = std::max(other.waited_for, std::min(other.end, end) - begin);
    }
    if (waiting_.size() < kMostWaiting) {
        waiting_.push_back({task, begin, end});
    }
}

void OneLock::see(TaskId task, int64_t begin, int64_t duration) {
    see_next(task, begin);
    if (duration <= 0) {
        return;
    }
    Running computing{task, begin, begin + duration};
    first_ = tasks_.empty() ? begin : std::min(first_, begin);
    last_ = tasks_.empty() ? computing.end : std::max(last_, computing.end);
    Length& own = tasks_[task][length_of(duration)];
    for (Length* const length : {&own, &all_[length_of(duration)]}) {
        ++length->count;
        length->busy_ns += static_cast<double>(duration);
        length->inner_ns += static_cast<double>(inner_after(computing, begin));
    }
    for (Running& other : running_) {
        // One of the two did not hold the lock. Who holds it for long lets the others wait.
        const bool long_one = shorter(computing, other);
        if (std::min(other.end, computing.end) - begin > kHandOver) {
            ++(long_one ? tasks_[other.task][length_of(other.duration())] : own).overlaps;
        }
        if (long_one) {
            other.beside += inner_after(computing, begin);
        } else {
            computing.beside += inner_after(other, begin);
        }
    }
    for (const Running& other : waiting_) {
        computing.waited_for = std::max(computing.waited_for, std::min(other.end, computing.end) - begin);
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

/// The overlaps that there were, where `expect` would be by chance. Where the lock is handed over, two threads are at
/// it for some us, and more often on a busy machine: of long computing it is time that counts.
double OneLock::found_of(TaskId task, size_t length, double expect) const {
    const Lengths& mine = tasks_.at(task);
    const Length& own = mine[length];
    if (length < kTelling) {
        return static_cast<double>(own.overlaps);
    }
    double inner_ns = 0;
    for (size_t less = kShortest; less <= length; ++less) {
        inner_ns += (less == length ? 0.5 : 1.0) * (all_[less].inner_ns - mine[less].inner_ns);
    }
    const double by_chance_ns = own.lasted_ns * inner_ns / static_cast<double>(last_ - first_);
    return by_chance_ns > 0 ? expect * own.beside_ns / by_chance_ns : 0.0;
}

/// From the shortest on, as far as they do not overlap.
uint64_t OneLock::alone_from_below(TaskId task) const {
    double overlaps = 0, by_chance = 0;
    size_t held = 0;
    for (size_t length = kShortest; length + 1 < kLengths; ++length) {
        const double expect = expected(task, length);
        const double found = found_of(task, length, expect);
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
        const double expect = expected(task, length), found = found_of(task, length, expect);
        if (expect >= kLeastOfLength && found > kMostOfLength * expect) {
            overlapping |= uint64_t{1} << length;
        }
        const bool waited =
            !waited_for || static_cast<double>(lengths[length].waited_for) >=
                               std::max(kLeastWaited, kWaitedShare * static_cast<double>(lengths[length].count));
        const double most = waited_for ? kMostOfWaitedFor : kMostOfAll;
        longest = waited && expect >= kLeastOfTask && found <= most * expect ? length : longest;
    }
    return longest == 0 ? 0 : up_to(longest) & ~overlapping;
}

std::map<TaskId, uint64_t> OneLock::held() {
    for (const Running& computing : running_) {
        ended(computing, computing.end);
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
        const uint64_t held = (waits ? alone_from_below(task) : uint64_t{0}) |
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
            } else {
                lock.see_next(task, op.begin);
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

// SPDX-License-Identifier: MIT
#include "replay/plan/guards.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "formats/oplog/time_order.h"
#include "replay/plan/plan.h"

namespace reprise {
namespace {

/// Shorter overlaps are the clock's; shorter calls say nothing. ns.
constexpr int64_t kHandOver = 500;
/// Overlaps as a share of those that there would be by chance; with fewer expected, none says nothing.
constexpr double kMostOfChance = 0.05, kLeastByChance = 20;
/// Files that are looked at one by one, each of which may have a lock of its own.
constexpr size_t kMostFiles = 64;
/// A lock that guards what was seen behind waits alone has at least so much of the calls on files of that kind.
constexpr double kMostCalls = 0.8;

/// Tasks that may share locks.
class Sharers {
public:
    Sharers(Plan& plan, std::vector<TaskId> tasks)
        : plan_(plan), tables_(plan.log->tables()), tasks_(std::move(tasks)), waited_(plan.tasks.size()) {}

    /// False where the calls that the lock guards do not stand out.
    bool find() {
        look(&Sharers::see_file);
        look(&Sharers::see_call);
        uint64_t files = 0;
        if (files_.never()) {
            const bool more = roles_.never() &&
                              static_cast<double>(files_.calls()) < kMostCalls * static_cast<double>(roles_.calls());
            files = guard([&](FileId file) { return more ? of_role(file) : guarded_.contains(file); });
        } else if (roles_.never()) {
            files = guard([&](FileId file) { return of_role(file); });
        } else {
            for (const auto& [file, overlaps] : each_) {
                if (overlaps.never()) {
                    files += guard([only = file](FileId other) { return other == only; });
                }
            }
        }
        return files != 0;
    }

private:
    using See = void (Sharers::*)(TaskId, const Op&, FileId);
    void look(See see) {
        for_each_between(*plan_.log, {}, tasks_, [&](TaskId task, const Op& op, uint64_t) {
            const FileId file = op.handle < tables_.handles.size() ? tables_.handles[op.handle].file : 0;
            const bool call = works_on_data(op.kind) && file != 0 && plan_.keeps_file(file);
            if (call || op.kind == OpKind::wait) {
                (this->*see)(task, op, file);
            }
        });
    }
    /// What is called once a lock was had is guarded by it.
    void see_file(TaskId task, const Op& op, FileId file) {
        if (op.kind == OpKind::wait) {
            waited_[task] = held_in_calls(op.arg) || (waited_[task] != 0 && op.arg == kWaitWokeOthers);
            return;
        }
        if (waited_[task] != 0) {
            guarded_.insert(file);
            role_[static_cast<size_t>(tables_.files[file].role)] = true;
            if (each_.size() < kMostFiles) {
                each_[file];
            }
        }
        waited_[task] = 0;
    }
    void see_call(TaskId task, const Op& op, FileId file) {
        if (op.kind == OpKind::wait || !of_role(file)) {
            return;
        }
        roles_.see(task, op.begin, op.duration);
        if (guarded_.contains(file)) {
            files_.see(task, op.begin, op.duration);
        }
        if (const auto one = each_.find(file); one != each_.end()) {
            one->second.see(task, op.begin, op.duration);
        }
    }
    bool of_role(FileId file) const { return role_[static_cast<size_t>(tables_.files[file].role)]; }

    /// One more lock, which calls on those files hold. Returns how many files.
    template <typename Guards>
    uint64_t guard(Guards guards) {
        if (number_ == 0) {
            plan_.guards.emplace_back().of_handle.resize(tables_.handles.size());
            number_ = static_cast<uint32_t>(plan_.guards.size());
            for (const TaskId task : tasks_) {
                plan_.tasks[task].guard = number_;
            }
        }
        const auto lock = static_cast<uint16_t>(1 + plan_.guard_locks++ % kMostGuards);
        uint64_t files = 0;
        std::vector<uint16_t>& of_handle = plan_.guards[number_ - 1].of_handle;
        for (FileId file = 1; file < tables_.files.size(); ++file) {
            files += guards(file) ? 1 : 0;
        }
        for (HandleId handle = 1; handle < tables_.handles.size(); ++handle) {
            const FileId file = tables_.handles[handle].file;
            if (file != 0 && file < tables_.files.size() && guards(file)) {
                of_handle[handle] = lock;
            }
        }
        return files;
    }

    Plan& plan_;
    const Tables& tables_;
    std::vector<TaskId> tasks_;
    std::vector<uint8_t> waited_;  // by task: its latest wait was for such a lock
    std::set<FileId> guarded_;     // files
    std::array<bool, 256> role_{};
    Overlaps files_, roles_;
    std::map<FileId, Overlaps> each_;
    uint32_t number_ = 0;  // of the guard, from 1 on
};

}  // namespace

void Overlaps::see(TaskId task, int64_t begin, int64_t duration) {
    if (duration < kHandOver) {
        return;
    }
    const int64_t end = begin + duration;
    first_ = calls_ == 0 ? begin : std::min(first_, begin);
    last_ = calls_ == 0 ? end : std::max(last_, end);
    ++calls_;
    Of& own = tasks_[task];
    own.calls += 1;
    own.busy_ns += static_cast<double>(duration);
    std::erase_if(running_, [&](const Running& other) { return other.end <= begin + kHandOver || other.task == task; });
    found_ += running_.size();
    running_.push_back({task, end});
}

bool Overlaps::never() const {
    double chance = 0, calls = 0, busy = 0;
    for (const auto& [task, of] : tasks_) {
        chance += of.calls * busy + calls * of.busy_ns;
        calls += of.calls;
        busy += of.busy_ns;
    }
    chance = last_ > first_ ? chance / static_cast<double>(last_ - first_) : 0.0;
    return chance >= kLeastByChance && static_cast<double>(found_) <= kMostOfChance * chance;
}

void find_guards(Plan& plan) {
    std::map<ProcessId, std::vector<TaskId>> processes;
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        processes[plan.tasks[task].process].push_back(task);
    }
    const auto waits = [&](const std::vector<TaskId>& tasks) {
        uint64_t sum = 0;
        for (const TaskId task : tasks) {
            sum += plan.tasks[task].guarded_waits;
        }
        return sum;
    };
    std::vector<TaskId> single;  // whose lock is shared with other processes
    uint64_t found = 0, missed = 0;
    const auto look = [&](std::vector<TaskId> tasks) {
        const uint64_t guarded = waits(tasks);
        if (guarded >= kLeastGuardedWaits && tasks.size() > 1) {
            (Sharers(plan, std::move(tasks)).find() ? found : missed) += guarded;
        }
    };
    for (const auto& [process, tasks] : processes) {
        if (tasks.size() == 1 && waits(tasks) != 0) {
            single.push_back(tasks.front());
        }
        look(tasks);
    }
    look(std::move(single));
    plan.count(Count::calls_guarded, found);
    plan.count(Count::guards_unclear, missed);
}

}  // namespace reprise

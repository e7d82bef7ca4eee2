// SPDX-License-Identifier: MIT
#include "replay/plan/slept_through.h"

#include <algorithm>
#include <map>
#include <optional>

#include "formats/oplog/op_fields.h"
#include "formats/support/quantity.h"
#include "replay/plan/edges_rules.h"

namespace reprise {
namespace {

constexpr int64_t kLittleLate = 5'000'000;  // ns: later by less shows nothing
constexpr uint64_t kLeastCalls = 8;         // on files in the task's last blocks: less is no work that others poll for

/// Of the ops of each task that others wait for, the last one and one more; 0: none.
std::vector<uint64_t> awaited(const Plan& plan) {
    std::vector<uint64_t> until(plan.tasks.size(), 0);
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        for (const WaitFor& wait : plan.tasks[task].waits) {
            if (wait.task != task && wait.task < until.size()) {
                until[wait.task] = std::max(until[wait.task], wait.source + 1);
            }
        }
    }
    return until;
}

struct LastCall {
    uint64_t op = 0;
    int64_t end = 0;  // ns
};

/// The last call on files that the filter keeps, of a task that makes more than a few.
std::optional<LastCall> last_call(const Plan& plan, const TaskPlan& task, OpBlock& block) {
    std::optional<LastCall> last;
    uint64_t calls = 0;
    for (auto where = task.blocks.rbegin(); where != task.blocks.rend() && calls < kLeastCalls; ++where) {
        plan.log->decode(*where, block);
        for (size_t i = block.count(); i-- > 0 && calls < kLeastCalls;) {
            const OpInfo& row = info(static_cast<OpKind>(block.kind[i]));
            if (!row.is(Trait::io) || !(row.is(Trait::reads) || row.is(Trait::writes)) || !keeps(plan, block, i)) {
                continue;
            }
            ++calls;
            if (!last) {
                last = {block.first + i, OpRef::end_of(block.begin[i], block.duration[i])};
            }
        }
    }
    return calls < kLeastCalls ? std::nullopt : last;
}

}  // namespace

SleptThrough::SleptThrough(const Plan& plan) : watched_(plan.tasks.size()) {
    std::map<ProcessId, std::vector<TaskId>> threads;
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        threads[plan.tasks[task].process].push_back(task);
    }
    std::erase_if(threads, [](const auto& process) { return process.second.size() < 2; });
    if (threads.empty()) {
        return;
    }
    const std::vector<uint64_t> until = awaited(plan);
    OpBlock block;
    for (const auto& [process, tasks] : threads) {
        std::vector<Work> works;
        for (const TaskId task : tasks) {
            const std::optional<LastCall> last = last_call(plan, plan.tasks[task], block);
            if (last && until[task] <= last->op) {
                works.push_back({task, last->op, last->end});
            }
        }
        if (!works.empty()) {
            std::sort(works.begin(), works.end(), [](const Work& a, const Work& b) { return a.end < b.end; });
            find_sleeps(plan, process, works);
        }
    }
    for (std::vector<Watched>& ops : watched_) {
        std::sort(ops.begin(), ops.end(), [](const Watched& a, const Watched& b) { return a.op < b.op; });
    }
}

void SleptThrough::find_sleeps(const Plan& plan, ProcessId process, const std::vector<Work>& works) {
    OpBlock block;
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        if (plan.tasks[task].process != process) {
            continue;
        }
        for (const BlockInfo& where : plan.tasks[task].blocks) {
            plan.log->decode(where, block);
            for (size_t i = 0; i < block.count(); ++i) {
                if (static_cast<OpKind>(block.kind[i]) != OpKind::wait || block.arg[i] != kWaitSleep) {
                    continue;
                }
                const int64_t begin = block.begin[i], end = OpRef::end_of(begin, block.duration[i]);
                auto work = std::upper_bound(works.begin(), works.end(), begin,
                                             [](int64_t time, const Work& one) { return time < one.end; });
                for (; work != works.end() && work->end <= end; ++work) {
                    if (work->task == task) {
                        continue;
                    }
                    watched_[task].push_back({block.first + i, pairs_.size(), true});
                    watched_[work->task].push_back({work->last, pairs_.size(), false});
                    pairs_.push_back({task, work->task});
                }
            }
            plan.log->forget(where);
        }
    }
}

void SleptThrough::note(TaskId task, uint64_t op, int64_t end) {
    const std::vector<Watched>& ops = watched_[task];
    auto found = std::lower_bound(ops.begin(), ops.end(), op,
                                  [](const Watched& one, uint64_t wanted) { return one.op < wanted; });
    for (; found != ops.end() && found->op == op; ++found) {
        Pair& pair = pairs_[found->pair];
        (found->sleep ? pair.slept_until : pair.worked_until) = end;
    }
}

SleptThrough::Findings SleptThrough::finish() const {
    Findings most;
    for (const Pair& pair : pairs_) {
        if (pair.worked_until > pair.slept_until && pair.worked_until - pair.slept_until > most.late_ns) {
            most = {pair.sleeper, pair.worker, pair.worked_until - pair.slept_until};
        }
    }
    return most;
}

std::string slept_too_short(const SleptThrough::Findings& findings, int64_t elapsed_ns, double share) {
    if (findings.late_ns <= kLittleLate ||
        static_cast<double>(findings.late_ns) <= share * static_cast<double>(elapsed_ns)) {
        return {};
    }
    return "task " + std::to_string(findings.worker) + " was done while task " + std::to_string(findings.sleeper) +
           " slept when recorded, and " + format_duration(findings.late_ns) +
           " after that here: a job that sleeps until it is done would sleep on";
}

}  // namespace reprise

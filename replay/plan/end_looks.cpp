// SPDX-License-Identifier: MIT
#include "replay/plan/end_looks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "replay/plan/edges_rules.h"
#include "replay/plan/plan.h"
#include "replay/plan/polls.h"

namespace reprise {
namespace {

constexpr size_t kLeastOfLoop = 3;
constexpr size_t kMostOfLoop = size_t{1} << 20;
constexpr int64_t kMostTime = int64_t{1} << 50;  // ns; malformed logs have longer ones
constexpr int64_t kOfALook = 200'000;            // ns between two sleeps: a look, and no more
constexpr int64_t kOfSleep = 10;                 // or such a part of the sleep
constexpr int64_t kLittleMoved = 4096;           // bytes
constexpr int64_t kLeastPause = 1'000'000;       // ns: after shorter waits a thread is not done
constexpr double kLoopEvidence = 2;              // -ln of how likely it is by chance
constexpr double kEndEvidence = 1.5;             // the same where a thread ended, and nobody else waited for that
constexpr double kOtherLoops = 0.1;              // of the time of loops that show it: shorter ones do not count

bool is_pause(const OpBlock& block, size_t i) {
    const int64_t arg = block.arg[i];
    return block.duration[i] >= kLeastPause && !is_lock_wait(arg) && arg != kWaitUnknown && arg != kWaitSleep &&
           arg != kWaitWokeOthers;
}

/// What a loop may do beside its look: a line of progress, a figure.
bool is_little(const OpBlock& block, size_t i) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    if (block.has_edges() && !block.edges_of(i).empty()) {
        return false;
    }
    const OpInfo& row = info(kind);
    if (row.is(Trait::metadata)) {
        return !row.is(Trait::changes);
    }
    switch (kind) {
        case OpKind::compute:
        case OpKind::touch:
        case OpKind::open:
        case OpKind::close: return true;
        case OpKind::read:
        case OpKind::pread:
        case OpKind::write:
        case OpKind::writev:
        case OpKind::send:
        case OpKind::receive: return block.result[i] <= kLittleMoved;
        case OpKind::wait: return block.arg[i] == kWaitWokeOthers || is_lock_wait(block.arg[i]);
        default: return false;
    }
}

auto after_op(const std::vector<std::pair<uint64_t, int64_t>>& sleeps, uint64_t op) {
    return std::upper_bound(sleeps.begin(), sleeps.end(), op,
                            [](uint64_t at, const auto& sleep) { return at < sleep.first; });
}

}  // namespace

void EndLooks::leave() {
    if (now_.sleeps.size() >= kLeastOfLoop) {
        loops_.push_back(std::move(now_));
    }
    now_ = {};
    computed_ = 0;
}

void EndLooks::see(TaskId task, const OpBlock& block, size_t i) {
    const uint64_t op = block.first + i;
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const int64_t begin = block.begin[i], duration = block.duration[i];
    if (begin < 0 || begin > kMostTime || duration < 0 || duration > kMostTime) {
        return leave();
    }
    if (pauses_.size() <= task) {
        pauses_.resize(task + 1);
    }
    if (kind == OpKind::wait && block.arg[i] == kWaitSleep && is_sleep(kind, block.arg[i], block.result[i]) &&
        now_.sleeps.size() < kMostOfLoop) {
        if (!now_.sleeps.empty() && computed_ > std::max(kOfALook, now_.sleeps.back().second / kOfSleep)) {
            leave();
        }
        computed_ = 0;
        now_.task = task;
        now_.begin = now_.sleeps.empty() ? begin : now_.begin;
        now_.sleeps.emplace_back(op, duration);
        now_.looks.push_back(begin + duration);
        return;
    }
    if (kind == OpKind::exit) {
        pauses_[task].push_back({begin, INT64_MAX, op, true});
    } else if (kind == OpKind::wait && is_pause(block, i)) {
        pauses_[task].push_back({begin, begin + duration, op, false});
    }
    if (!is_little(block, i)) {
        return leave();
    }
    computed_ += kind == OpKind::wait && is_lock_wait(block.arg[i]) ? 0 : duration;
    // So that one sleep is before it.
    const bool woke = kind == OpKind::wait && block.arg[i] == kWaitWokeOthers;
    if (now_.sleeps.empty() || now_.woke.size() + now_.did.size() == kMostOfLoop) {
        return;
    }
    if (woke) {
        now_.woke.push_back(op);
    } else if (kind != OpKind::compute && kind != OpKind::touch && kind != OpKind::wait) {
        now_.did.push_back(op);
    }
}

void EndLooks::end_task() {
    now_ = {};
    computed_ = 0;
}

/// What others waited for, as locks for half of a sleep, is no look: the loop begins after it.
void EndLooks::begin_after_wakes(const Plan& plan, Loop& loop, const Polls& polls) {
    const auto last = std::find_if(loop.woke.rbegin(), loop.woke.rend(), [&](uint64_t op) {
        const int64_t ns = polls.waited_for(loop.task, op);
        const auto after = after_op(loop.sleeps, op);
        return ns != 0 && after != loop.sleeps.end() && ns >= (after - 1)->second / 2;
    });
    const std::vector<uint64_t>& awaited = plan.tasks[loop.task].sources;
    const auto message = std::find_if(loop.did.rbegin(), loop.did.rend(), [&](uint64_t op) {
        return op < loop.sleeps.back().first && std::binary_search(awaited.begin(), awaited.end(), op);
    });
    const uint64_t op = std::max(last == loop.woke.rend() ? 0 : *last, message == loop.did.rend() ? 0 : *message);
    if (op != 0) {
        const auto first = after_op(loop.sleeps, op);
        const auto before = first - loop.sleeps.begin();
        loop.begin = loop.looks[static_cast<size_t>(before) - 1];
        loop.sleeps.erase(loop.sleeps.begin(), first);
        loop.looks.erase(loop.looks.begin(), loop.looks.begin() + before);
    }
}

/// The last of those threads that were done while it slept; none: `among` is 0.
EndLooks::Done EndLooks::last_done(const Loop& loop, const std::vector<TaskId>& threads) const {
    const int64_t end = loop.looks.back();
    Done last;
    int64_t at = 0;
    for (const TaskId task : threads) {
        if (task == loop.task) {
            continue;
        }
        const std::vector<Pause>& pauses = pauses_[task];
        const auto begins = [](const Pause& one, int64_t time) { return one.begin < time; };
        const auto first = std::lower_bound(pauses.begin(), pauses.end(), loop.begin, begins);
        const auto after = std::lower_bound(first, pauses.end(), end, begins);
        if (first == after) {
            continue;
        }
        const Pause& pause = *(after - 1);
        const size_t sleep = static_cast<size_t>(std::lower_bound(loop.looks.begin(), loop.looks.end(), pause.begin) -
                                                 loop.looks.begin());
        const bool waited = std::any_of(first, after - 1, [&](const Pause& one) {  // at a look before
            const auto look = std::lower_bound(loop.looks.begin(), loop.looks.end(), one.begin);
            return !pause.exits && look != loop.looks.end() && *look < one.end;
        });
        if (pause.end <= end || pause.op == 0 || waited) {
            continue;
        }
        ++last.among;
        if (pause.begin >= at) {
            at = pause.begin;
            last.task = task;
            last.op = pause.exits ? pause.op : pause.op - 1;
            last.sleep = sleep;
            last.exits = pause.exits;
        }
    }
    return last;
}

int64_t EndLooks::join(Plan& plan, const Loop& loop, const Done& done) {
    TaskPlan& task = plan.tasks[loop.task];
    // Some programs sleep once more after they have seen it.
    const bool once_more =
        done.sleep + 1 < loop.sleeps.size() && loop.sleeps[done.sleep].first + 1 < loop.sleeps[done.sleep + 1].first;
    const size_t sleeps = once_more ? done.sleep + 1 : loop.sleeps.size();
    const uint64_t look = loop.sleeps[sleeps - 1].first + 1;
    LookGrid grid{loop.sleeps.front().first, look, look, {}, 0};
    int64_t ns = 0;
    for (size_t i = 0; i < sleeps; ++i) {
        const auto& [op, slept] = loop.sleeps[i];
        ns += slept;
        task.explained.push_back(op);
        if (grid.sleeps.size() < kMostLookSleeps) {
            grid.sleeps.push_back(slept);
        }
        if (loop.task < plan.helpers.tasks.size() && plan.helpers.tasks[loop.task].beats_at(op)) {
            plan.helpers.beats_ns -= std::min(plan.helpers.beats_ns, slept);
        }
    }
    plan.count(Count::waits_joined, sleeps - 1);
    task.look_grids.push_back(std::move(grid));
    task.waits.push_back({look, done.op, done.task, 0, EdgeKind::lifecycle});
    ++plan.edges_by_kind[static_cast<size_t>(EdgeKind::lifecycle)];
    return ns;
}

int64_t EndLooks::join(Plan& plan, const Polls& polls) {
    struct Evidence {
        double chance = 0, needs = kLoopEvidence;
        int64_t ns = 0;
        std::vector<int64_t> others;                      // ns, of loops that do not show it
        std::vector<std::pair<const Loop*, Done>> loops;  // that do
    };
    std::map<ProcessId, std::vector<TaskId>> threads;
    for (TaskId task = 1; task < pauses_.size(); ++task) {
        threads[plan.tasks[task].process].push_back(task);
    }
    std::map<TaskId, Evidence> all;
    std::vector<uint64_t> known;  // sleeps of the task whose cause is
    TaskId of = 0;
    const auto time_of = [](const Loop& loop) { return loop.looks.back() - loop.begin; };
    for (Loop& loop : loops_) {
        begin_after_wakes(plan, loop, polls);
        if (loop.sleeps.size() < kLeastOfLoop) {
            continue;
        }
        const TaskPlan& task = plan.tasks[loop.task];
        if (std::exchange(of, loop.task) != loop.task) {
            known = task.explained;
            known.insert(known.end(), task.requests.polls.begin(), task.requests.polls.end());
            std::sort(known.begin(), known.end());
        }
        if (std::binary_search(known.begin(), known.end(), loop.sleeps.front().first)) {
            continue;
        }
        Evidence& evidence = all[loop.task];
        const Done done = last_done(loop, threads[task.process]);
        if (done.among == 0 || done.sleep + 2 < loop.sleeps.size()) {
            evidence.others.push_back(time_of(loop));
            continue;
        }
        // In the last one of so many, or in the last two.
        const double likely = static_cast<double>(done.among * (loop.sleeps.size() - done.sleep));
        evidence.chance += std::max(std::log(static_cast<double>(loop.sleeps.size()) / likely), 0.0);
        const std::vector<uint64_t>& awaited = plan.tasks[done.task].sources;
        if (done.exits && !std::binary_search(awaited.begin(), awaited.end(), done.op)) {
            evidence.needs = kEndEvidence;
        }
        evidence.ns += time_of(loop);
        evidence.loops.emplace_back(&loop, done);
    }
    int64_t joined = 0;
    bool any = false;
    for (const auto& [id, evidence] : all) {
        const double least = kOtherLoops * static_cast<double>(evidence.ns);
        const auto others = std::count_if(evidence.others.begin(), evidence.others.end(),
                                          [&](int64_t ns) { return static_cast<double>(ns) >= least; });
        if (evidence.chance - std::log(1 + static_cast<double>(others)) < evidence.needs) {
            continue;
        }
        for (const auto& [loop, done] : evidence.loops) {
            const int64_t ns = join(plan, *loop, done);
            joined += loop->did.empty() ? ns : 0;
        }
        any = any || !evidence.loops.empty();
        TaskPlan& task = plan.tasks[id];
        settle_explained(task);
        std::sort(task.look_grids.begin(), task.look_grids.end(),
                  [](const LookGrid& a, const LookGrid& b) { return a.since < b.since; });
    }
    if (any) {
        number_sources(plan);
    }
    loops_ = {};
    pauses_ = {};
    return joined;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "hosts/mirror.h"

#include <algorithm>

#include "calibrate/clock.h"
#include "replay/run/task_loop.h"

namespace reprise {

Mirror::Mirror(const Plan& plan, SharedRun& run, std::span<const uint32_t> rank_of, uint32_t mine)
    : plan_(plan), run_(run) {
    for (ToldTask& each : told_elsewhere(plan, rank_of, mine)) {
        told_.push_back({each.task, std::move(each.told), 0});
    }
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        run.task(task).elsewhere = !plan.performs(plan.tasks[task].process);
    }
}

bool Mirror::look(const Tell& tell) {
    bool any = false;
    for (size_t i = 0; i < told_.size();) {
        Told& one = told_[i];
        const uint32_t published = run_.task(one.task).published.load(std::memory_order_seq_cst);
        for (; one.next < one.told.size() && one.told[one.next].first <= published; ++one.next) {
            const auto& [count, rank] = one.told[one.next];
            const bool later = one.next + 1 < one.told.size() && one.told[one.next + 1].second == rank &&
                               one.told[one.next + 1].first <= published;
            if (!later) {  // else the next one says it all
                tell(rank, one.task, count);
            }
            any = true;
        }
        if (one.next == one.told.size()) {
            std::swap(one, told_.back());
            told_.pop_back();
        } else {
            ++i;
        }
    }
    return any;
}

bool Mirror::anything() const {
    return std::any_of(told_.begin(), told_.end(), [&](const Told& one) {
        return one.told[one.next].first <= run_.task(one.task).published.load(std::memory_order_seq_cst);
    });
}

void Mirror::heard(TaskId id, uint32_t published) {
    if (id == 0 || id >= plan_.tasks.size() || plan_.performs(plan_.tasks[id].process)) {
        return;  // from a rank that has another plan, which its fingerprint would have shown
    }
    const TaskPlan& task = plan_.tasks[id];
    TaskSlot& slot = run_.task(id);
    const size_t sources = task.sources.size();
    const size_t from = std::min<size_t>(slot.published.load(), sources);
    const size_t to = std::min<size_t>(published, sources);
    if (to <= from) {
        return;
    }
    // For those who ask later when the wait was over: when it was known here.
    const uint64_t tick = ticks_now();
    for (size_t source = from; source < to; ++source) {
        run_.spool(task.spool_first)[task.sources[source]] = {tick, tick, 0};
    }
    slot.done.store(task.sources[to - 1] + 1, std::memory_order_release);
    slot.published.store(static_cast<uint32_t>(to), std::memory_order_seq_cst);
    wake_listeners(run_, task, from, to);
}

bool Mirror::falls_asleep(bool also_waits) {
    RunControl& control = run_.control();
    control.bridge.store(also_waits ? RunControl::kAsleep : RunControl::kHears, std::memory_order_seq_cst);
    return !anything() && !(also_waits && control.waits_elsewhere.load(std::memory_order_seq_cst) != 0);
}

void Mirror::awake() { run_.control().bridge.store(RunControl::kAwake, std::memory_order_relaxed); }

void Mirror::stop() { run_.control().stop.store(1); }

}  // namespace reprise

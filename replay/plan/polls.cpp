// SPDX-License-Identifier: MIT
#include "replay/plan/polls.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <set>
#include <utility>

#include "replay/plan/plan.h"

namespace reprise {
namespace {

constexpr int64_t kMostComputed = 200'000;   // ns between two waits: a look at what it waits for, and no more
constexpr int64_t kLeastWaited = 5'000'000;  // ns: shorter waits show no time-out that matters
constexpr size_t kMostPending = size_t{1} << 20;
constexpr int64_t kLongestSleep = int64_t{1} << 42;  // ns, an hour; malformed logs have longer ones

// The same of an event loop, where a timer's own work may be short.
constexpr int64_t kMostLooked = 50'000;

// A child that ended while its parent slept was looked for between the sleeps, where a look came before them, or there
// were some of them; not every log has the looks that found none.
constexpr size_t kLeastLooks = 3;
constexpr int64_t kAtOnce = 1'000'000;  // ns, of the call that finds it

}  // namespace

void settle_explained(TaskPlan& task) {
    std::vector<uint64_t>& explained = task.explained;
    std::sort(explained.begin(), explained.end());
    explained.erase(std::unique(explained.begin(), explained.end()), explained.end());
    std::erase_if(task.timers,
                  [&](const Timer& timer) { return std::binary_search(explained.begin(), explained.end(), timer.op); });
}

void Polls::forget() {
    if ((class_ == kWaitSleep || class_ == kWaitPoll) && pending_.expired.size() >= kLeastLooks) {
        for (const Expired& sleep : pending_.expired) {
            repeated_sleep_ns_ += std::clamp<int64_t>(sleep.ns, 0, kLongestSleep);
        }
    }
    pending_ = {};
    computed_ = 0;
}

void Polls::see(const OpBlock& block, size_t i) {
    const uint64_t op = block.first + i;
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const int64_t arg = block.arg[i], result = block.result[i], duration = block.duration[i];
    if (kind == OpKind::uring_complete && cut_short_) {
        return;  // what it was interrupted for
    }
    // A kernel's thread that makes requests sleeps outside calls as it waits for the storage.
    const bool blocked = kind == OpKind::wait && arg == kWaitUnknown;
    if (idles_only_ && (kind == OpKind::idle || blocked)) {
        idles_.push_back(op);
        idled_ = idled_ || kind == OpKind::idle;
    }
    idles_only_ = idles_only_ && (kind == OpKind::idle || kind == OpKind::compute || kind == OpKind::exit || blocked);
    if (kind != OpKind::compute && kind != OpKind::wait && kind != OpKind::exit) {
        all_ = {};
        cut_ = 0;
    }
    if (kind == OpKind::wait) {
        all_.last = op;
        cut_ = result;
        if (result != -EINTR && ended_by_time(arg, result) && all_.expired.size() < kMostPending) {
            all_.expired.push_back({op, duration, {}});
        }
    }
    if (kind == OpKind::compute) {
        computed_ += duration;
        return;
    }
    if (kind == OpKind::wait && arg == kWaitChild + kWaitLooked) {
        looked_ = true;
        return;
    }
    if ((looked_ || pending_.looked) && result == -ENOENT && info(kind).is(Trait::path)) {
        computed_ += duration;  // another look in vain, as fio's for a request to tell how far it is
        return;
    }
    const bool looked = std::exchange(looked_, false);
    if (kind == OpKind::join && class_ == kWaitSleep &&
        pending_.expired.size() >= (pending_.looked ? size_t{1} : kLeastLooks) && computed_ <= kMostComputed &&
        duration < kAtOnce && result >= 0) {
        pending_.last = op;
        pending_.wait_class = kWaitChild;
        series_.push_back(std::move(pending_));
    }
    if (kind != OpKind::wait) {
        return forget();
    }
    if (is_lock_wait(arg)) {
        return;
    }
    if (arg == kWaitWokeOthers) {
        computed_ += duration;
        if (!pending_.expired.empty() && pending_.expired.back().woke.size() < kMostPending) {
            pending_.expired.back().woke.push_back(op);
        }
        return;
    }
    if (wait_class(arg) == kWaitEpoll) {
        timers_ = timers_ || (epoll_ != 0 && epoll_ != arg);
        epoll_ = arg;
    }
    if (computed_ > (wait_class(arg) == kWaitEpoll ? kMostLooked : kMostComputed) || arg != class_) {
        forget();
    }
    class_ = arg;
    computed_ = 0;
    // The kernel cuts a wait short to report a result of io_uring to its task, and the task goes on waiting.
    cut_short_ = result == -EINTR && (!block.has_edges() || block.edges_of(i).empty());
    if (ended_by_time(arg, result) || cut_short_) {
        pending_.looked = pending_.expired.empty() ? looked : pending_.looked;
        if (pending_.expired.size() < kMostPending) {
            pending_.expired.push_back({op, duration, {}});
        }
        return;
    }
    if (!pending_.expired.empty()) {
        pending_.last = op;
        pending_.wait_class = wait_class(arg);
        series_.push_back(std::move(pending_));
    }
    forget();
}

void Polls::end_task(TaskId task) {
    if (timers_) {
        series_.erase(std::remove_if(series_.begin() + static_cast<std::ptrdiff_t>(of_task_), series_.end(),
                                     [](const Series& one) { return one.wait_class == kWaitEpoll; }),
                      series_.end());
    }
    if (cut_ == -EINTR && !all_.expired.empty()) {
        all_.bystander = true;
        series_.push_back(std::move(all_));
    }
    all_ = {};
    cut_ = 0;
    for (; of_task_ < series_.size(); ++of_task_) {
        series_[of_task_].task = task;
    }
    forget();
    class_ = epoll_ = 0;
    timers_ = looked_ = cut_short_ = false;
    if (idles_only_ && idled_) {
        idlers_.emplace_back(task, std::move(idles_));
    }
    idles_ = {};
    idles_only_ = true;
    idled_ = false;
}

void Polls::see_wait_for(const Edge& edge, int64_t ns) {
    if (edge.kind == EdgeKind::wake && ns >= kLeastWaited) {
        int64_t& longest = waited_for_[{edge.task, edge.op}];
        longest = std::max(longest, ns);
    }
}

/// How many of the first ones that ran out were the program's time: up to the last after which it woke somebody who had
/// waited for that during at least half of the time since it last woke somebody. A worker of a pool that had nothing to
/// do just then waited for anybody.
size_t Polls::acted_on(const Series& series) const {
    size_t acted = 0;
    int64_t since = 0;  // ns
    for (size_t at = 0; at < series.expired.size(); ++at) {
        const Expired& wait = series.expired[at];
        since += std::clamp<int64_t>(wait.ns, 0, kLongestSleep);
        if (wait.woke.empty()) {
            continue;
        }
        const bool awaited = std::any_of(wait.woke.begin(), wait.woke.end(), [&](uint64_t op) {
            const int64_t ns = waited_for(series.task, op);
            return ns != 0 && ns >= since / 2;
        });
        acted = awaited ? at + 1 : acted;
        since = 0;
    }
    return acted;
}

int64_t Polls::waited_for(TaskId task, uint64_t op) const {
    const auto found = waited_for_.find({task, op});
    return found == waited_for_.end() ? 0 : found->second;
}

bool Polls::is_awaited(TaskId task) const {
    const auto first = waited_for_.lower_bound({task, 0});
    return first != waited_for_.end() && first->first.first == task;
}

/// The parent sees that its child has ended with its next look.
void Polls::look_again(TaskPlan& task, const Series& series) {
    LookGrid grid{series.expired.front().op, series.last, series.last, {}, 0};
    for (size_t i = 0; i < std::min(series.expired.size(), kMostLookSleeps); ++i) {
        grid.sleeps.push_back(series.expired[i].ns);
    }
    task.look_grids.push_back(std::move(grid));
    std::erase(task.explained, series.last);
}

void Polls::join(Plan& plan) {
    std::vector<uint64_t> ended;  // waits of the task that somebody ended
    std::set<uint64_t> joined;
    TaskId task = 0;
    for (const Series& series : series_) {
        std::vector<uint64_t>& explained = plan.tasks[series.task].explained;
        if (series.task != task) {
            task = series.task;
            std::sort(explained.begin(), explained.end());
            ended = explained;
            joined.clear();
        }
        if (!std::binary_search(ended.begin(), ended.end(), series.last) ||
            (series.bystander && is_awaited(series.task))) {
            continue;
        }
        const auto first = static_cast<std::ptrdiff_t>(acted_on(series));
        for (auto wait = series.expired.begin() + first; wait != series.expired.end(); ++wait) {
            if (series.bystander && joined.contains(wait->op)) {
                continue;  // a part of another series as well
            }
            joined.insert(wait->op);
            explained.push_back(wait->op);
            plan.count(Count::waits_joined);
        }
        if (series.looked) {
            look_again(plan.tasks[series.task], series);
        }
    }
    for (const Series& series : series_) {
        if (!std::is_sorted(plan.tasks[series.task].explained.begin(), plan.tasks[series.task].explained.end())) {
            settle_explained(plan.tasks[series.task]);
        }
    }
}

void Polls::leave_idlers(Plan& plan) const {
    std::set<ProcessId> with_ring;
    for (const RequestRing& ring : plan.rings) {
        if (!ring.aio) {
            with_ring.insert(ring.process);
        }
    }
    if (with_ring.empty() || idlers_.empty()) {
        return;
    }
    std::set<TaskId> awaited;
    for (const TaskPlan& task : plan.tasks) {
        for (const WaitFor& wait : task.waits) {
            awaited.insert(wait.task);
        }
    }
    for (const auto& [idler, idles] : idlers_) {
        TaskPlan& task = plan.tasks[idler];
        if (!awaited.contains(idler) && with_ring.contains(task.process)) {
            task.explained.insert(task.explained.end(), idles.begin(), idles.end());
            plan.count(Count::waits_joined, idles.size());
            settle_explained(task);
        }
    }
}

}  // namespace reprise

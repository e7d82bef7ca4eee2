// SPDX-License-Identifier: MIT
#include "replay/plan/samplers.h"

#include <algorithm>
#include <utility>

#include "replay/plan/edges_rules.h"
#include "replay/plan/plan.h"
#include "replay/plan/polls.h"

namespace reprise {
namespace {

constexpr size_t kLeastPeriods = 3;
constexpr size_t kMostPeriods = size_t{1} << 20;
constexpr int64_t kLongestPeriod = int64_t{1} << 50;  // ns; longer ones are malformed
/// Of the time that it waits: more is work of the job.
constexpr double kLittleWork = 0.2;
/// Who moves more of the job's data is a part of it.
constexpr uint64_t kLittleSampled = 1 << 16;
constexpr double kLittleShare = 0.01;
/// ns: who waits for less waits for no sample.
constexpr int64_t kAwaitedSample = 5'000'000;
/// Of the longest before it: one that could have run out.
constexpr double kNoLonger = 1.25;
/// What a read of a timer returns.
constexpr int64_t kTimerRead = 8;

void add_clamped(int64_t& to, int64_t more) { to += std::clamp<int64_t>(more, 0, kLongestPeriod); }
void add_clamped(uint64_t& to, uint64_t more) { to += std::min(more, UINT64_MAX - to); }

}  // namespace

void Samplers::reset() {
    const TaskId task = now_.task;
    now_ = {};
    now_.task = task;
}

void Samplers::timed(uint64_t op, int64_t begin, int64_t ns, int64_t wait_class) {
    if (now_.told != 0 || wait_class != now_.wait_class || now_.waits.size() == kMostPeriods || begin < 0 ||
        begin > kLongestPeriod || ns < 0 || ns > kLongestPeriod) {
        reset();  // it was told something, and waits on: not to stop
    }
    now_.wait_class = wait_class;
    now_.waits.emplace_back(op, ns);
    add_clamped(now_.waited_ns, ns);
    now_.longest_ns = std::max(now_.longest_ns, ns);
    add_clamped(now_.work_ns, std::exchange(now_.after_ns, 0));
    now_.since = now_.waits.size() == 1 ? begin : now_.end;
    now_.end = OpRef::end_of(begin, ns);
}

void Samplers::wait(const OpBlock& block, size_t i) {
    const int64_t arg = block.arg[i], duration = block.duration[i];
    if (is_lock_wait(arg) || arg == kWaitWokeOthers || arg == kWaitChild + kWaitLooked) {
        return;
    }
    const uint64_t op = block.first + i;
    const bool by_others = block.has_edges() && !block.edges_of(i).empty();
    if (by_others && now_.waits.empty()) {
        return;  // it is told to begin
    }
    if (by_others) {
        const double most = kNoLonger * static_cast<double>(now_.longest_ns);
        if (now_.told != 0 || wait_class(arg) != now_.wait_class || static_cast<double>(duration) > most) {
            return reset();
        }
        now_.told = op;
        add_clamped(now_.work_ns, std::exchange(now_.after_ns, 0));
    } else if (ended_by_time(arg, block.result[i])) {
        timed(op, block.begin[i], duration, wait_class(arg));
    } else if ((arg == kWaitPoll || wait_class(arg) == kWaitEpoll) && block.result[i] > 0) {
        polled_ = {op, block.begin[i], duration, wait_class(arg), true};
    } else {
        add_clamped(now_.after_ns, duration);
    }
}

void Samplers::see(TaskId task, const OpBlock& block, size_t i) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const OpInfo& row = info(kind);
    now_.task = task;
    now_.last = block.begin[i];
    now_.last_op = block.first + i;
    requests_ = requests_ || row.is(Trait::async);
    if (row.is(Trait::waits) && !is_lock_wait(block.arg[i]) && block.has_edges()) {
        for (const Edge& edge : block.edges_of(i)) {
            if (edge.task == task) {
                continue;
            }
            if (const auto at = joins_.find(edge.task); at == joins_.end() || at->second.ended < edge.op) {
                joins_[edge.task] = {task, block.first + i, block.begin[i], edge.op};
            }
            if (block.duration[i] >= kAwaitedSample) {
                awaited_.emplace_back(edge.task, edge.op);
            }
        }
    }
    if (kind == OpKind::compute) {
        return add_clamped(now_.after_ns, block.duration[i]);
    }
    if (std::exchange(polled_.is, false)) {
        if (kind == OpKind::receive && block.result[i] == kTimerRead) {
            timed(polled_.op, polled_.begin, polled_.ns, polled_.wait_class);
        } else {
            reset();
        }
    }
    if (kind == OpKind::wait) {
        return wait(block, i);
    }
    add_clamped(now_.after_ns, block.duration[i]);
    if ((row.is(Trait::reads) || row.is(Trait::writes)) && block.result[i] > 0) {
        add_clamped(bytes_, static_cast<uint64_t>(block.result[i]));
        add_clamped(now_.bytes, static_cast<uint64_t>(block.result[i]));
    }
}

void Samplers::end_task() {
    if (!std::exchange(requests_, false) && now_.waits.size() >= kLeastPeriods) {
        now_.by_flag = now_.told == 0;
        now_.told = now_.by_flag ? now_.waits.back().first + 1 : now_.told;
        found_.push_back(std::move(now_));
    }
    now_ = {};
    polled_.is = false;
}

bool Samplers::is_little(const Sampler& one) const {
    const auto most = kLittleWork * static_cast<double>(one.waited_ns);
    const double each = most / static_cast<double>(one.waits.size());
    return static_cast<double>(one.work_ns) <= most && static_cast<double>(one.after_ns) <= std::max(each, 1e6) &&
           (one.bytes <= kLittleSampled ||
            static_cast<double>(one.bytes) <= kLittleShare * static_cast<double>(bytes_));
}

/// Whether it is known who tells it. An edge to who sets a flag is added to Plan::cut and to `told`.
bool Samplers::is_told(Sampler& one, Plan& plan, std::vector<Edge>& told) const {
    const auto next = std::lower_bound(awaited_.begin(), awaited_.end(), std::pair{one.task, one.waits.front().first});
    if ((next != awaited_.end() && next->first == one.task && next->second < one.told) || !is_little(one)) {
        return false;
    }
    if (!one.by_flag) {
        return true;
    }
    auto& [cut, by] = plan.cut[one.task];
    if (by.task != 0) {
        one.by_flag = false;  // the end of its process
        one.told = cut;
        return cut >= one.waits.front().first;
    }
    const auto join = joins_.find(one.task);
    if (join == joins_.end() || join->second.ended < one.told || join->second.op == 0 ||
        join->second.begin <= one.since || join->second.begin >= one.last ||
        one.last - one.end > one.waits.back().second) {
        return false;
    }
    if (join->second.begin >= one.end) {
        one.told = one.last_op;  // set while it took the last sample
    }
    cut = one.told;
    by = {join->second.task, EdgeKind::wake, 100, join->second.op - 1};
    told.push_back(by);
    return true;
}

std::vector<Edge> Samplers::find(Plan& plan) {
    std::sort(awaited_.begin(), awaited_.end());
    std::vector<Edge> told;
    std::vector<Sampler> all = std::exchange(found_, {});
    for (Sampler& one : all) {
        if (is_told(one, plan, told)) {
            found_.push_back(std::move(one));
        }
    }
    awaited_ = {};
    joins_ = {};
    return told;
}

int64_t Samplers::join(Plan& plan) const {
    int64_t joined = 0;
    for (const Sampler& one : found_) {
        TaskPlan& task = plan.tasks[one.task];
        settle_explained(task);
        const std::vector<uint64_t> ended = task.explained;
        const bool is_told =
            one.by_flag ? std::any_of(task.waits.begin(), task.waits.end(),
                                      [&](const WaitFor& wait) {
                                          return wait.op == one.told && wait.task == plan.cut[one.task].second.task;
                                      })
                        : std::binary_search(ended.begin(), ended.end(), one.told);
        if (!is_told) {
            continue;
        }
        for (const auto& [op, ns] : one.waits) {
            if (std::binary_search(ended.begin(), ended.end(), op)) {
                continue;  // a poll, as well
            }
            task.explained.push_back(op);
            plan.count(Count::waits_joined);
            joined += ns;
            if (one.task < plan.helpers.tasks.size() && plan.helpers.tasks[one.task].beats_at(op)) {
                plan.helpers.beats_ns -= std::min(plan.helpers.beats_ns, ns);
            }
        }
        if (one.by_flag) {
            LookGrid grid{one.waits.front().first, one.told, one.told, {}, 0};
            for (size_t i = 0; i < std::min(one.waits.size(), kMostLookSleeps); ++i) {
                grid.sleeps.push_back(one.waits[i].second);
            }
            task.look_grids.push_back(std::move(grid));
        }
        settle_explained(task);
    }
    return joined;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/plan/requests.h"

#include <algorithm>
#include <cerrno>
#include <unordered_map>
#include <utility>

#include "formats/oplog/async_request.h"
#include "formats/oplog/reap_arg.h"
#include "formats/support/sums.h"
#include "replay/plan/edges_rules.h"
#include "replay/plan/plan.h"
#include "replay/plan/request_ring.h"

namespace reprise {
namespace {

/// Shorter computing between two requests is part of making them, ns.
constexpr int64_t kPause = 20'000;
/// libaio's results are taken so soon after a poll that they ended, ns.
constexpr int64_t kSoon = 1'000'000;
constexpr int64_t kBlock = 4096;

/// What a job took from libaio's ring in memory a recording has as a call that took no time and asked for none
/// (capture/bpf/aio_ring.h). When the results came it does not say.
bool took_from_memory(const OpBlock& block, size_t i) {
    return block.duration[i] == 0 && block.arg[i] == 0 && block.result[i] > 0 && block.result[i] == block.size[i];
}

}  // namespace

bool makes_request(const OpBlock& block, size_t i) { return makes_request(block, i, async_request(block, i)); }

uint32_t RequestScan::ring_of(ProcessId process, HandleId handle, bool aio) {
    const auto [at, fresh] = by_handle_.try_emplace({process, {handle, aio}}, static_cast<uint32_t>(rings_.size()));
    if (fresh) {
        RequestRing ring;
        ring.process = process;
        ring.handle = handle;
        ring.aio = aio;
        rings_.push_back(ring);
    }
    return at->second;
}

void RequestScan::assign(uint32_t ring) {
    for (; unassigned_ < submitted_.size(); ++unassigned_) {
        submitted_[unassigned_].ring = ring;
    }
    rings_[ring].polled = rings_[ring].polled || polled_;
    polled_ = false;
}

void RequestScan::leave_task() {
    if (unassigned_ < submitted_.size()) {
        assign(ring_of(process_, last_handle_, false));
    }
    last_handle_ = 0;
    reaped_ = 0;
    reaps_ = false;
    poll_ = {};
    entered_ = 0;
    paused_ = false;
}

void RequestScan::see_pause(const OpBlock& block, size_t i) {
    if (block.task == task_ && block.duration[i] >= kPause && !paused_) {
        paused_ = true;
        pause_ = block.begin[i];
    }
}

void RequestScan::see_poll(const OpBlock& block, size_t i) {
    const int64_t arg = block.arg[i];
    // The kernel interrupts a wait, whatever it is for, to report results of io_uring.
    const bool cut = block.result[i] == -EINTR;
    const bool polls =
        cut || ((arg == kWaitPoll || wait_class(arg) == kWaitEpoll || arg == kWaitUnknown) && block.result[i] > 0);
    const bool by_others = block.has_edges() && !block.edges_of(i).empty();
    poll_ = {};
    if (block.task == task_ && polls && !by_others) {
        const int64_t took = std::max<int64_t>(block.duration[i], 0);
        poll_ = {block.first + i, block.begin[i], OpRef::end_of(block.begin[i], took), took, cut};
    }
}

void RequestScan::polled_for(const Completed& done) {
    const int64_t slack = done.aio || poll_.cut ? kSoon : 0;
    if (poll_.end >= 0 && done.begin >= poll_.begin && done.begin <= OpRef::end_of(poll_.end, slack)) {
        const int64_t end = poll_.cut ? std::max(poll_.end, done.begin) : poll_.end;
        Wait wait{task_, 0, poll_.op, poll_.begin, end, 1, reaped_};
        wait.request = done.request;
        wait.took = poll_.took;
        waits_.push_back(wait);
    }
    poll_ = {};
}

void RequestScan::see(const OpBlock& block, size_t i, ProcessId process) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const OpInfo& row = info(kind);
    if (row.is(Trait::async) || calls_.waits()) {
        calls_.see(block, i);
    }
    const uint64_t op = block.first + i;
    if (kind == OpKind::compute) {
        looks_.computed(block.task, op, block.begin[i], block.duration[i]);
        sleeping_.computed(block.task, op, block.duration[i]);
    }
    if (kind == OpKind::wait) {
        if (block.arg[i] == kWaitSleep) {
            see_pause(block, i);
            sleeping_.slept(block.task, op, block.begin[i], block.duration[i]);
        }
        return see_poll(block, i);
    }
    if (kind == OpKind::compute) {
        return see_pause(block, i);
    }
    if (!row.is(Trait::async)) {
        return;
    }
    if (block.task != task_) {
        leave_task();
        task_ = block.task;
        process_ = process;
    }
    std::vector<uint64_t> needs;
    for (const Edge& edge : block.has_edges() ? block.edges_of(i) : std::span<const Edge>{}) {
        if (edge.task == block.task && edge.op < op) {
            if (edge.kind == EdgeKind::reaped) {
                reaped_ = edge.op + 1;
            } else {
                needs.push_back(edge.op + 1);
            }
        }
    }
    if (row.is(Trait::submits)) {
        const AsyncRequest asked = async_request(block, i);
        if (!makes_request(block, i, asked) && !stands_for_call(block, i, asked)) {
            return;
        }
        Submitted made;
        // What the job had taken is told late where a thread of the kernel takes the requests.
        const bool by_kernel = kind == OpKind::uring_submit && (block.flags[i] & kUringPolled) != 0;
        made.look = looks_.request(block.task, op, block.begin[i], by_kernel ? 0 : reaped_);
        sleeping_.requests(block.task, op);
        made.call = asked.is_call();
        made.reads = asked.reads();
        made.task = block.task;
        made.request = block.request[i];
        made.op = op;
        made.handle = block.handle[i];
        made.part = ((asked.offset | asked.size) & (kBlock - 1)) != 0;
        made.begin = block.begin[i];
        made.reaped = reaped_;
        made.needs = std::move(needs);
        made.paused = std::exchange(paused_, false);
        made.after = made.paused ? std::exchange(entered_, 0) : 0;
        made.pause = pause_;
        made.entered = entered_end_;
        polled_ = polled_ || by_kernel;
        submitted_.push_back(made);
        if (kind == OpKind::aio_submit) {
            submitted_.back().ring = ring_of(process, 0, true);
            unassigned_ = submitted_.size();
        }
        return;
    }
    if (row.is(Trait::completes)) {
        const bool aio = kind == OpKind::aio_complete;
        if (!aio) {  // of libaio the log says when they were taken, not when they came
            looks_.result(block.task, op, block.begin[i]);
        }
        // Without aio_reap the first of a row of results stands for the call.
        if (aio && !reaps_) {
            waits_.push_back({block.task, ring_of(process, 0, true), op, block.begin[i], block.begin[i], 1, 0});
            reaps_ = true;
        }
        sleeping_.result(block.task, op, block.request[i], aio, reaped_);
        completed_.push_back({block.task, block.request[i], op, block.begin[i], aio, 0, 0});
        polled_for(completed_.back());
        return;
    }
    const bool reap = kind == OpKind::aio_reap;
    const HandleId handle = reap ? 0 : block.handle[i];
    const uint32_t ring = ring_of(process, handle, reap);
    if (reap && took_from_memory(block, i)) {
        sum(rings_[ring].unclear_looks_ns, looks_.computed_before(block.task, op));
    }
    sleeping_.looked(block.task, op, reap && block.result[i] == 0);
    entered_ = op + 1;
    entered_end_ = OpRef::end_of(block.begin[i], block.duration[i]);
    paused_ = false;
    if (!reap) {
        last_handle_ = handle;
        assign(ring);
    }
    reaps_ = reap;
    // A call whose time was over, or that only looked, took fewer.
    const int64_t asked = least_results(block.arg[i]), least = reap ? std::min(asked, block.result[i]) : asked;
    if (least > 0) {
        const int64_t end = OpRef::end_of(block.begin[i], block.duration[i]);
        waits_.push_back({block.task, ring, op, block.begin[i], end, least, reaped_});
    }
}

void find_ring_workers(Plan& plan, const std::vector<uint8_t>& calls) {
    std::vector<uint8_t> made(plan.processes.size());
    for (const RequestRing& ring : plan.rings) {
        if (!ring.aio && ring.requests != 0 && ring.process < made.size()) {
            made[ring.process] = 1;
        }
    }
    for (TaskId id = 1; id < plan.tasks.size(); ++id) {
        TaskPlan& task = plan.tasks[id];
        // No call made it, but what its parent had done by then is known.
        const bool unasked = task.spawner == 0 && !task.waits.empty() && task.waits.front().op == 0 &&
                             task.waits.front().kind == EdgeKind::lifecycle;
        task.serves_ring = unasked && calls[id] == 0 && task.process < made.size() && made[task.process] != 0;
    }
}

void explain_polls(Plan& plan) {
    for (TaskPlan& task : plan.tasks) {
        const size_t before = task.explained.size();
        task.explained.insert(task.explained.end(), task.requests.polls.begin(), task.requests.polls.end());
        std::inplace_merge(task.explained.begin(), task.explained.begin() + static_cast<ptrdiff_t>(before),
                           task.explained.end());
    }
}

// A sleep that ended with a result is a wait for it.
void RequestScan::join_sleeps(Plan& plan) {
    if (plan.log->header().source != "capture") {
        return;
    }
    const std::vector<SleptFor> all = sleeping_.take();
    slept_ns_ = sleep_until_results(plan, all);
    for (const SleptFor& each : all) {
        const SleptFor::Sleep& last = each.sleeps.back();
        Wait wait{each.task, 0, last.op, last.begin, OpRef::end_of(last.begin, last.ns), 1, each.reaped};
        wait.request = each.request;
        wait.sleep = true;
        waits_.push_back(wait);
    }
}

// The polling thread of the kernel is a task of its own, which never enters the ring that it serves: the one of its
// process to which nobody else submits.
void RequestScan::join_polled() {
    std::vector<uint64_t> submitted(rings_.size());
    for (const Submitted& each : submitted_) {
        ++submitted[each.ring];
    }
    std::vector<uint32_t> same(rings_.size());
    for (uint32_t number = 0; number < rings_.size(); ++number) {
        same[number] = number;
        uint32_t found = number, count = 0;
        for (uint32_t other = 0; other < rings_.size(); ++other) {
            const bool fits = rings_[other].process == rings_[number].process && rings_[other].handle != 0;
            if (fits && !rings_[other].aio && submitted[other] == 0) {
                found = other;
                ++count;
            }
        }
        if (rings_[number].polled && rings_[number].handle == 0 && count == 1) {
            same[number] = found;
            rings_[found].polled = true;
        }
    }
    for (Submitted& each : submitted_) {
        each.ring = same[each.ring];
    }
}

void RequestScan::finish(Plan& plan) {
    leave_task();
    calls_.finish(plan);
    join_sleeps(plan);
    std::erase_if(submitted_, [&](const Submitted& each) { return each.call && !calls_.has(each.request); });
    join_polled();
    plan.rings = rings_;
    std::unordered_map<uint32_t, Submitted*> by_request;
    for (Submitted& each : submitted_) {
        by_request[each.request] = &each;
    }
    std::vector<Ring> rings(rings_.size());
    std::vector<TaskId> users(rings_.size());
    const auto use = [&](uint32_t ring, TaskId task) {
        plan.rings[ring].shared = plan.rings[ring].shared || (users[ring] != 0 && users[ring] != task);
        users[ring] = task;
    };
    for (Submitted& each : submitted_) {
        rings[each.ring].submitted.push_back(&each);
        bool& parts = plan.rings[each.ring].part_blocks;
        parts = parts || (each.part && plan.is_direct(each.handle));
        use(each.ring, each.task);
        auto& own = plan.tasks[each.task].requests.rings;
        if (own.empty() || own.back().second != each.ring) {
            own.emplace_back(each.op, each.ring);
        }
    }
    for (Completed& each : completed_) {
        if (const auto found = by_request.find(each.request); found != by_request.end()) {
            rings[found->second->ring].completed.push_back(&each);
            use(found->second->ring, each.task);
        }
    }
    for (Wait& each : waits_) {
        if (each.request != 0) {
            const auto found = by_request.find(each.request);
            if (found == by_request.end()) {
                continue;
            }
            each.ring = found->second->ring;
            if (!each.sleep) {
                plan.tasks[each.task].requests.polls.push_back(each.op);
                plan.explained_wait_ns += each.took;
            }
        }
        rings[each.ring].waits.push_back(&each);
        use(each.ring, each.task);
    }
    for (uint32_t number = 0; number < rings.size(); ++number) {
        count(plan.rings[number], number, rings[number]);
    }
    find_looks(plan);
    for (uint32_t number = 0; number < rings.size(); ++number) {
        RequestRing& facts = plan.rings[number];
        facts.full = kept_full(facts, rings[number]);
        facts.at_once = made_at_once(plan, facts, rings[number]);
        need_at_submissions(plan, number, rings[number]);
        const uint64_t waited = need_in_waits(plan, number, rings[number]);
        need_last(plan, number, rings[number], waited);
    }
    for (TaskPlan& task : plan.tasks) {
        std::stable_sort(task.requests.needs.begin(), task.requests.needs.end(),
                         [](const RequestNeed& a, const RequestNeed& b) { return a.op < b.op; });
        std::sort(task.requests.polls.begin(), task.requests.polls.end());
    }
}

}  // namespace reprise

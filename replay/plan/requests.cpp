// SPDX-License-Identifier: MIT
#include "replay/plan/requests.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "formats/oplog/async_request.h"
#include "replay/plan/edges_rules.h"
#include "replay/plan/plan.h"

namespace reprise {
namespace {

/// Of the waits of a ring that was kept full, so many began with it full. The rest are ends of files and of batches.
constexpr double kMostlyFull = 0.95;
/// Shorter computing between two requests is part of making them, ns.
constexpr int64_t kPause = 20'000;
/// The kernel may end a wait before the recorder sees the last of its results, ns.
constexpr int64_t kJustAfter = 100'000;
/// libaio's results are taken so soon after a poll that they ended, ns.
constexpr int64_t kSoon = 1'000'000;
/// A ring of so few waits shows nothing.
constexpr size_t kLeastWaits = 8;

}  // namespace

struct RequestScan::Ring {
    std::vector<const Submitted*> submitted;  // by time
    std::vector<const Completed*> completed;  // by time
    std::vector<const Wait*> waits;           // by time
    std::map<std::pair<TaskId, uint64_t>, uint64_t> numbers;
};

bool makes_request(const OpBlock& block, size_t i) {
    using Does = AsyncRequest::Does;
    switch (async_request(block, i).does) {
        case Does::nothing:
        case Does::read:
        case Does::write:
        case Does::sync:
        case Does::sync_data:
        case Does::sync_range:
        case Does::allocate:
        case Does::advise: return block.request[i] != 0 && block.result[i] >= 0;
        case Does::splice:
        case Does::open:
        case Does::close:
        case Does::stat:
        case Does::make_name:
        case Does::end_name:
        case Does::other: return false;
    }
    return false;
}

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
    const bool polls =
        (arg == kWaitPoll || wait_class(arg) == kWaitEpoll || arg == kWaitUnknown) && block.result[i] > 0;
    const bool by_others = block.has_edges() && !block.edges_of(i).empty();
    poll_ = {};
    if (block.task == task_ && polls && !by_others) {
        poll_ = {block.first + i, block.begin[i], OpRef::end_of(block.begin[i], block.duration[i])};
    }
}

void RequestScan::polled_for(const Completed& done) {
    const int64_t slack = done.aio ? kSoon : 0;
    if (poll_.end >= 0 && done.begin >= poll_.begin && done.begin <= poll_.end + slack) {
        waits_.push_back(
            {task_, 0, poll_.op, poll_.begin, poll_.end, 1, reaped_, done.request, poll_.end - poll_.begin});
    }
    poll_ = {};
}

void RequestScan::see(const OpBlock& block, size_t i, ProcessId process) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const OpInfo& row = info(kind);
    if (kind == OpKind::wait) {
        if (block.arg[i] == kWaitSleep) {
            see_pause(block, i);
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
    const uint64_t op = block.first + i;
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
        if (!makes_request(block, i)) {
            return;
        }
        Submitted made;
        made.task = block.task;
        made.request = block.request[i];
        made.op = op;
        made.begin = block.begin[i];
        made.reaped = reaped_;
        made.needs = std::move(needs);
        made.paused = std::exchange(paused_, false);
        made.after = made.paused ? std::exchange(entered_, 0) : 0;
        made.pause = pause_;
        polled_ = polled_ || (kind == OpKind::uring_submit && (block.flags[i] & kUringPolled) != 0);
        submitted_.push_back(made);
        if (kind == OpKind::aio_submit) {
            submitted_.back().ring = ring_of(process, 0, true);
            unassigned_ = submitted_.size();
        }
        return;
    }
    if (row.is(Trait::completes)) {
        const bool aio = kind == OpKind::aio_complete;
        // Without aio_reap the first of a row of results stands for the call.
        if (aio && !reaps_) {
            waits_.push_back({block.task, ring_of(process, 0, true), op, block.begin[i], block.begin[i], 1, 0, 0, 0});
            reaps_ = true;
        }
        completed_.push_back({block.task, block.request[i], op, block.begin[i], aio});
        polled_for(completed_.back());
        return;
    }
    const bool reap = kind == OpKind::aio_reap;
    const HandleId handle = reap ? 0 : block.handle[i];
    const uint32_t ring = ring_of(process, handle, reap);
    entered_ = op + 1;
    paused_ = false;
    if (!reap) {
        last_handle_ = handle;
        assign(ring);
    }
    reaps_ = reap;
    // A call whose time was over, or that only looked, took fewer.
    const int64_t least = reap ? std::min<int64_t>(block.arg[i], block.result[i]) : block.arg[i];
    if (least > 0) {
        const int64_t end = OpRef::end_of(block.begin[i], block.duration[i]);
        waits_.push_back({block.task, ring, op, block.begin[i], end, least, reaped_, 0, 0});
    }
}

// Numbers what the ring gave, in the order of time, and finds of every submission and wait how much had to be there.
void RequestScan::count(Plan& plan, uint32_t number, Ring& ring) {
    const auto by_time = [](const auto* a, const auto* b) {
        return std::tie(a->begin, a->task, a->op) < std::tie(b->begin, b->task, b->op);
    };
    std::sort(ring.submitted.begin(), ring.submitted.end(), by_time);
    std::sort(ring.completed.begin(), ring.completed.end(), by_time);
    std::sort(ring.waits.begin(), ring.waits.end(), by_time);
    RequestRing& facts = plan.rings[number];
    facts.requests = ring.submitted.size();
    for (uint64_t k = 0; k < ring.completed.size(); ++k) {
        ring.numbers[{ring.completed[k]->task, ring.completed[k]->op}] = k + 1;
    }
    const auto told = [&](TaskId task, uint64_t reaped) {
        const auto found = reaped == 0 ? ring.numbers.end() : ring.numbers.find({task, reaped - 1});
        return found == ring.numbers.end() ? uint64_t{0} : found->second;
    };
    facts.exact = facts.aio || std::any_of(ring.submitted.begin(), ring.submitted.end(),
                                           [&](const Submitted* each) { return told(each->task, each->reaped) != 0; });
    // What was done when an op began, and what the job had taken of it.
    const auto taken = [&](const auto* at, size_t& done) {
        while (done < ring.completed.size() && by_time(ring.completed[done], at)) {
            ++done;
        }
        const bool known = facts.exact && !facts.aio;
        return known ? std::min<uint64_t>(told(at->task, at->reaped), done) : uint64_t{done};
    };
    std::vector<uint64_t> had(ring.submitted.size());
    size_t done = 0;
    for (size_t n = 0; n < ring.submitted.size(); ++n) {
        had[n] = std::max(taken(ring.submitted[n], done), n == 0 ? 0 : had[n - 1]);
        facts.depth = std::max<uint32_t>(facts.depth, static_cast<uint32_t>(n + 1 - std::min<uint64_t>(had[n], n)));
    }
    struct Known {
        uint64_t submitted = 0, had = 0;
    };
    std::vector<Known> waits(ring.waits.size());
    size_t full = 0, counted = 0, n = 0;
    done = 0;
    for (size_t w = 0; w < ring.waits.size(); ++w) {
        while (n < ring.submitted.size() && by_time(ring.submitted[n], ring.waits[w])) {
            ++n;
        }
        const uint64_t least = n == 0 ? 0 : had[n - 1];
        const uint64_t before = w == 0 ? 0 : waits[w - 1].had;
        waits[w] = {n, std::max({taken(ring.waits[w], done), least, before})};
        if (n < ring.submitted.size()) {
            ++counted;
            full += n - std::min<uint64_t>(waits[w].had, n) >= facts.depth ? 1 : 0;
        }
    }
    // Kept full: that is how waits begin, and what results are taken from.
    size_t takes = 0, from_full = 0;
    for (size_t s = 1; s < had.size(); ++s) {
        takes += had[s] > had[s - 1] ? 1 : 0;
        from_full += had[s] > had[s - 1] && s - std::min<uint64_t>(had[s - 1], s) >= facts.depth ? 1 : 0;
    }
    const auto mostly = [](size_t share, size_t of) {
        return static_cast<double>(share) >= kMostlyFull * static_cast<double>(of);
    };
    facts.full = (counted >= kLeastWaits || takes >= kLeastWaits) && mostly(full, counted) && mostly(from_full, takes);
    uint64_t last = 0;
    for (size_t s = 0; s < ring.submitted.size(); ++s) {
        const Submitted& each = *ring.submitted[s];
        std::vector<RequestNeed>& needs = plan.tasks[each.task].requests.needs;
        const uint64_t room = s + 1 > facts.depth ? s + 1 - facts.depth : 0;
        // Nothing was in flight, the job did something else, and then made several in a row: a batch was over.
        const bool batch =
            each.paused && had[s] == s && s + 1 < ring.submitted.size() && !ring.submitted[s + 1]->paused;
        const uint64_t least = facts.full && !batch ? std::min(room, had[s]) : had[s];
        if (each.after != 0) {
            const auto later =
                std::upper_bound(ring.completed.begin(), ring.completed.end(), each.pause,
                                 [](int64_t pause, const Completed* done) { return pause < done->begin; });
            needs.push_back({each.after - 1, std::min(least, static_cast<uint64_t>(later - ring.completed.begin())),
                             number, 0, true});
        }
        if (least > last || (facts.shared && least != 0)) {
            needs.push_back({each.op, least, number, 0, false});
            ++plan.edges_by_kind[static_cast<size_t>(EdgeKind::reaped)];
            last = std::max(last, least);
        }
        for (const uint64_t data : each.needs) {
            if (const auto found = ring.numbers.find({each.task, data - 1}); found != ring.numbers.end()) {
                needs.push_back({each.op, 0, number, ring.completed[found->second - 1]->request, false});
                ++facts.data_edges;
                ++plan.edges_by_kind[static_cast<size_t>(EdgeKind::resource)];
            }
        }
    }
    for (size_t w = 0; w < ring.waits.size(); ++w) {
        const Wait& each = *ring.waits[w];
        const uint64_t had_then =
            facts.full ? std::max(waits[w].had,
                                  waits[w].submitted > facts.depth ? waits[w].submitted - facts.depth : uint64_t{0})
                       : waits[w].had;
        uint64_t want = had_then + static_cast<uint64_t>(each.least);
        if (!facts.aio) {
            // It ended with fewer where a signal or its time-out came before.
            const auto later =
                std::upper_bound(ring.completed.begin(), ring.completed.end(), each.end,
                                 [](int64_t end, const Completed* done) { return end < done->begin - kJustAfter; });
            want = std::min(want, static_cast<uint64_t>(later - ring.completed.begin()));
        }
        // More than the ring has in flight nobody waits for; requests that no replay makes would have ended the wait.
        plan.tasks[each.task].requests.needs.push_back(
            {each.op, std::min<uint64_t>({want, waits[w].submitted, ring.completed.size()}), number, 0, true});
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
    join_polled();
    plan.rings = rings_;
    std::unordered_map<uint32_t, const Submitted*> by_request;
    for (const Submitted& each : submitted_) {
        by_request[each.request] = &each;
    }
    std::vector<Ring> rings(rings_.size());
    std::vector<TaskId> users(rings_.size());
    const auto use = [&](uint32_t ring, TaskId task) {
        plan.rings[ring].shared = plan.rings[ring].shared || (users[ring] != 0 && users[ring] != task);
        users[ring] = task;
    };
    for (const Submitted& each : submitted_) {
        rings[each.ring].submitted.push_back(&each);
        use(each.ring, each.task);
        auto& own = plan.tasks[each.task].requests.rings;
        if (own.empty() || own.back().second != each.ring) {
            own.emplace_back(each.op, each.ring);
        }
    }
    for (const Completed& each : completed_) {
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
            plan.tasks[each.task].requests.polls.push_back(each.op);
            plan.explained_wait_ns += each.took;
        }
        rings[each.ring].waits.push_back(&each);
        use(each.ring, each.task);
    }
    for (uint32_t number = 0; number < rings.size(); ++number) {
        count(plan, number, rings[number]);
    }
    for (TaskPlan& task : plan.tasks) {
        std::stable_sort(task.requests.needs.begin(), task.requests.needs.end(),
                         [](const RequestNeed& a, const RequestNeed& b) { return a.op < b.op; });
    }
}

}  // namespace reprise

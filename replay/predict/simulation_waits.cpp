// SPDX-License-Identifier: MIT
// What tasks of a prediction wait for beside each other: requests, locks, processors; what is given up where all
// wait; and what a watcher is told.
#include <algorithm>
#include <utility>

#include "replay/plan/broken_edge.h"
#include "replay/predict/simulation.h"

namespace reprise {
namespace {

/// Time slice of threads that compete for a processor, ns.
constexpr int64_t kSlice = 3'000'000;

}  // namespace

bool Simulation::needs(TaskId id, Task& task, uint64_t op, bool inside) {
    const std::vector<RequestNeed>& all = plan_.tasks[id].requests.needs;
    for (; task.need < all.size() && all[task.need].op <= op; ++task.need) {
        const RequestNeed& need = all[task.need];
        if (need.op < op) {
            continue;
        }
        if (need.inside != inside) {
            return true;
        }
        if (!await(id, task, need)) {
            return false;
        }
        task.waited = inside && need.count != 0;
    }
    return true;
}

bool Simulation::await(TaskId id, Task& task, const RequestNeed& need) {
    if (!requests_.met(need)) {
        task.waits_since = task.waits_since < 0 ? now_ : task.waits_since;
        requests_.wait(id, need);
        return false;
    }
    if (task.waits_since >= 0) {
        waited_ns_ += now_ - task.waits_since;
        task.waits_since = -1;
        task.released = now_;
        task.path.spend(PathPart::device, now_, plan_.helpers.is_cut(id));
    }
    return true;
}

bool Simulation::told(TaskId id, Task& task) {
    const OpBlock& b = task.block;
    const std::vector<uint64_t>& sources = plan_.tasks[id].sources;
    const bool relied = info(static_cast<OpKind>(b.kind[task.i])).is(Trait::completes) &&
                        task.source < sources.size() && sources[task.source] == b.first + task.i;
    const auto slot = relied ? requests_.in_flight(b.request[task.i]) : std::nullopt;
    return !slot || await(id, task, {b.first + task.i, 0, requests_.at(*slot).ring, b.request[task.i], true});
}

bool Simulation::asynchronous(Task& task) {
    const OpBlock& b = task.block;
    const size_t i = task.i;
    const auto kind = static_cast<OpKind>(b.kind[i]);
    const bool model = options_.calls == CallTimes::model;
    const int64_t call_ns = model ? options_.storage.call_ns : 0;
    task.end = now_;
    if (info(kind).is(Trait::completes)) {
        return true;
    }
    if (!info(kind).is(Trait::submits)) {
        // What others had to be waited for is not its own time; where the log does not say for what, it stands.
        task.end = task.waited              ? std::max(now_, task.begin + call_ns)
                   : b.arg[i] > 0 || !model ? now_ + known_time(b, i)
                                            : now_ + call_ns;
        return true;
    }
    // A call on names takes its time at its op, from here on.
    const RingCall* const calls = plan_.tasks[b.task].requests.calls.submitted_by(b.first + i);
    const VirtualRequests::Made made =
        makes_request(b, i) || calls != nullptr ? requests_.make(b, i) : VirtualRequests::Made();
    if (made.slot == VirtualRequests::kNone) {
        return false;
    }
    if (calls != nullptr) {
        requests_.at(made.slot).asked.does = AsyncRequest::Does::nothing;
        task.called[calls->called] = now_;
    }
    open_loops_.made(requests_.at(made.slot).task, requests_.at(made.slot).number);
    if (model && calls_.waits_in_submit(b, i)) {
        task.own = made.slot;
        return false;
    }
    if (made.begins) {
        task.end = std::max(now_, begin(made.slot, known_time(b, i)));
    }
    task.end += kind == OpKind::aio_submit ? call_ns : 0;
    return true;
}

int64_t Simulation::begin(uint32_t slot, int64_t known_ns) {
    VirtualRequests::Request& request = requests_.at(slot);
    if (options_.calls == CallTimes::model) {
        make_room();
        const int64_t end = calls_.start_request(request.call, request.handle, request.asked, now_);
        at_request(end, slot);
        if (VirtualCalls::was_cached(request.call)) {
            return end;
        }
        // Memory serves a read within the call that makes it; a limit does not.
        if (!options_.storage.inline_reads || !request.call.done || !request.asked.reads()) {
            return now_;
        }
        const double alone = calls_.storage().device().alone_ns(request.asked.size, VirtualDevice::By::ring);
        return std::min(end, now_ + static_cast<int64_t>(alone));
    }
    calls_.count_moved(request.asked);
    request.call.done = true;
    at_request(now_ + request_time(slot, known_ns), slot);
    return now_ + (request_times_ != nullptr || keys_ ? 0 : known_ns);
}

void Simulation::go_on(uint32_t slot) {
    VirtualCall& call = requests_.at(slot).call;
    if (call.done) {
        complete(slot);
        return;
    }
    make_room();
    at_request(calls_.go_on(call, now_), slot);
}

void Simulation::complete(uint32_t slot) {
    const TaskId task = requests_.at(slot).task;
    const uint32_t number = requests_.at(slot).number;
    const VirtualRequests::Released released = requests_.complete(slot, now_);
    open_loops_.done(number, now_);
    if (now_ > last_end_) {  // the job is not over before its rings are
        last_end_ = now_;
        VirtualPath path = tasks_[task].path;
        path.spend(PathPart::device, now_);
        out_.path = path.times();
    }
    if (output_) {
        output_->done(number, now_ + plan_.first_begin);
    }
    for (const TaskId id : released.tasks) {
        at(now_, id);
    }
    for (const uint32_t next : released.slots) {
        begin(next, 0);
    }
}

void Simulation::skip_request(const OpBlock& b, size_t i) {
    const bool calls = plan_.tasks[b.task].requests.calls.submitted_by(b.first + i) != nullptr;
    if (info(static_cast<OpKind>(b.kind[i])).is(Trait::submits) && (makes_request(b, i) || calls)) {
        if (const VirtualRequests::Made made = requests_.make(b, i); made.begins) {
            complete(made.slot);
        } else if (made.slot != VirtualRequests::kNone) {
            requests_.at(made.slot).asked.does = AsyncRequest::Does::nothing;
        }
    }
}

bool Simulation::take_lock(TaskId id, Task& task, uint32_t number) {
    if (number == 0) {
        return true;
    }
    Lock& lock = number == Plan::kOwnLock ? locks_[plan_.tasks[id].process] : guards_[number % guards_.size()];
    if (lock.held) {
        lock.waiters.push_back(id);
        return false;
    }
    lock.held = true;
    task.lock = &lock;
    return true;
}

void Simulation::give_lock(Task& task) {
    Lock& lock = *task.lock;
    task.lock = nullptr;
    lock.held = !lock.waiters.empty();
    if (lock.held) {
        Task& next = tasks_[lock.waiters.front()];
        next.lock = &lock;
        next.begin = now_;
        static_cast<void>(next.step->due(next.block, next.i, now_));
        next.path.released_by(task.path, now_, 0);
        at(now_, lock.waiters.front());
        lock.waiters.pop_front();
    }
}

bool Simulation::compute(TaskId id, Task& task) {
    if (running_ >= out_.cpus) {
        ready_.push_back(id);
        return false;
    }
    ++running_;
    task.slice = std::min(task.left, kSlice);
    return until(now_ + task.slice, id);
}

bool Simulation::computed(TaskId id, Task& task) {
    task.left -= task.slice;
    if (task.left > 0 && ready_.empty()) {
        task.slice = std::min(task.left, kSlice);
        return until(now_ + task.slice, id);
    }
    --running_;
    if (!ready_.empty()) {
        const TaskId other = ready_.front();
        ready_.pop_front();
        ++running_;
        tasks_[other].slice = std::min(tasks_[other].left, kSlice);
        at(now_ + tasks_[other].slice, other);
    }
    if (task.left > 0) {
        return compute(id, task);
    }
    out_.computing_ns += task.wanted;
    out_.run_queue_ns += std::max<int64_t>(now_ - task.begin - task.wanted, 0);
    task.end = now_;
    task.phase = Phase::finish;
    return true;
}

bool Simulation::let_go() {
    TaskId weakest = 0;
    const auto wait_of = [&](TaskId id) -> const WaitFor& { return plan_.tasks[id].waits[tasks_[id].wait]; };
    for (TaskId id = 1; id < tasks_.size(); ++id) {
        if (tasks_[id].blocked &&
            (weakest == 0 || evidence_rank(wait_of(id).kind) < evidence_rank(wait_of(weakest).kind))) {
            weakest = id;
        }
    }
    if (weakest == 0 || evidence_rank(wait_of(weakest).kind) >= evidence_rank(EdgeKind::reaped)) {
        if (let_request_go()) {
            return true;
        }
    }
    if (weakest == 0) {
        return false;
    }
    Task& task = tasks_[weakest];
    const WaitFor& wait = wait_of(weakest);
    const OpKind kind = task.i < task.block.count() ? static_cast<OpKind>(task.block.kind[task.i]) : OpKind::wait;
    out_.broken.push_back({weakest, wait.op, kind, wait.task, wait.source, wait.kind});
    ++task.wait;
    at(now_, weakest);
    return true;
}

bool Simulation::let_request_go() {
    const auto dropped = requests_.drop_waiter();
    if (!dropped) {
        return false;
    }
    const auto& [waits, need] = *dropped;
    if (need.inside && need.request != 0) {
        requests_.forget(need.request);  // see told()
    } else {
        ++tasks_[waits].need;
    }
    at(now_, waits);
    return true;
}

void Simulation::watch(TaskId id, Task& task) {
    const OpBlock& b = task.block;
    const size_t i = task.i;
    WatchedOp op{id, b, i, task.role, task.inside};
    op.think_ns = std::max<int64_t>(task.think, 0);
    const bool accelerator = info(static_cast<OpKind>(b.kind[i])).is(Trait::accelerator);
    const bool waited = task.role == CausalRole::wait || task.role == CausalRole::drain;
    op.took_ns = waited ? 0 : std::max<int64_t>(task.end - task.performed, 0);
    op.compute_ns = task.role == CausalRole::compute ? op.took_ns : 0;
    op.waits = task.wait;
    op.fetches = task.fetches;
    op.fetched = task.fetched;
    if (accelerator) {
        op.stream = plan_.streams.at({b.arg[i], b.flags[i]});
        op.busy_ns = task.role == CausalRole::submit ? speeds_.busy(b.size[i]) : 0;
    }
    options_.watcher->ended(op);
}

}  // namespace reprise

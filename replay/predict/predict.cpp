// SPDX-License-Identifier: MIT
#include "replay/predict/predict.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "formats/oplog/header_facts.h"
#include "replay/plan/edges_rules.h"
#include "replay/predict/simulation.h"

namespace reprise {

Prediction Simulation::run() {
    for (ProcessId process = 1; process < plan_.processes.size(); ++process) {
        if (plan_.processes[process].spawner == 0) {
            start_process(process, nullptr, {});
        }
    }
    while (!events_.empty() || let_go()) {
        const Event event = events_.top();
        events_.pop();
        if (event.task == 0) {
            now_ = event.time;
            go_on(event.turn);
        } else if (event.turn == tasks_[event.task].turn) {
            now_ = event.time;
            advance(event.task);
        }
    }
    out_.elapsed_ns = last_end_;
    out_.recorded_ns = out_.ops == 0 ? 0 : recorded_end_ - plan_.first_begin;
    out_.computed = times_are_computed(plan_.log->header());
    out_.helpers = helper_time_.finish();
    out_.serial_writers = serial_writers_.finish();
    out_.slept_through = slept_through_.finish();
    out_.open_loops = open_loops_.finish();
    sum_up(out_, plan_, calls_);
    for (size_t kind = 0; kind < not_in_service_.size(); ++kind) {
        if (not_in_service_[kind] != 0) {
            out_.not_in_service.emplace_back(info(static_cast<OpKind>(kind)).name, not_in_service_[kind]);
        }
    }
    out_.storage_ns += waited_ns_;
    out_.left_mapped_bytes = static_cast<uint64_t>(static_cast<double>(out_.left_mapped_bytes) * options_.mapped_times);
    if (out_.touched_pages != 0) {
        out_.hidden_bytes = options_.hidden_bytes;
        out_.known_bytes = options_.known_bytes;
        out_.around = options_.around;
        out_.around.read_ahead = options_.storage.read_ahead_bytes;
    }
    out_.interval = interval_of(out_, plan_, options_);
    out_.epochs = epochs_.finish(last_end_, calls_);
    if (output_) {
        output_->finish(out_, options_.storage);
        out_.output_lost = output_->lost();
        out_.output = out_.output_lost.empty() ? out_.output : std::filesystem::path();
    }
    return std::move(out_);
}

void Simulation::start(TaskId id, const VirtualPath* spawner, std::optional<int64_t> spawned) {
    Task& task = tasks_[id];
    if (task.phase != Phase::not_started) {
        return;
    }
    if (spawner != nullptr) {
        task.path = VirtualPath(*spawner, now_);
    }
    task.phase = Phase::next;
    task.step.emplace(plan_, id, speeds_, 0, spawned, TimingNoise{0, 0});
    task.end = now_;
    at(now_, id);
    if (options_.watcher != nullptr) {
        options_.watcher->started(id, spawner == nullptr ? 0 : plan_.tasks[id].spawner);
    }
}

void Simulation::start_process(ProcessId process, const VirtualPath* spawner, std::optional<int64_t> spawned) {
    const ProcessPlan& plan = plan_.processes[process];
    if (plan.first_task != 0) {
        start(plan.first_task, spawner, spawned);
    }
    for (const TaskId task : plan.tasks_at_start) {
        start(task, spawner, {});
    }
}

void Simulation::advance(TaskId id) {
    Task& task = tasks_[id];
    for (;;) {
        switch (task.phase) {
            case Phase::next:
                if (!next(id, task)) {
                    return;
                }
                break;
            case Phase::issue:
                if (!issue(id, task)) {
                    return;
                }
                break;
            case Phase::calling:
                if (!calling(id, task)) {
                    return;
                }
                break;
            case Phase::computing:
                if (!computed(id, task)) {
                    return;
                }
                break;
            case Phase::timer:
                if (!timer(id, task)) {
                    return;
                }
                break;
            case Phase::finish: finish(id, task); break;
            case Phase::not_started:
            case Phase::ended: return;
        }
    }
}

bool Simulation::edges(TaskId id, Task& task, uint64_t op) {
    const std::vector<WaitFor>& waits = plan_.tasks[id].waits;
    for (; task.wait < waits.size() && waits[task.wait].op <= op; ++task.wait) {
        Task& source = tasks_[waits[task.wait].task];
        if (source.published < waits[task.wait].count) {
            source.waiters.push_back(id);
            task.blocked = true;
            return false;
        }
        if (task.blocked) {
            task.blocked = false;
            task.released = now_;
            const bool inferred = waits[task.wait].kind == EdgeKind::queue;
            task.path.released_by(source.path, now_, inferred ? plan_.queues.doubt(id) : 0.0);
        }
    }
    return true;
}

void Simulation::publish(Task& source, uint32_t count) {
    source.published = count;
    std::vector<TaskId> waiters;
    waiters.swap(source.waiters);
    for (const TaskId waiter : waiters) {
        at(now_, waiter);
    }
}

bool Simulation::next(TaskId id, Task& task) {
    const TaskPlan& plan = plan_.tasks[id];
    if (task.i >= task.block.count()) {
        if (task.next_block == plan.blocks.size()) {
            task.phase = Phase::ended;
            publish(task, UINT32_MAX);
            return false;
        }
        plan_.log->decode(plan.blocks[task.next_block++], task.block);
        task.i = 0;
        return true;
    }
    const OpBlock& b = task.block;
    const size_t i = task.i;
    const uint64_t op = b.first + i;
    task.inside = task.wait < plan.waits.size() && plan.waits[task.wait].op <= op && task.step->waits_inside(b, i);
    if (!task.inside && !edges(id, task, op)) {
        return false;
    }
    if (!keeps(plan_, b, i)) {
        task.step->left_out(b, i);
        passed(task, plan, op);
        return true;
    }
    if (!needs(id, task, op, false)) {
        return false;
    }
    task.phase = Phase::issue;
    task.begin = -1;
    task.waited = false;
    if (options_.watcher != nullptr) {
        task.think = task.step->due(b, i, INT64_MIN) - task.end;
    }
    return until(task.step->due(b, i, task.released), id);
}

bool Simulation::issue(TaskId id, Task& task) {
    const OpBlock& b = task.block;
    const size_t i = task.i;
    const auto kind = static_cast<OpKind>(b.kind[i]);
    if (task.begin < 0) {
        task.begin = now_;
        task.path.spend(PathPart::call, now_, plan_.helpers.is_cut(id));
        epochs_.issued(id, b.first + i, now_, calls_);
    }
    if (task.lock == nullptr && !take_lock(id, task, plan_.lock_of(id, b, i))) {
        return false;
    }
    const int64_t released = task.released;
    if (task.inside && !edges(id, task, b.first + i)) {
        return false;
    }
    if (!needs(id, task, b.first + i, true) || !told(id, task)) {
        return false;
    }
    task.released = released;  // a wait that is over does not delay the op after it
    if (!task.inside && tells_others(kind, b.arg[i])) {
        publish_if_source(task, plan_.tasks[id], b.first + i, true);
    }
    if (kind == OpKind::spawn) {
        spawn(id, b.peer[i], b.first + i);
    }
    return perform(id, task);
}

/// The current op is issued. False if the task has to wait.
bool Simulation::perform(TaskId id, Task& task) {
    const OpBlock& b = task.block;
    const size_t i = task.i;
    const auto kind = static_cast<OpKind>(b.kind[i]);
    task.performed = now_;
    task.fetches = task.fetched = 0;
    task.phase = Phase::finish;
    const CausalRole role = task.role = task.step->issued(b, i, task.begin, calls_.performs(b, i));
    if (kind == OpKind::compute) {
        out_.after_waits_ns += task.step->after_wait_ns();
    }
    switch (role) {
        case CausalRole::call:
            if (info(kind).is(Trait::async) && asynchronous(task)) {
                break;
            }
            if (options_.calls != CallTimes::model) {
                task.end = now_ + service_time(id, b, i);
                break;
            }
            make_room();
            fetching(task, [&] { task.end = calls_.start(task.call, b, i, now_); });
            task.end = task.call.done ? called_before(task, task.end) : task.end;
            task.phase = task.call.done ? Phase::finish : Phase::calling;
            break;
        case CausalRole::wait: task.end = now_; break;
        case CausalRole::submit: {
            int64_t& free = stream(b, i);
            free = std::max(free, now_) + speeds_.busy(b.size[i]);
            task.end = task.step->until();
            break;
        }
        case CausalRole::drain: task.end = std::max(now_, stream(b, i)); break;
        case CausalRole::compute:
            task.left = task.wanted = task.step->compute_ns();
            task.phase = Phase::computing;
            task.slice = 0;
            return compute(id, task);
        case CausalRole::delay:
            skip_request(b, i);
            out_.computing_ns += kind == OpKind::compute ? task.step->compute_ns() : 0;
            task.end = task.step->until();
            if (task.step->ended_by() != nullptr) {
                task.phase = Phase::timer;
                at(task.end, id);
                return true;
            }
            break;
    }
    return until(task.end, id);
}

int64_t Simulation::known_time(const OpBlock& b, size_t i) const {
    constexpr int64_t kMost = int64_t{1} << 50;
    return in_memory_ != nullptr ? in_memory_->of(b, i) : std::clamp<int64_t>(b.duration[i], 0, kMost);
}

int64_t Simulation::service_time(TaskId id, const OpBlock& b, size_t i) {
    calls_.count_moved(b, i);
    if (!keys_) {
        return known_time(b, i);
    }
    const std::optional<ServiceKeys::Call> call = keys_->of(b.row(i), now_);
    if (!call) {
        return known_time(b, i);
    }
    const std::optional<int64_t> drawn = options_.service->draw(*call, uint64_t{id} << 40 ^ (b.first + i));
    if (!drawn) {
        ++not_in_service_[b.kind[i]];
    }
    const int64_t ns = drawn.value_or(known_time(b, i));
    keys_->ends(*call, now_ + ns);
    return ns;
}

int64_t Simulation::request_time(uint32_t slot, int64_t known_ns) {
    const VirtualRequests::Request& request = requests_.at(slot);
    if (request_times_ != nullptr) {
        return request_times_->of(request.number);
    }
    if (!keys_) {
        return known_ns;
    }
    const Tables& tables = plan_.log->tables();
    const FileId file = request.handle < tables.handles.size() ? tables.handles[request.handle].file : FileId{0};
    const std::optional<ServiceKeys::Call> call = keys_->of(request.asked, file, now_);
    const std::optional<int64_t> drawn =
        call ? options_.service->draw(*call, uint64_t{1} << 63 ^ request.number) : std::nullopt;
    if (call && !drawn) {
        ++not_in_service_[static_cast<size_t>(OpKind::uring_submit)];
    }
    const int64_t ns = drawn.value_or(known_ns);
    if (call) {
        keys_->ends(*call, now_ + ns);
    }
    return ns;
}

bool Simulation::timer(TaskId id, Task& task) {
    const WaitFor& by = *task.step->ended_by();
    std::vector<TaskId>& waiters = tasks_[by.task].waiters;
    std::erase(waiters, id);
    if (tasks_[by.task].published < by.count && now_ < task.end) {
        waiters.push_back(id);
        return false;
    }
    if (now_ > task.begin && now_ < task.end) {
        task.path.released_by(tasks_[by.task].path, now_, 0.0);
    }
    task.end = std::min(task.end, now_);
    task.phase = Phase::finish;
    ++task.turn;
    return true;
}

bool Simulation::calling(TaskId id, Task& task) {
    make_room();
    fetching(task, [&] { task.end = calls_.go_on(task.call, now_); });
    task.phase = task.call.done ? Phase::finish : Phase::calling;
    return until(task.end, id);
}

void Simulation::spawn(TaskId spawner, TaskId peer, uint64_t op) {
    if (peer == 0 || peer >= plan_.tasks.size() || plan_.tasks[peer].spawner != spawner ||
        plan_.tasks[peer].spawn_op != op) {
        return;
    }
    const ProcessId child = plan_.tasks[peer].process;
    if (child == plan_.tasks[spawner].process) {
        start(peer, &tasks_[spawner].path, now_);
    } else {
        start_process(child, &tasks_[spawner].path, now_);
    }
}

void Simulation::finish(TaskId id, Task& task) {
    const OpBlock& b = task.block;
    const size_t i = task.i;
    task.step->ended(task.end);
    ++out_.ops;
    task.path.spend(path_part(static_cast<OpKind>(b.kind[i]), b.arg[i], b.result[i], task.role, task.end - task.begin),
                    task.end, plan_.helpers.is_cut(id));
    helper_time_.see(id, b, i, task.begin, task.end);
    serial_writers_.see(id, b, i, task.begin, task.end);
    slept_through_.see(id, b, i, task.end);
    open_loops_.see(id, b, i, task.step->arrival(), task.begin, task.end);
    if (task.end > last_end_) {
        last_end_ = task.end;
        out_.path = task.path.times();
    }
    recorded_end_ = std::max(recorded_end_, OpRef::end_of(b.begin[i], b.duration[i]));
    if (task.role == CausalRole::call && info(static_cast<OpKind>(b.kind[i])).is(Trait::reads)) {
        out_.reads.add(task.end - task.begin);
    }
    if (task.own != VirtualRequests::kNone) {
        complete(std::exchange(task.own, VirtualRequests::kNone));
    }
    if (output_ || observes_) {
        write(id, task);
    }
    if (options_.watcher != nullptr) {
        watch(id, task);
    }
    if (task.lock != nullptr) {
        give_lock(task);
    }
    task.released = INT64_MIN;
    task.phase = Phase::next;
    passed(task, plan_.tasks[id], b.first + i);
}

void Simulation::write(TaskId id, Task& task) {
    const OpBlock& b = task.block;
    Op op = b.row(task.i);
    op.begin = task.begin + plan_.first_begin;
    op.duration = task.end - task.begin;
    op.edges = {};
    bool later = false;
    if (info(op.kind).is(Trait::completes)) {
        later = requests_.in_flight(op.request).has_value();
        if (const auto done = requests_.take_done(op.request); done && !later && *done < task.begin) {
            op.begin = std::max(*done + plan_.first_begin, task.row_begin);
            op.duration = 0;
        }
    }
    task.row_begin = op.begin;
    if (op.kind == OpKind::gpu_submit) {
        op.size = speeds_.busy(op.size);
    }
    if (observes_) {
        options_.observe(id, op);
    }
    if (output_) {
        output_->append(id, op, later);
    }
}

Predictor::Predictor(const LogReader& log, const OpFilter& filter, const AccessChange& access)
    : job_(std::make_unique<PlannedJob>(log, filter, access)) {}
Predictor::~Predictor() = default;

const Plan& Predictor::plan() const { return job_->plan; }
const std::optional<std::vector<HeldTotal>>& Predictor::held() const { return job_->held(); }
Prediction Predictor::run(const PredictOptions& options) const { return Simulation(*job_, options).run(); }

Prediction predict(const LogReader& log, const PredictOptions& options) {
    return Predictor(log, options.filter, options.access).run(options);
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/predict/predict.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <queue>

#include "formats/oplog/header_facts.h"
#include "replay/plan/causal_step.h"
#include "replay/plan/edges_rules.h"
#include "replay/plan/plan.h"
#include "replay/predict/planned_job.h"
#include "replay/predict/predicted_epochs.h"
#include "replay/predict/predicted_log.h"
#include "replay/predict/prediction_sum.h"
#include "replay/predict/virtual_calls.h"
#include "replay/predict/virtual_path.h"
#include "replay/predict/virtual_requests.h"

namespace reprise {
namespace {

/// Time slice of threads that compete for a processor, ns.
constexpr int64_t kSlice = 3'000'000;

class Simulation {
public:
    Simulation(const PlannedJob& job, const PredictOptions& options)
        : options_(options),
          plan_(job.plan),
          helper_time_(plan_, 0),
          serial_writers_(plan_),
          slept_through_(plan_),
          calls_(plan_, options.storage, options.warm,
                 options.memory ? std::optional(options.memory->policy) : std::nullopt),
          requests_(plan_),
          out_(begun(job, options)),
          tasks_(plan_.tasks.size()),
          locks_(plan_.processes.size()),
          devices_(plan_.streams.size()),
          epochs_(options.epochs, tasks_.size()) {
        speeds_ = options.speeds;
        // Without a limit of processors, compute takes its recorded time, as if it were slept.
        speeds_.computing = {out_.cpus > 0 ? DelayPolicy::spin : DelayPolicy::sleep, true};
        if (options.memory) {
            static const JobMemory none;
            room_.emplace(options.memory->held ? job.memory() : none, options.memory->bytes);
        }
        observes_ = options.observe && !plan_.streams.empty();
        if (options.calls == CallTimes::recorded && !plan_.rings.empty()) {
            request_times_ = &job.request_times();
        }
        if (options.calls == CallTimes::memory) {
            in_memory_ = &job.memory_times();
            out_.guessed_bytes = in_memory_->guessed_bytes();
        }
        if (!out_.output.empty()) {
            output_.emplace(*plan_.log, options);
        }
    }

    Prediction run() {
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
        out_.scaled = read_fact(plan_.log->header(), fact::scale).has_value();
        out_.helpers = helper_time_.finish();
        out_.serial_writers = serial_writers_.finish();
        out_.slept_through = slept_through_.finish();
        sum_up(out_, plan_, calls_);
        out_.storage_ns += waited_ns_;
        out_.left_mapped_bytes =
            static_cast<uint64_t>(static_cast<double>(out_.left_mapped_bytes) * options_.mapped_times);
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
        }
        return std::move(out_);
    }

private:
    enum class Phase : uint8_t { not_started, next, issue, calling, computing, timer, finish, ended };
    struct Lock {
        bool held = false;
        std::deque<TaskId> waiters;
    };
    struct Task {
        Phase phase = Phase::not_started;
        bool blocked = false;  // waits for an edge
        bool inside = false;   // the current op is itself a wait for its edges
        OpBlock block;
        size_t next_block = 0, i = 0, wait = 0, source = 0, need = 0;
        uint32_t published = 0;
        std::optional<CausalStep> step;
        VirtualCall call;  // the current op, where it is one
        int64_t released = INT64_MIN, begin = 0, end = 0;
        int64_t left = 0, slice = 0, wanted = 0;  // of the processor
        std::vector<TaskId> waiters;
        uint32_t turn = 0;                   // of its events, those of earlier turns are void
        CausalRole role = CausalRole::call;  // of the current op
        VirtualPath path;
        Lock* lock = nullptr;  // the one that it holds during the op
        // Asynchronous requests:
        int64_t waits_since = -1;                  // for some to be done
        bool waited = false;                       // inside the op
        uint32_t own = VirtualRequests::kNone;     // that the op makes and waits for
        int64_t row_begin = INT64_MIN;             // of the last row, in the predicted log
    };
    struct Event {
        int64_t time = 0;
        uint64_t order = 0;
        TaskId task = 0;    // 0: a request
        uint32_t turn = 0;  // of the task; slot of the request
        bool operator<(const Event& other) const {
            return std::pair{time, order} > std::pair{other.time, other.order};  // the earliest on top
        }
    };

    void at(int64_t time, TaskId task) { events_.push({std::max(time, now_), order_++, task, tasks_[task].turn}); }

    /// `spawner`: where it is now; none: the run starts the task.
    void start(TaskId id, const VirtualPath* spawner, std::optional<int64_t> spawned) {
        Task& task = tasks_[id];
        if (task.phase != Phase::not_started) {
            return;
        }
        if (spawner != nullptr) {
            task.path = VirtualPath(*spawner, now_);
        }
        task.phase = Phase::next;
        task.step.emplace(plan_, id, speeds_, 0, spawned, TimingNoise{0, 0});
        at(now_, id);
    }

    void start_process(ProcessId process, const VirtualPath* spawner, std::optional<int64_t> spawned) {
        const ProcessPlan& plan = plan_.processes[process];
        if (plan.first_task != 0) {
            start(plan.first_task, spawner, spawned);
        }
        for (const TaskId task : plan.tasks_at_start) {
            start(task, spawner, {});
        }
    }

    /// Goes on with a task until it has to wait for time or for another.
    void advance(TaskId id) {
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

    /// Time passes for the task: false, unless nothing else happens before.
    bool until(int64_t time, TaskId id) {
        if (time <= now_ || (events_.empty() || events_.top().time > time)) {
            now_ = std::max(now_, time);
            return true;
        }
        at(time, id);
        return false;
    }

    /// Waits for the edges of the current op. False if the task has to wait.
    bool edges(TaskId id, Task& task, uint64_t op) {
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

    void publish(Task& source, uint32_t count) {
        source.published = count;
        std::vector<TaskId> waiters;
        waiters.swap(source.waiters);
        for (const TaskId waiter : waiters) {
            at(now_, waiter);
        }
    }

    bool next(TaskId id, Task& task) {
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
        return until(task.step->due(b, i, task.released), id);
    }

    bool issue(TaskId id, Task& task) {
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
            publish_if_source(task, plan_.tasks[id], b.first + i);
        }
        if (kind == OpKind::spawn) {
            spawn(id, b.peer[i], b.first + i);
        }
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
                    task.end = now_ + known_time(b, i);
                    break;
                }
                make_room();
                task.end = calls_.start(task.call, b, i, now_);
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

    /// Of a call, where that does not depend on what others do.
    int64_t known_time(const OpBlock& b, size_t i) const {
        constexpr int64_t kMost = int64_t{1} << 50;
        return in_memory_ != nullptr ? in_memory_->of(b, i) : std::clamp<int64_t>(b.duration[i], 0, kMost);
    }

    /// The wait of an event loop, which its timer ends or what another task sends. False if the task has to wait.
    bool timer(TaskId id, Task& task) {
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

    /// A call goes on. False if the task has to wait.
    bool calling(TaskId id, Task& task) {
        make_room();
        task.end = calls_.go_on(task.call, now_);
        task.phase = task.call.done ? Phase::finish : Phase::calling;
        return until(task.end, id);
    }

    /// When the stream of an op of an accelerator runs empty.
    int64_t& stream(const OpBlock& b, size_t i) { return devices_[plan_.streams.at({b.arg[i], b.flags[i]})]; }

    void spawn(TaskId spawner, TaskId peer, uint64_t op) {
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

    // --- memory

    void make_room() {
        if (room_ && room_->changed(passed_, now_)) {
            calls_.limit_cache(room_->bytes(), now_);
        }
    }

    // --- asynchronous requests

    /// Waits for the requests that the current op needs, before it or inside it. False if the task has to wait.
    bool needs(TaskId id, Task& task, uint64_t op, bool inside) {
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

    bool await(TaskId id, Task& task, const RequestNeed& need) {
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

    /// Where others rely on the result that the current op reports: it is there.
    bool told(TaskId id, Task& task) {
        const OpBlock& b = task.block;
        const std::vector<uint64_t>& sources = plan_.tasks[id].sources;
        const bool relied = info(static_cast<OpKind>(b.kind[task.i])).is(Trait::completes) &&
                            task.source < sources.size() && sources[task.source] == b.first + task.i;
        const auto slot = relied ? requests_.in_flight(b.request[task.i]) : std::nullopt;
        return !slot ||
               await(id, task, {b.first + task.i, 0, requests_.at(*slot).ring, b.request[task.i], true});
    }

    /// The current op makes a request or is about some. False where it is a call as others.
    bool asynchronous(Task& task) {
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
            task.end = task.waited        ? std::max(now_, task.begin + call_ns)
                       : b.arg[i] > 0 || !model ? now_ + known_time(b, i)
                                                : now_ + call_ns;
            return true;
        }
        const VirtualRequests::Made made = makes_request(b, i) ? requests_.make(b, i) : VirtualRequests::Made();
        if (made.slot == VirtualRequests::kNone) {
            return false;
        }
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

    /// A request begins. Until when that takes the time of who submits it.
    int64_t begin(uint32_t slot, int64_t known_ns) {
        VirtualRequests::Request& request = requests_.at(slot);
        if (options_.calls == CallTimes::model) {
            make_room();
            const int64_t end = calls_.start_request(request.call, request.handle, request.asked, now_);
            at_request(end, slot);
            return VirtualCalls::was_cached(request.call) ? end : now_;
        }
        request.call.done = true;
        const int64_t takes = request_times_ != nullptr ? request_times_->of(request.number) : known_ns;
        at_request(now_ + takes, slot);
        return now_ + (request_times_ != nullptr ? 0 : known_ns);
    }

    void at_request(int64_t time, uint32_t slot) { events_.push({std::max(time, now_), order_++, 0, slot}); }

    void go_on(uint32_t slot) {
        VirtualCall& call = requests_.at(slot).call;
        if (call.done) {
            complete(slot);
            return;
        }
        make_room();
        at_request(calls_.go_on(call, now_), slot);
    }

    void complete(uint32_t slot) {
        const TaskId task = requests_.at(slot).task;
        const uint32_t number = requests_.at(slot).number;
        const VirtualRequests::Released released = requests_.complete(slot, now_);
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

    /// One that is not performed counts as done.
    void skip_request(const OpBlock& b, size_t i) {
        if (info(static_cast<OpKind>(b.kind[i])).is(Trait::submits) && makes_request(b, i)) {
            if (const VirtualRequests::Made made = requests_.make(b, i); made.begins) {
                complete(made.slot);
            } else if (made.slot != VirtualRequests::kNone) {
                requests_.at(made.slot).asked.does = AsyncRequest::Does::nothing;
            }
        }
    }

    // --- locks

    /// False if the task has to wait. `number`: of Plan::lock_of().
    bool take_lock(TaskId id, Task& task, uint32_t number) {
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
    void give_lock(Task& task) {
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

    // --- processors

    /// Takes one. False if the task has to wait.
    bool compute(TaskId id, Task& task) {
        if (running_ >= out_.cpus) {
            ready_.push_back(id);
            return false;
        }
        ++running_;
        task.slice = std::min(task.left, kSlice);
        return until(now_ + task.slice, id);
    }

    bool computed(TaskId id, Task& task) {
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

    // --- the end of an op

    void finish(TaskId id, Task& task) {
        const OpBlock& b = task.block;
        const size_t i = task.i;
        task.step->ended(task.end);
        ++out_.ops;
        task.path.spend(
            path_part(static_cast<OpKind>(b.kind[i]), b.arg[i], b.result[i], task.role, task.end - task.begin),
            task.end, plan_.helpers.is_cut(id));
        helper_time_.see(id, b, i, task.begin, task.end);
        serial_writers_.see(id, b, i, task.begin, task.end);
        slept_through_.see(id, b, i, task.end);
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
        if (task.lock != nullptr) {
            give_lock(task);
        }
        task.released = INT64_MIN;
        task.phase = Phase::next;
        passed(task, plan_.tasks[id], b.first + i);
    }

    void passed(Task& task, const TaskPlan& plan, uint64_t op) {
        ++task.i;
        ++passed_;
        publish_if_source(task, plan, op);
    }

    void publish_if_source(Task& task, const TaskPlan& plan, uint64_t op) {
        if (task.source < plan.sources.size() && plan.sources[task.source] == op) {
            publish(task, static_cast<uint32_t>(++task.source));
        }
    }

    /// No event is left: drops the weakest wait. False if no task waits.
    bool let_go() {
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

    /// The same of a wait for requests: a log may ask for more than its requests can give.
    bool let_request_go() {
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

    void write(TaskId id, Task& task) {
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

    const PredictOptions& options_;
    const Plan& plan_;
    HelperTime helper_time_;
    SerialWriters serial_writers_;
    SleptThrough slept_through_;
    VirtualCalls calls_;
    VirtualRequests requests_;
    Prediction out_;
    std::vector<Task> tasks_;
    std::vector<Lock> locks_;                   // by process
    std::array<Lock, kMostGuards + 1> guards_;  // held during calls on files
    std::vector<int64_t> devices_;              // when each stream runs empty
    std::priority_queue<Event> events_;
    std::deque<TaskId> ready_;  // for a processor
    std::optional<PredictedLog> output_;
    const MemoryTimes* in_memory_ = nullptr;
    const RequestTimes* request_times_ = nullptr;
    int64_t waited_ns_ = 0;  // of tasks, for requests
    std::optional<RoomOverTime> room_;  // of the page cache; none: no limit
    PredictedEpochs epochs_;
    int running_ = 0;
    uint64_t order_ = 0, passed_ = 0;  // ops that are over or left out
    int64_t now_ = 0, last_end_ = 0, recorded_end_ = INT64_MIN;
    Speeds speeds_;
    bool observes_ = false;
};

}  // namespace

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

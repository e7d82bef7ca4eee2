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
            if (event.turn == tasks_[event.task].turn) {
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
        size_t next_block = 0, i = 0, wait = 0, source = 0;
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
    };
    struct Event {
        int64_t time = 0;
        uint64_t order = 0;
        TaskId task = 0;
        uint32_t turn = 0;  // of the task
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
        task.phase = Phase::issue;
        task.begin = -1;
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

    void write(TaskId id, const Task& task) {
        const OpBlock& b = task.block;
        Op op = b.row(task.i);
        op.begin = task.begin + plan_.first_begin;
        op.duration = task.end - task.begin;
        op.edges = {};
        if (op.kind == OpKind::gpu_submit) {
            op.size = speeds_.busy(op.size);
        }
        if (observes_) {
            options_.observe(id, op);
        }
        if (output_) {
            output_->append(id, op);
        }
    }

    const PredictOptions& options_;
    const Plan& plan_;
    HelperTime helper_time_;
    SerialWriters serial_writers_;
    SleptThrough slept_through_;
    VirtualCalls calls_;
    Prediction out_;
    std::vector<Task> tasks_;
    std::vector<Lock> locks_;                   // by process
    std::array<Lock, kMostGuards + 1> guards_;  // held during calls on files
    std::vector<int64_t> devices_;              // when each stream runs empty
    std::priority_queue<Event> events_;
    std::deque<TaskId> ready_;  // for a processor
    std::optional<PredictedLog> output_;
    const MemoryTimes* in_memory_ = nullptr;
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

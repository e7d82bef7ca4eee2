// SPDX-License-Identifier: MIT
// The plan of a log in virtual time: tasks that go on in the order of their times, and requests that are done.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "replay/plan/causal_step.h"
#include "replay/plan/open_loop.h"
#include "replay/plan/plan.h"
#include "replay/predict/op_watcher.h"
#include "replay/predict/planned_job.h"
#include "replay/predict/predict.h"
#include "replay/predict/predicted_epochs.h"
#include "replay/predict/predicted_log.h"
#include "replay/predict/prediction_sum.h"
#include "replay/predict/service_times.h"
#include "replay/predict/virtual_calls.h"
#include "replay/predict/virtual_path.h"
#include "replay/predict/virtual_requests.h"

namespace reprise {

/// Runs once.
class Simulation {
public:
    Simulation(const PlannedJob& job, const PredictOptions& options)
        : options_(options),
          plan_(job.plan),
          helper_time_(plan_, 0),
          serial_writers_(plan_),
          slept_through_(plan_),
          open_loops_(plan_.log->tables()),
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
        if (options.calls == CallTimes::drawn) {
            keys_.emplace(plan_.log->tables());
        }
        if (!out_.output.empty()) {
            output_.emplace(*plan_.log, options);
        }
    }

    Prediction run();

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
        int64_t think = 0, performed = 0;  // for the watcher: since `end` of the op before, and when it went
        uint64_t fetches = 0, fetched = 0;
        int64_t left = 0, slice = 0, wanted = 0;  // of the processor
        std::vector<TaskId> waiters;
        uint32_t turn = 0;                   // of its events, those of earlier turns are void
        CausalRole role = CausalRole::call;  // of the current op
        VirtualPath path;
        Lock* lock = nullptr;  // the one that it holds during the op
        // Asynchronous requests:
        int64_t waits_since = -1;               // for some to be done
        bool waited = false;                    // inside the op
        uint32_t own = VirtualRequests::kNone;  // that the op makes and waits for
        std::unordered_map<uint64_t, int64_t>
            called;                     // calls on names in flight: when they were submitted, by their op
        int64_t row_begin = INT64_MIN;  // of the last row, in the predicted log
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

    /// When a call ends that takes until `end` from now on; its ring may have had it before.
    int64_t called_before(Task& task, int64_t end) const {
        const auto found = task.called.empty() ? task.called.end() : task.called.find(task.block.first + task.i);
        if (found == task.called.end()) {
            return end;
        }
        const int64_t before = now_ - found->second;
        task.called.erase(found);
        return std::max(now_, end - before);
    }

    void at(int64_t time, TaskId task) { events_.push({std::max(time, now_), order_++, task, tasks_[task].turn}); }

    /// `spawner`: where it is now; none: the run starts the task.
    void start(TaskId id, const VirtualPath* spawner, std::optional<int64_t> spawned);
    void start_process(ProcessId process, const VirtualPath* spawner, std::optional<int64_t> spawned);
    /// Goes on with a task until it has to wait for time or for another.
    void advance(TaskId id);
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
    bool edges(TaskId id, Task& task, uint64_t op);
    void publish(Task& source, uint32_t count);
    bool next(TaskId id, Task& task);
    bool issue(TaskId id, Task& task);
    /// Of a call, where that does not depend on what others do.
    int64_t known_time(const OpBlock& b, size_t i) const;
    /// Of a call as the current one of the task, where there is no model.
    int64_t service_time(TaskId id, const OpBlock& b, size_t i);
    int64_t request_time(uint32_t slot, int64_t known_ns);
    /// The wait of an event loop, which its timer ends or what another task sends. False if the task has to wait.
    bool timer(TaskId id, Task& task);
    /// A call goes on. False if the task has to wait.
    bool calling(TaskId id, Task& task);
    /// When the stream of an op of an accelerator runs empty.
    int64_t& stream(const OpBlock& b, size_t i) { return devices_[plan_.streams.at({b.arg[i], b.flags[i]})]; }

    void spawn(TaskId spawner, TaskId peer, uint64_t op);
    bool perform(TaskId id, Task& task);
    /// A call begins or goes on; what it asks the storage for is its own.
    template <class Go>
    void fetching(Task& task, Go go) {
        const VirtualStorage& storage = calls_.storage();
        const uint64_t reads = storage.reads, bytes = storage.bytes_read;
        go();
        task.fetches += storage.reads - reads;
        task.fetched += storage.bytes_read - bytes;
    }
    void watch(TaskId id, Task& task);

    // --- memory

    void make_room() {
        if (room_ && room_->changed(passed_, now_)) {
            calls_.limit_cache(room_->bytes(), now_);
        }
    }

    // --- asynchronous requests

    /// Waits for the requests that the current op needs, before it or inside it. False if the task has to wait.
    bool needs(TaskId id, Task& task, uint64_t op, bool inside);
    bool await(TaskId id, Task& task, const RequestNeed& need);
    /// Where others rely on the result that the current op reports: it is there.
    bool told(TaskId id, Task& task);
    /// The current op makes a request or is about some. False where it is a call as others.
    bool asynchronous(Task& task);
    /// A request begins. Until when that takes the time of who submits it.
    int64_t begin(uint32_t slot, int64_t known_ns);
    void at_request(int64_t time, uint32_t slot) { events_.push({std::max(time, now_), order_++, 0, slot}); }
    void go_on(uint32_t slot);
    void complete(uint32_t slot);
    /// One that is not performed counts as done.
    void skip_request(const OpBlock& b, size_t i);

    // --- locks

    /// False if the task has to wait. `number`: of Plan::lock_of().
    bool take_lock(TaskId id, Task& task, uint32_t number);
    void give_lock(Task& task);

    // --- processors

    /// Takes one. False if the task has to wait.
    bool compute(TaskId id, Task& task);
    bool computed(TaskId id, Task& task);

    // --- the end of an op

    void finish(TaskId id, Task& task);
    void passed(Task& task, const TaskPlan& plan, uint64_t op) {
        ++task.i;
        ++passed_;
        publish_if_source(task, plan, op, false);
    }

    void publish_if_source(Task& task, const TaskPlan& plan, uint64_t op, bool begins) {
        if (task.source < plan.sources.size() && plan.sources[task.source] == op) {
            publish(task, static_cast<uint32_t>(++task.source));
            if (options_.watcher != nullptr) {
                options_.watcher->published(static_cast<TaskId>(&plan - plan_.tasks.data()), task.published, begins);
            }
        }
    }

    /// No event is left: drops the weakest wait. False if no task waits.
    bool let_go();
    /// The same of a wait for requests: a log may ask for more than its requests can give.
    bool let_request_go();
    void write(TaskId id, Task& task);

    const PredictOptions& options_;
    const Plan& plan_;
    HelperTime helper_time_;
    SerialWriters serial_writers_;
    SleptThrough slept_through_;
    OpenLoops open_loops_;
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
    std::optional<ServiceKeys> keys_;  // of calls whose times are drawn
    std::array<uint64_t, kOpKindLimit> not_in_service_{};
    int64_t waited_ns_ = 0;             // of tasks, for requests
    std::optional<RoomOverTime> room_;  // of the page cache; none: no limit
    PredictedEpochs epochs_;
    int running_ = 0;
    uint64_t order_ = 0, passed_ = 0;  // ops that are over or left out
    int64_t now_ = 0, last_end_ = 0, recorded_end_ = INT64_MIN;
    Speeds speeds_;
    bool observes_ = false;
};

}  // namespace reprise

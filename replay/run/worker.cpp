// SPDX-License-Identifier: MIT
#include "replay/run/worker.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "calibrate/mounted.h"
#include "formats/support/sanitized.h"
#include "replay/engine/all_engines.h"
#include "replay/engine/changed_access.h"
#include "replay/engine/verifying.h"
#include "replay/run/feed.h"
#include "replay/run/light_process.h"
#include "replay/run/machine.h"
#include "replay/run/own_memory.h"
#include "replay/run/task_loop.h"

#if defined(REPRISE_TSAN)
// A recorded process that forks while it has threads does so here too, and its child starts threads.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }
#endif

namespace reprise {
namespace {

/// Bytes that this process and its reaped child processes made the device move, from /proc/self/io.
void note_device_bytes(ProcessSlot& slot) {
    if (const std::optional<DeviceCounter> own = read_own_counter()) {
        slot.device_read_bytes.store(static_cast<int64_t>(own->read_bytes));
        slot.device_write_bytes.store(static_cast<int64_t>(own->write_bytes));
    }
}

/// By process: whether one thread is all it has. The second block brings another one, the decoder's. Threads of a
/// process that shares its parent's memory would die in the middle of things with it, and the parent wait for them.
using SingleThreaded = std::vector<bool>;

std::shared_ptr<const SingleThreaded> find_single_threaded(const Plan& plan) {
    std::vector<size_t> threads(plan.processes.size());
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        threads[plan.tasks[task].process] += std::max<size_t>(1, plan.tasks[task].blocks.size());
    }
    const auto found = std::make_shared<SingleThreaded>(threads.size());
    std::transform(threads.begin(), threads.end(), found->begin(), [](size_t count) { return count == 1; });
    return found;
}

class Worker {
public:
    /// `forks`: how many lie between this process and the supervisor's child.
    Worker(const WorkerSetup& setup, ProcessId process, WorkerState* state, int forks,
           std::shared_ptr<const SingleThreaded> single_threaded)
        : setup_(setup),
          plan_(*setup.plan),
          run_(*setup.run),
          process_(process),
          state_(state),
          forks_(forks),
          single_threaded_(std::move(single_threaded)),
          decoder_(std::make_unique<BlockDecoder>()) {}

    /// A process that the supervisor made: all its first tasks wait for the start.
    void run_root() {
        if (state_ != nullptr) {
            state_->open_inherited(process_);
        }
        const std::vector<TaskId>& tasks = plan_.processes[process_].tasks_at_start;
        for (size_t i = 1; i < tasks.size(); ++i) {
            start_thread(tasks[i], true);
        }
        if (!tasks.empty()) {
            run_task(tasks[0], true);
        }
        finish();
    }

    /// A process that a spawn op made: the calling thread is its first task.
    [[noreturn]] void run_child() {
        if (state_ != nullptr) {
            state_->open_inherited(process_);
        }
        for (const TaskId task : plan_.processes[process_].tasks_at_start) {
            start_thread(task, false);
        }
        run_task(plan_.processes[process_].first_task, false);
        finish();
    }

    void fail(const std::string& message) { run_.control().fail(message.c_str()); }

private:
    /// Starts what a task's spawn ops name, and waits for the child processes when the task is over.
    class TaskSpawner : public Spawner {
    public:
        TaskSpawner(Worker& worker, TaskId self) : worker_(worker), self_(self) {}

        void spawn(TaskId peer) override {
            if (worker_.plan_.tasks[peer].spawner != self_) {
                return;
            }
            const ProcessId process = worker_.plan_.tasks[peer].process;
            if (process == worker_.process_) {
                worker_.start_thread(peer, false);
            } else if (const pid_t pid = worker_.start_child(process); pid > 0) {
                children_.emplace_back(pid, process);
            }
        }

        /// The parent-death signal of a child is tied to this thread, so it stays until they are gone.
        void wait_for_children() {
            for (const auto& [pid, process] : children_) {
                siginfo_t ended{};
                while (waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
                }
                worker_.run_.process(process).reaped.store(true);
                int status = 0;
                while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
                }
                worker_.run_.process(process).wait_status.store(status);
            }
        }

    private:
        Worker& worker_;
        TaskId self_;
        std::vector<std::pair<pid_t, ProcessId>> children_;
    };

    void start_thread(TaskId task, bool at_start_line) {
        try {
            const std::lock_guard guard(threads_lock_);
            threads_.emplace_back([this, task, at_start_line] { run_task(task, at_start_line); });
        } catch (const std::exception& error) {
            fail("cannot start thread " + std::to_string(threads_.size() + 1) + " of a process: " + error.what() +
                 "; " + raise_task_limits());
        }
    }

    pid_t start_child(ProcessId process) {
        std::unique_lock<std::mutex> opening, held;
        if (state_ != nullptr) {
            opening = std::unique_lock(state_->opening);
            held = std::unique_lock(state_->lock);
        }
        run_.process(process).state.store(ProcessState::running);  // before it can end
        const pid_t parent = getpid();
        pid_t pid = light_child(process, parent);
        if (pid < 0) {
            pid = fork();
            if (pid == 0) {
                if (held.owns_lock()) {
                    held.unlock();
                    opening.unlock();
                }
                run_forked(process, parent);
            }
        }
        if (pid < 0) {
            fail(std::string("cannot fork: ") + std::strerror(errno) + "; " + raise_task_limits());
        } else {
            run_.process(process).pid.store(pid);
        }
        return pid;
    }

    /// Ends with its parent: first thing in a child process.
    void begin_child(ProcessId process, pid_t parent) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        run_.process(process).pid.store(getpid());
    }

    [[noreturn]] void run_forked(ProcessId process, pid_t parent) {
        begin_child(process, parent);
        if (state_ != nullptr) {
            state_->forked();
        }
        // Never destroyed, nor is the parent's: its threads do not exist here.
        if ((forks_ + 1) % kOwnMemoryEvery == 0) {
            own_memory();
        }
        auto* const child = new Worker(setup_, process, state_, forks_ + 1, single_threaded_);
        child->run_child();
    }

    /// What a child process has in the memory that it shares.
    struct LightChild {
        std::unique_ptr<WorkerState> state;
        std::unique_ptr<Worker> worker;
    };

    /// A child process that shares this one's memory; negative where it has to be forked. The state's locks are held.
    pid_t light_child(ProcessId process, pid_t parent) {
        if (!(*single_threaded_)[process] || plan_.verify != nullptr) {
            return -1;
        }
        std::unique_ptr<WorkerState> state;
        if (state_ != nullptr && (state = state_->of_child()) == nullptr) {
            return -1;
        }
        const auto child = std::make_shared<LightChild>();
        child->worker = std::make_unique<Worker>(setup_, process, state.get(), forks_, single_threaded_);
        child->state = std::move(state);
        return light_->start([this, process, parent, child] {
            begin_child(process, parent);
            child->worker->run_child();
        });
    }

    [[noreturn]] void finish() {
        for (;;) {
            std::thread next;
            {
                const std::lock_guard guard(threads_lock_);
                if (threads_.empty()) {
                    break;
                }
                next = std::move(threads_.back());
                threads_.pop_back();
            }
            next.join();
        }
        light_.reset();
        if (state_ != nullptr) {
            state_->wait_until_taken();
        }
        ProcessSlot& slot = run_.process(process_);
        note_device_bytes(slot);
        slot.state.store(ProcessState::ended);
        _exit(0);
    }

    void wait_at_start_line() {
        RunControl& control = run_.control();
        control.ready.fetch_add(1);
        while (control.go.load() == 0 && !control.stopped()) {
            futex_wait(control.go, 0, 100'000'000);
        }
        if (control.in_step && !control.stopped()) {
            ask_for_short_turns();
            Delay delay(&control.tokens, &control.stop, control.tick_ns);
            delay.until(control.start_ns);
            const int64_t now = monotonic_ns();
            int64_t first = control.left_line_ns.load();
            while (now < first && !control.left_line_ns.compare_exchange_weak(first, now)) {
            }
        }
    }

    void run_task(TaskId id, bool at_start_line) {
        TaskSlot& slot = run_.task(id);
        TaskSpawner spawner(*this, id);
        try {
            const TaskPlan& task = plan_.tasks[id];
            BlockFeed feed(*plan_.log, task.blocks, run_.spool(task.spool_first), decoder_.get());
            const auto with = [&]<class E>(std::type_identity<E>) {
                E engine({plan_, task, state_, setup_.speeds.computing.policy != DelayPolicy::sleep});
                run_with(engine, feed, id, spawner, at_start_line);
            };
            if (plan_.verify != nullptr && setup_.engine == EngineKind::posix) {
                with(std::type_identity<VerifyingEngine>{});
            } else if (plan_.access != nullptr && setup_.engine == EngineKind::posix) {
                with(std::type_identity<ChangedAccess>{});
            } else {
                with_engine_type(setup_.engine, with);
            }
        } catch (const std::bad_alloc&) {
            // Its stack found room, what it needs did not. The message needs little.
            const char* const what = slot.state.load() == TaskState::waiting_for_start ? "cannot start thread of task "
                                                                                       : "no memory left for task ";
            fail(what + std::to_string(id) + ": out of memory; " + raise_task_limits());
        } catch (const std::exception& error) {
            fail(error.what());
        }
        slot.state.store(TaskState::ended, std::memory_order_relaxed);
        publish_end(plan_, run_, id);
        spawner.wait_for_children();
    }

    template <class Engine>
    void run_with(Engine& engine, BlockFeed& feed, TaskId id, TaskSpawner& spawner, bool at_start_line) {
        feed.prepare();
        if (at_start_line) {
            wait_at_start_line();
        } else if (run_.control().in_step) {
            ask_for_short_turns();  // a message between ranks takes three wake-ups here, of which the job had one
        }
        run_.task(id).state.store(TaskState::running, std::memory_order_relaxed);
        if (setup_.pace == Pace::timed) {
            TimedPace<> pace(plan_, run_, setup_.speeds);
            run_blocks(engine, pace, feed, id, spawner);
        } else if (setup_.pace == Pace::causal) {
            CausalPace<> pace(plan_, run_, id, setup_.speeds);
            run_blocks(engine, pace, feed, id, spawner);
        } else {
            AfapPace pace;
            run_blocks(engine, pace, feed, id, spawner);
        }
    }

    template <class Engine, class PaceType>
    void run_blocks(Engine& engine, PaceType& pace, BlockFeed& feed, TaskId id, TaskSpawner& spawner) {
        // Spinning for an edge pays only where its source can run meanwhile.
        const int spin = usable_cpus() > 1 ? 200 : 0;
        sys::call_ticks.wanted = !PaceType::kChained;
        TaskLoop<Engine, PaceType> loop(plan_, run_, id, engine, pace, &spawner, spin);
        while (const OpBlock* const block = run_.control().stopped() ? nullptr : feed.next()) {
            if (!loop.block(*block)) {
                return;
            }
        }
        loop.end();
    }

    const WorkerSetup setup_;
    const Plan& plan_;
    SharedRun& run_;
    const ProcessId process_;
    WorkerState* state_;
    const int forks_;
    const std::shared_ptr<const SingleThreaded> single_threaded_;
    std::unique_ptr<BlockDecoder> decoder_;
    std::mutex threads_lock_;
    std::vector<std::thread> threads_;
    std::optional<LightProcesses> light_{std::in_place};
};

}  // namespace

void run_worker(const WorkerSetup& setup, ProcessId process) {
    ProcessSlot& slot = setup.run->process(process);
    slot.pid.store(getpid());
    slot.state.store(ProcessState::running);
    Worker* worker = nullptr;
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    note_program_data();
    try {
        WorkerState* state = nullptr;
        if (uses_root(setup.engine)) {
            install_touch_guard();
            state = new WorkerState(*setup.plan, setup.root, setup.read_only, *setup.pattern, *setup.run);
            for (const auto& [handle, fd] : setup.instances) {
                state->adopt(handle, fd);
            }
        }
        worker = new Worker(setup, process, state, 0, find_single_threaded(*setup.plan));
        worker->run_root();
    } catch (const std::exception& error) {
        setup.run->control().fail(error.what());
    }
    _exit(1);
}

uint32_t tasks_at_start(const Plan& plan) {
    size_t count = 0;
    for (const ProcessPlan& process : plan.processes) {
        const auto id = static_cast<ProcessId>(&process - plan.processes.data());
        count += process.spawner == 0 && plan.performs(id) ? process.tasks_at_start.size() : 0;
    }
    return static_cast<uint32_t>(count);
}

double measure_harness_ns(const Plan& plan, uint64_t ops, int64_t most_ns) {
    TaskId longest = 0;
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        if (longest == 0 || plan.tasks[task].ops > plan.tasks[longest].ops) {
            longest = task;
        }
    }
    if (longest == 0 || plan.tasks[longest].ops == 0) {
        return 0.0;
    }
    Plan one;
    one.log = plan.log;
    one.tasks.resize(2);
    one.tasks[1].ops = std::min<uint64_t>(ops + kBlockOps, plan.tasks[longest].ops);
    SharedRun run(2, 1, 1, 0, one.tasks[1].ops, SIZE_MAX, {});
    NullEngine engine({plan, one.tasks[1]});
    AfapPace pace;
    TaskLoop<NullEngine, AfapPace> loop(one, run, 1, engine, pace, nullptr, 0);
    OpBlock block;
    uint64_t done = 0;
    int64_t spent = 0;
    const TickPoint start = take_tick_point();
    for (const BlockInfo& where : plan.tasks[longest].blocks) {
        plan.log->decode(where, block);
        SpoolRow* const rows = run.spool(where.first);
        std::fill(rows, rows + where.ops, SpoolRow{});  // its pages are there, as in a run
        const int64_t begin = monotonic_ns();
        loop.block(block);
        spent += monotonic_ns() - begin;
        done += block.count();
        if (done >= ops || monotonic_ns() - start.ns > most_ns) {
            break;
        }
    }
    return done == 0 ? 0.0 : static_cast<double>(spent) / static_cast<double>(done);
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/run/supervisor.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "replay/limit/limited_run.h"
#include "replay/run/epoch_proof.h"
#include "replay/run/live.h"
#include "replay/run/machine.h"
#include "replay/run/own_memory.h"
#include "replay/run/peers.h"
#include "replay/run/setup_rest.h"

namespace reprise {
namespace {

namespace asio = boost::asio;

constexpr auto kTick = std::chrono::milliseconds(50);
// After an edge was given up: the next cycle is usually close.
constexpr auto kTickAfterCircle = std::chrono::milliseconds(1);
// After a stop, tasks leave at their next op. Those that have not left by then are stuck in a call.
constexpr int64_t kKillAfter = 20'000'000'000;
// The same where other ranks have to end, too.
constexpr int64_t kKillAfterOfRanks = 1'000'000'000;
// The same where a signal asks for the end: somebody waits for it.
constexpr int64_t kKillAfterSignal = 400'000'000;

std::string died(const std::string& who, int status) {
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        const bool own = signal == SIGSEGV || signal == SIGILL || signal == SIGFPE || signal == SIGABRT;
        return who + " died of signal " + std::to_string(signal) + " (" + strsignal(signal) + ")" +
               (own ? ", a fault in reprise and not in the job" : "");
    }
    return who + " ended with code " + std::to_string(WEXITSTATUS(status));
}

/// Each child process of a worker has a descriptor here.
void raise_descriptor_limit() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &files);
    }
}

/// Signals wait while the workers are forked, so that none is lost and none is handled twice.
class HeldSignals {
public:
    HeldSignals() {
        sigset_t set;
        sigemptyset(&set);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
            sigaddset(&set, signal);
        }
        pthread_sigmask(SIG_BLOCK, &set, &before_);
    }
    ~HeldSignals() { release(); }
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;
    void release() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

/// Orphans of a dead worker come to this process, not to init, for as long as this lives.
class Subreaper {
public:
    Subreaper() {
        prctl(PR_GET_CHILD_SUBREAPER, &before_);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    }
    ~Subreaper() { prctl(PR_SET_CHILD_SUBREAPER, before_); }
    Subreaper(const Subreaper&) = delete;
    Subreaper& operator=(const Subreaper&) = delete;

private:
    int before_ = 0;
};

/// Instances that several of the workers have, open while those are forked.
class SharedInstances {
public:
    explicit SharedInstances(WorkerSetup& setup) : setup_(setup) {
        if (!uses_root(setup.engine)) {
            return;
        }
        for (const auto& [handle, use] : setup.plan->inherited) {
            const FileId file = setup.plan->log->tables().handles[handle].file;
            if (!use.shared || setup.plan->passed_index.contains(file)) {
                continue;
            }
            const int fd = open_instance(*setup.plan, setup.root, setup.read_only, handle);
            if (fd >= 0) {
                setup_.instances.emplace_back(handle, fd);
            }
        }
    }
    ~SharedInstances() {
        for (const auto& [handle, fd] : setup_.instances) {
            close(fd);
        }
        setup_.instances.clear();
    }
    SharedInstances(const SharedInstances&) = delete;
    SharedInstances& operator=(const SharedInstances&) = delete;

private:
    WorkerSetup& setup_;
};

class Supervisor {
public:
    Supervisor(const WorkerSetup& setup, const ReplayOptions& options, SharedTimeline& clock)
        : setup_(setup),
          options_(options),
          plan_(*setup.plan),
          run_(*setup.run),
          control_(setup.run->control()),
          watchdog_(plan_, run_),
          clock_(clock),
          peers_(options.peers) {
        watches_.resize(plan_.processes.size());
    }
    ~Supervisor() { end_all(); }
    Supervisor(const Supervisor&) = delete;
    Supervisor& operator=(const Supervisor&) = delete;

    SupervisedRun run(const TickPoint& first_point) {
        control_.tick_ns = measure_tick_length_ns(first_point, 20'000'000);
        control_.tokens.free.store(std::max(0, usable_cpus() - 1));
        control_.tokens.processors.store(usable_cpus());
        raise_descriptor_limit();
        HeldSignals held;
        Subreaper subreaper;
        fork_roots(held);
        asio::io_context io;
        io_ = &io;
        asio::signal_set signals(io, SIGCHLD);
        if (options_.catch_signals) {
            signals.add(SIGINT);
            signals.add(SIGTERM);
            if (!is_ignored(SIGHUP)) {  // by nohup
                signals.add(SIGHUP);
            }
        }
        asio::steady_timer timer(io);
        wait_signal(signals);
        held.release();
        reap();
        tick(timer);
        if (!over()) {
            io.run();
        }
        for (Watch& watch : watches_) {
            watch.pidfd.reset();
        }
        if (control_.stopped()) {
            end_all();
        }
        roots_.clear();
        clock_.add_now();
        TickTimeline clock;
        clock_.catch_up(clock);
        return {ended(), std::move(clock), start_unix_ns_, watchdog_.broken()};
    }

private:
    struct Watch {
        std::unique_ptr<asio::posix::stream_descriptor> pidfd;
        bool seen = false, gone = false;
        int status = 0;
    };

    void fork_roots(HeldSignals& held) {
        const pid_t self = getpid();
        give_back_memory();
        std::fflush(nullptr);  // what is buffered must not be written once per worker
        const SharedInstances instances(setup_);
        for (ProcessId process = 1; process < plan_.processes.size(); ++process) {
            const ProcessPlan& row = plan_.processes[process];
            if (row.spawner != 0 || row.tasks_at_start.empty() || !plan_.performs(process)) {
                continue;
            }
            const pid_t pid = fork();
            if (pid == 0) {
                setpgid(0, 0);
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() != self) {
                    _exit(1);
                }
                signal(SIGINT, SIG_IGN);  // the terminal's Ctrl-C is the supervisor's to handle
                signal(SIGTERM, SIG_DFL);
                signal(SIGHUP, SIG_IGN);  // likewise
                signal(SIGCHLD, SIG_DFL);
                held.release();
                if (setup_.limited != nullptr && !setup_.limited->group().enter()) {
                    control_.fail("a worker cannot enter the run's control group");
                    _exit(1);
                }
                run_worker(setup_, process);
            }
            if (pid < 0) {
                const std::string why = std::strerror(errno);
                control_.stop.store(1);
                end_all();
                throw machine_error("cannot start " + std::to_string(plan_.processes.size() - 1) + " processes: " + why,
                                    raise_task_limits());
            }
            setpgid(pid, pid);
            run_.process(process).pid.store(pid);
            roots_.push_back(process);
            ++alive_;
        }
    }

    void wait_signal(asio::signal_set& signals) {
        signals.async_wait([&](const boost::system::error_code& error, int number) {
            if (error) {
                return;
            }
            if (number == SIGCHLD) {
                reap();
            } else if (stop_reason_.empty()) {
                signalled_ = true;
                stop(std::string("signal ") + std::to_string(number) + " (" + strsignal(number) + ")" + of_launcher());
            } else {
                kill_all();
            }
            if (!over()) {
                wait_signal(signals);
            } else {
                io_->stop();
            }
        });
    }

    /// Launchers of MPI end all ranks with a signal, and soon kill them, also where one has died.
    std::string of_launcher() {
        if (peers_ == nullptr) {
            return {};
        }
        peers_->hurry();
        return " from the launcher: Ctrl-C, or another rank has died, which it names";
    }

    /// All processes have ended, here and, where there are other ranks, there.
    bool over() {
        if (alive_ == 0 && peers_ != nullptr) {
            peers_->ended();
        }
        return alive_ == 0 && (peers_ == nullptr || peers_->all_ended());
    }

    void stop(const std::string& why) {
        if (stop_reason_.empty()) {
            stop_reason_ = why;
            stopped_at_ = monotonic_ns();
        }
        control_.stop.store(1);
        wake_all();
    }

    void wake_all() {
        futex_wake_all(control_.go);
        for (TaskId task = 1; task < plan_.tasks.size(); ++task) {
            rouse(run_.task(task));
        }
    }

    /// Checks every root process, and orphans that were reparented to this process.
    void reap() {
        for (ProcessId process = 1; process < plan_.processes.size(); ++process) {
            const pid_t pid = run_.process(process).pid.load();
            Watch& watch = watches_[process];
            int status = 0;
            if (pid <= 0 || watch.gone || waitpid(pid, &status, WNOHANG) != pid) {
                continue;
            }
            watch.gone = true;
            watch.status = status;
            if (std::find(roots_.begin(), roots_.end(), process) != roots_.end()) {
                --alive_;
            }
            ended_process(process);
        }
        if (over()) {
            io_->stop();
        }
    }

    void ended_process(ProcessId process) {
        if (run_.process(process).state.load() != ProcessState::ended && !control_.stopped()) {
            dead_ = process;
            stop("");  // the message follows once its status is known
        }
    }

    /// Child processes of workers: their end is seen through a pidfd, their status by the worker that forked them.
    void watch_children() {
        for (ProcessId process = 1; process < plan_.processes.size(); ++process) {
            Watch& watch = watches_[process];
            const pid_t pid = run_.process(process).pid.load();
            if (watch.seen || pid <= 0 || plan_.processes[process].spawner == 0) {
                continue;
            }
            watch.seen = true;
            const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
            if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
                const int error = errno;
                return stop(reason(error) + ": too low for the " + std::to_string(plan_.processes.size() - 1) +
                            " processes of this log; " + remedy(error, ""));
            }
            if (fd < 0) {
                ended_process(process);
                continue;
            }
            watch.pidfd = std::make_unique<asio::posix::stream_descriptor>(*io_, fd);
            watch.pidfd->async_wait(asio::posix::stream_descriptor::wait_read,
                                    [this, process](const boost::system::error_code& error) {
                                        if (!error) {
                                            watches_[process].pidfd.reset();  // a log may have many processes
                                            ended_process(process);
                                            reap();
                                        }
                                    });
        }
    }

    void tick(asio::steady_timer& timer) {
        const int64_t now = monotonic_ns();
        start_when_ready();
        watch_children();
        clock_.add_now();
        uint64_t done = 0;
        int64_t lag = 0;
        for (TaskId task = 1; task < plan_.tasks.size(); ++task) {
            const TaskSlot& slot = run_.task(task);
            if (slot.elsewhere) {
                continue;
            }
            done += slot.done.load(std::memory_order_relaxed);
            const TaskState state = slot.state.load(std::memory_order_relaxed);
            if (state == TaskState::running) {
                lag = std::max(lag, slot.lag_ns.load(std::memory_order_relaxed));
            }
        }
        if (setup_.limited != nullptr && started_) {
            setup_.limited->tick(done, now);
        }
        if (setup_.epochs != nullptr) {
            setup_.epochs->tick(run_, now);
        }
        look_at_peers(done);
        const bool gave_up =
            started_ && !control_.stopped() && watchdog_.look(now, peers_ != nullptr && peers_->others_run());
        if (control_.stopped()) {
            stopping(now);
        }
        if (options_.progress) {
            const uint64_t elsewhere = peers_ != nullptr ? peers_->ops_elsewhere() : 0;
            options_.progress({ReplayProgress::Phase::running, done + elsewhere, plan_.ops,
                               control_.start_ns == 0 ? 0 : now - control_.start_ns, lag,
                               started_ ? watchdog_.stalled(now) : std::string()});
        }
        timer.expires_after(gave_up ? kTickAfterCircle : kTick);
        timer.async_wait([&](const boost::system::error_code& error) {
            if (!error && !over()) {
                tick(timer);
            } else if (!error) {
                io_->stop();
            }
        });
        if (over()) {
            io_->stop();
        }
    }

    void stopping(int64_t now) {
        if (stopped_at_ == 0) {
            stopped_at_ = now;  // a worker stopped the run
        }
        wake_all();
        if (now - stopped_at_ > (signalled_ ? kKillAfterSignal : peers_ != nullptr ? kKillAfterOfRanks : kKillAfter)) {
            kill_all();
        }
    }

    /// Whoever forked a worker that died tells its status soon.
    bool knows_why() {
        constexpr int64_t kSoon = 300'000'000;  // ns
        return dead_ == 0 || watches_[dead_].gone || run_.process(dead_).reaped.load() ||
               monotonic_ns() - stopped_at_ > kSoon;
    }

    void look_at_peers(uint64_t done) {
        if (peers_ == nullptr) {
            return;
        }
        peers_->progress(done, !started_ || watchdog_.any_runs());
        if (const std::string why = peers_->stopped(); !why.empty() && !told_stop_ && dead_ == 0) {
            told_stop_ = true;
            stop(why);
        }
        if (control_.stopped() && !told_stop_ && knows_why()) {
            told_stop_ = true;
            const std::string how = ended();
            peers_->stop(how.substr(how.find(": ") + 2));
        }
    }

    /// Starts the run once every first task is ready.
    void start_when_ready() {
        if (started_) {
            return;
        }
        const uint32_t wanted = tasks_at_start(plan_);
        // Usually it takes a few milliseconds: look often at first.
        for (int turn = 0; turn < 50 && control_.ready.load() < wanted && !control_.stopped(); ++turn) {
            const timespec pause{0, 500'000};
            nanosleep(&pause, nullptr);
        }
        if (control_.ready.load() < wanted || !rest_.over(monotonic_ns()) || (peers_ != nullptr && !peers_agreed())) {
            return;
        }
        started_ = true;
        timespec wall{};
        clock_gettime(CLOCK_REALTIME, &wall);
        const TickPoint now = take_tick_point();
        clock_.add(now);
        // Under a clock the first ops are due when every task has been woken.
        const int64_t head_start = options_.pace != Pace::afap ? 1'000'000 + int64_t{20'000} * wanted : 0;
        control_.start_ns = peers_ != nullptr ? *peers_->start_ns() : now.ns + head_start;
        control_.in_step = peers_ != nullptr;
        start_unix_ns_ = int64_t{wall.tv_sec} * 1'000'000'000 + wall.tv_nsec + control_.start_ns - now.ns;
        control_.go.store(1);
        futex_wake_all(control_.go);
        if (setup_.live != nullptr) {
            setup_.live->start();
        }
    }

    /// Tells the others that this rank is ready. Whether they have agreed on when to start.
    bool peers_agreed() {
        peers_->ready();
        for (int turn = 0; turn < 50 && !peers_->start_ns() && !control_.stopped(); ++turn) {
            const timespec pause{0, 500'000};
            nanosleep(&pause, nullptr);
        }
        return peers_->start_ns().has_value();
    }

    void kill_all() {
        killed_ = true;
        for (const ProcessId root : roots_) {
            kill(-run_.process(root).pid.load(), SIGKILL);
        }
    }

    /// Kills and reaps whatever is left.
    void end_all() {
        for (const ProcessId root : roots_) {
            const pid_t group = run_.process(root).pid.load();
            if (group <= 0 || kill(-group, SIGKILL) != 0) {
                continue;  // already reaped
            }
            int status = 0;
            while (waitpid(-group, &status, 0) > 0 || errno == EINTR) {
            }
        }
        roots_.clear();
    }

    std::string ended() const {
        if (dead_ != 0) {
            const Watch& watch = watches_[dead_];
            const ProcessSlot& slot = run_.process(dead_);
            return "interrupted: " +
                   died("worker " + std::to_string(dead_) + " (pid " + std::to_string(slot.pid.load()) + ")",
                        watch.gone ? watch.status : slot.wait_status.load());
        }
        if (control_.failure_state.load(std::memory_order_acquire) == 2) {
            return std::string("interrupted: ") + control_.failure;
        }
        if (!stop_reason_.empty()) {
            return "interrupted: " + stop_reason_ + (killed_ ? ", killed" : "");
        }
        if (peers_ != nullptr && control_.stopped() && !peers_->stopped().empty()) {
            return "interrupted: " + peers_->stopped();
        }
        return "complete";
    }

    WorkerSetup setup_;
    const ReplayOptions& options_;
    const Plan& plan_;
    SharedRun& run_;
    RunControl& control_;
    Watchdog watchdog_;
    SharedTimeline& clock_;
    Peers* const peers_;  // none: this process performs all
    asio::io_context* io_ = nullptr;
    std::vector<ProcessId> roots_;
    std::vector<Watch> watches_;  // by process
    size_t alive_ = 0;            // roots
    SetupRest rest_{uses_root(setup_.engine)};
    bool started_ = false, killed_ = false, signalled_ = false;
    bool told_stop_ = false;  // the other ranks know that the run ends, or told it
    std::string stop_reason_;
    int64_t stopped_at_ = 0, start_unix_ns_ = 0;
    ProcessId dead_ = 0;
};

}  // namespace

SupervisedRun supervise(const WorkerSetup& setup, const ReplayOptions& options, const TickPoint& first_point,
                        SharedTimeline& clock) {
    return Supervisor(setup, options, clock).run(first_point);
}

}  // namespace reprise

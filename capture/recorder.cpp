// SPDX-License-Identifier: MIT
// The recording itself: one thread that drains, samples and waits, and ends cleanly whatever happens.
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>

#include "capture/bpf/shared.h"
#include "capture/capture.h"
#include "capture/child.h"
#include "capture/context_records.h"
#include "capture/early_holes.h"
#include "capture/loader.h"
#include "capture/mapped_uses.h"
#include "capture/memory_samples.h"
#include "capture/probe.h"
#include "capture/ring.h"
#include "capture/signal_block.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// ns that a call which does nothing takes now: the least of some batches.
double call_ns() {
    constexpr int kBatches = 5, kCalls = 1'000;
    double least = 1e9;
    for (int batch = 0; batch < kBatches; ++batch) {
        const uint64_t begin = monotonic_ns();
        for (int i = 0; i < kCalls; ++i) {
            ::syscall(SYS_lseek, -1, 0, SEEK_CUR);
        }
        least = std::min(least, static_cast<double>(monotonic_ns() - begin) / kCalls);
    }
    return least;
}

/// CPU time of this process so far, ns: the recorder's own.
int64_t own_cpu_ns() {
    timespec now{};
    return ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0 ? int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec : 0;
}

/// Whether anonymous memory may come in pages between the base and the huge ones.
bool other_page_sizes() {
    std::error_code error;
    const std::filesystem::path folder = "/sys/kernel/mm/transparent_hugepage";
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename();
        std::ifstream in(at->path() / "enabled");
        std::string words;
        if (name.starts_with("hugepages-") && name != "hugepages-2048kB" && std::getline(in, words) &&
            words.find("[never]") == std::string::npos) {
            return true;
        }
    }
    return false;
}

/// How long the ring may go undrained: half of it is left where every CPU does nothing but calls. Each time the drain
/// wakes up it takes a processor from the job.
std::chrono::nanoseconds longest_wait(uint64_t ring_bytes) {
    constexpr double kBytesOfCpu = 280e6;  // per second: 2.5 million records of 112 bytes
    const double cpus = std::max<double>(1, static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)));
    const std::chrono::duration<double> half(static_cast<double>(ring_bytes) / 2 / (cpus * kBytesOfCpu));
    return std::clamp<std::chrono::nanoseconds>(std::chrono::duration_cast<std::chrono::nanoseconds>(half), 2ms, 20ms);
}

/// From which time on a fault on a new anonymous page is a dear one. Never where that was not measured, or where pages
/// of other sizes are made, whose time is theirs by right.
PageCosts dear_pages(const RecorderCosts& costs) {
    constexpr raw_u64 kTimes = 4, kNever = UINT64_MAX;
    PageCosts out = {{{0, kNever}, {0, kNever}}};
    const auto base = static_cast<raw_u64>(costs.page), huge = static_cast<raw_u64>(costs.huge_page);
    if (base != 0 && !other_page_sizes()) {
        out[PAGE_BASE] = {base, base * kTimes};
    }
    if (huge != 0) {
        out[PAGE_HUGE] = {huge, huge * kTimes};
    }
    return out;
}

class Recorder {
public:
    explicit Recorder(const CaptureOptions& options)
        : options_(options), signals_(io_, blocked_.fd()), drain_timer_(io_), slow_timer_(io_), uses_timer_(io_) {}

    CaptureResult run() {
        BpfPrograms::Options how;
        how.ring_bytes = options_.ring_bytes;
        how.without = {options_.without.begin(), options_.without.end()};
        how.cgroups = !options_.cgroup.empty();
        how.mapped_uses = options_.mapped_uses;
        // For tests and measurements.
        how.probe_reads = std::getenv("REPRISE_CAPTURE_PROBE_READS") != nullptr;
        how.raw_tracepoints = std::getenv("REPRISE_CAPTURE_RAW_TRACEPOINTS") != nullptr;
        bpf_ = std::make_unique<BpfPrograms>(how);
        ring_ = std::make_unique<Ring>(bpf_->ring_fd(), bpf_->ring_bytes());
        if (options_.mapped_uses) {
            uses_ = std::make_unique<MappedUses>(*bpf_);
        }
        result_.absent = bpf_->absent();

        const std::optional<ChildUser> user = options_.command.empty() ? std::nullopt : child_user(options_.user);
        if (!options_.command.empty()) {
            child_ = std::make_unique<Child>(options_.command, user, blocked_.old());
        }
        Probe probe;
        const ProbeTimes without = probe.run();
        const double untraced = call_ns();
        if (!options_.cgroup.empty()) {
            bpf_->watch_cgroups(cgroup_ids(options_.cgroup));
        }
        bpf_->attach();
        const double more = std::max(call_ns() - untraced, 0.0);
        const RecorderCosts costs = measured_costs(probe, without, more);
        writer_ = std::make_unique<RawWriter>(
            options_.raw, capture_meta(options_, *bpf_, user ? user->name : std::string(), std::lround(more), costs),
            RawWriter::Options{.gives_way = true});
        result_.raw_lock = std::make_shared<const UniqueFd>(writer_->lock());
        clock_record(*writer_);
        begin_ = last_drain_ = Clock::now();
        cpu_begin_ = own_cpu_ns();
        longest_wait_ = longest_wait(bpf_->ring_bytes());
        begin_following();
        if (child_) {
            child_->release();
        }
        result_.before_ns = (Clock::now() - made_).count();
        watch();
        io_.run();
        end();
        return result_;
    }

private:
    /// Records the probe as it will the job, and forgets it.
    RecorderCosts measured_costs(Probe& probe, const ProbeTimes& without, double unseen) {
        const pid_t pid = probe.pid();
        if (pid == 0 || bpf_->follow({pid}) == 0) {
            bpf_->set_page_costs(dear_pages({}));
            return {};
        }
        RecorderCosts costs = costs_of(without, probe.run(), unseen);
        probe.end();
        PageTimes pages;
        ring_->discard([&](const raw_head& record) { pages.see(record, pid); });
        costs.page = pages.base();
        if (const char* usual =
                std::getenv("REPRISE_CAPTURE_PAGE_NS")) {  // for tests: with 1, every page is a dear one
            costs.page = std::strtol(usual, nullptr, 10);
        }
        costs.huge_page = pages.huge();
        bpf_->set_page_costs(dear_pages(costs));
        bpf_->forget_counts();
        return costs;
    }

    void begin_following() {
        std::vector<pid_t> pids;
        if (child_) {
            pids = {child_->pid()};
        } else if (options_.pid != 0) {
            pids = process_tree(options_.pid);
        } else {
            pids = processes_of_cgroup(options_.cgroup);
        }
        if (bpf_->follow(pids) == 0 && options_.cgroup.empty()) {
            throw machine_error("process " + std::to_string(pids.empty() ? options_.pid : pids.front()) +
                                    " ended before it could be followed",
                                "name a process that runs");
        }
        for (const pid_t pid : pids) {
            seed_task_record(*writer_, pid, child_ ? &options_.command : nullptr);
            if (!child_) {
                rank_record(*writer_, pid);
            }
        }
        bpf_->seed_descriptors();
        if (!child_) {
            bpf_->seed_mappings();
        }
    }

    void watch() {
        read_signals();
        drain_soon(2ms);
        tick();
        if (uses_) {
            look_for_uses();
        }
    }

    // What throws in here ends the recording, never the job.
    template <class F>
    void guarded(const F& f) {
        if (!result_.failure.empty()) {
            return;
        }
        try {
            f();
        } catch (const Error& error) {
            result_.failure = error.what();
            bpf_->detach();
            if (!child_) {
                stop();
            }
        }
    }

    void drain() {
        guarded([&] {
            note_lag(Clock::now());
            drained_ = ring_->drain(*writer_, noticed_);
            note_ranks();
            early_holes_.look(noticed_.sparse, *writer_);
        });
    }

    /// Of programs that were begun since the last drain, before they can have ended.
    void note_ranks() {
        for (const pid_t pid : noticed_.execs) {
            rank_record(*writer_, pid);
        }
        noticed_.execs.clear();
    }

    /// A drain begins.
    void note_lag(Clock::time_point now) {
        result_.most_lag_ns = std::max<int64_t>(result_.most_lag_ns, (now - last_drain_).count());
        last_drain_ = now;
    }

    void drain_soon(std::chrono::nanoseconds wait) {
        drain_timer_.expires_after(wait);
        drain_timer_.async_wait([this](const auto& error) {
            if (error) {
                return;
            }
            drain();
            drain_soon(drained_ * 8 < bpf_->ring_bytes() ? longest_wait_ : 2ms);
        });
    }

    // Every 100 ms.
    void tick() {
        slow_timer_.expires_after(100ms);
        slow_timer_.async_wait([this](const auto& error) {
            if (error) {
                return;
            }
            guarded([&] {
                const bool pressure =
                    std::find(options_.without.begin(), options_.without.end(), "pressure") == options_.without.end();
                if (pressure) {
                    pressure_record(*writer_);
                }
                memory_.sample(*bpf_, *writer_);
                if (++ticks_ % 10 == 0) {
                    loss_record(false);
                    writer_->flush();
                }
                if (ticks_ % 100 == 0) {
                    clock_record(*writer_);
                }
            });
            const int64_t live = static_cast<int64_t>(bpf_->counter(COUNT_LIVE));
            if (result_.command_ended ? live <= 0 || !options_.wait_all : options_.pid != 0 && live <= 0) {
                stop();
            }
            tell(live);
            tick();
        });
    }

    void tell(int64_t live) const {
        if (!options_.progress) {
            return;
        }
        CaptureProgress now;
        static_assert(RAW_HOLES < std::tuple_size_v<decltype(now.by_type)>);
        std::copy_n(ring_->by_type().begin(), now.by_type.size(), now.by_type.begin());
        now.records = ring_->records();
        now.bytes = writer_->bytes();
        now.lost = bpf_->counter(COUNT_LOST);
        now.tasks = bpf_->counter(COUNT_TASKS);
        now.live = static_cast<uint64_t>(std::max<int64_t>(live, 0));
        now.ring_used = ring_->used();
        now.ring_bytes = bpf_->ring_bytes();
        now.elapsed_ns = (Clock::now() - begin_).count();
        now.most_lag_ns = result_.most_lag_ns;
        now.own_cpu_ns = own_cpu_ns() - cpu_begin_;
        options_.progress(now);
    }

    void look_for_uses() {
        uses_timer_.expires_after(20ms);
        uses_timer_.async_wait([this](const auto& error) {
            if (error) {
                return;
            }
            guarded([&] { uses_->sample(*writer_); });
            look_for_uses();
        });
    }

    void read_signals() {
        signals_.async_read_some(asio::buffer(&signal_, sizeof signal_), [this](const auto& error, size_t n) {
            if (error) {
                return;
            }
            if (n == sizeof signal_) {
                handle(signal_);
            }
            read_signals();
        });
    }

    void handle(const signalfd_siginfo& info) {
        const int signal = static_cast<int>(info.ssi_signo);
        blocked_.seen(signal);
        if (signal == SIGCHLD) {
            if (!child_ || result_.command_ended) {
                return;
            }
            if (const std::optional<int> status = child_->poll()) {
                result_.status = *status;
                result_.command_ended = true;
                if (!options_.wait_all || !result_.failure.empty()) {
                    stop();
                }
            }
            return;
        }
        if (!child_ || result_.command_ended) {
            if (SignalBlock::ends(signal)) {
                stop();
            }
            return;
        }
        // What the terminal sends goes to the whole group, the command included.
        if (info.ssi_code != SI_KERNEL && signal != SIGCONT) {
            ::kill(child_->pid(), signal);
        }
    }

    void stop() { io_.stop(); }

    void loss_record(bool always) {
        raw_loss loss{};
        loss.failed_reserves = bpf_->counter(COUNT_LOST);
        loss.recursion_misses = always ? bpf_->recursion_misses() : 0;
        loss.untracked = bpf_->counter(COUNT_UNTRACKED);
        loss.most_lag_ns = static_cast<uint64_t>(result_.most_lag_ns);
        if (!always && loss.failed_reserves == told_lost_) {
            return;
        }
        told_lost_ = loss.failed_reserves;
        user_record(*writer_, RAW_LOSS, loss);
    }

    void end() {
        result_.ended = Clock::now();
        drain();  // detaching takes a while, and whoever is attached to goes on meanwhile
        bpf_->detach();
        result_.elapsed_ns = (Clock::now() - begin_).count();
        result_.lost = bpf_->counter(COUNT_LOST);
        result_.recursion_misses = bpf_->recursion_misses();
        result_.untracked = bpf_->counter(COUNT_UNTRACKED);
        result_.tasks = bpf_->counter(COUNT_TASKS);
        const auto live = static_cast<int64_t>(bpf_->counter(COUNT_LIVE));
        result_.still_running = live > 0 ? static_cast<uint64_t>(live) : 0;
        guarded([&] {
            for (auto now = Clock::now(); ring_->drain(*writer_, noticed_) != 0; now = Clock::now()) {
                note_lag(now);  // only where records waited
            }
            loss_record(true);
            clock_record(*writer_);
            writer_->finish();
        });
        result_.own_cpu_ns = own_cpu_ns() - cpu_begin_;
        result_.records = ring_->records();
        result_.calls = ring_->calls();
        result_.bytes = writer_->bytes();
        tell(live);
    }

    const CaptureOptions& options_;
    SignalBlock blocked_;
    asio::io_context io_{1};
    asio::posix::stream_descriptor signals_;
    asio::steady_timer drain_timer_, slow_timer_, uses_timer_;
    std::unique_ptr<BpfPrograms> bpf_;
    std::unique_ptr<Ring> ring_;
    std::unique_ptr<Child> child_;
    std::unique_ptr<RawWriter> writer_;
    MemorySamples memory_;
    std::unique_ptr<MappedUses> uses_;
    signalfd_siginfo signal_{};
    CaptureResult result_;
    const Clock::time_point made_ = Clock::now();
    Clock::time_point begin_, last_drain_;
    int64_t cpu_begin_ = 0;
    std::chrono::nanoseconds longest_wait_{};
    Noticed noticed_;
    EarlyHoles early_holes_;
    uint64_t drained_ = 0, told_lost_ = 0, ticks_ = 0;
};

}  // namespace

CaptureResult capture(const CaptureOptions& options) { return Recorder(options).run(); }

}  // namespace reprise

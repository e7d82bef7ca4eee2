// SPDX-License-Identifier: MIT
#include "calibrate/host_profile.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <thread>

#include "calibrate/clock.h"
#include "calibrate/delay.h"
#include "calibrate/work_units.h"
#include "formats/support/error.h"
#include "formats/support/percentile.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

/// Nanoseconds per turn of `body`: the median of several rounds of `turns`.
template <class Body>
double cost_ns(int turns, Body body) {
    std::vector<double> rounds;
    for (int round = 0; round < 11; ++round) {
        const int64_t begin = monotonic_ns();
        for (int turn = 0; turn < turns; ++turn) {
            body();
        }
        rounds.push_back(static_cast<double>(monotonic_ns() - begin) / turns);
    }
    return median(rounds);
}

std::string cpu_name() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("model name")) {
            const size_t at = line.find(": ");
            return at == std::string::npos ? "" : line.substr(at + 2);
        }
    }
    return {};
}

class Measurement {
public:
    explicit Measurement(const HostOptions& options) : options_(options) {}

    HostProfile run() {
        HostProfile out;
        utsname name{};
        uname(&name);
        out.host = name.nodename;
        out.kernel = std::string(name.sysname) + " " + name.release + " " + name.machine;
        out.cpu = cpu_name();
        out.measured_unix_s = std::time(nullptr);
        out.cpus = usable_cpus();
        const TickPoint start = take_tick_point();
        step("plain sleeps");
        sleeps(out);
        tick_ns_ = measure_tick_length_ns(start, 20'000'000);
        step("delays of 50 us");
        out.delays.push_back(delays(50'000, 5'000));
        step("delays of 1 ms");
        out.delays.push_back(delays(1'000'000, 1'000));
        step("delays of 10 ms");
        out.delays.push_back(delays(10'000'000, 100));
        step("calls");
        calls(out);
        step("wakes");
        out.wake_ns = wake();
        step("work after waits");
        out.waits = measure_wait_cost(15, options_.stop);
        step("work on one processor");
        out.one = work(1);
        step("work on all processors");
        out.all = work(out.cpus);
        return out;
    }

private:
    void step(const char* what) {
        constexpr int kSteps = 9;
        if (options_.stop != nullptr && options_.stop->load()) {
            throw machine_error("the measurement was interrupted", "run it again");
        }
        if (options_.progress) {
            options_.progress(what, done_, kSteps);
        }
        ++done_;
    }

    static void sleeps(HostProfile& out) {
        const auto lateness = [] {
            std::vector<int64_t> late;
            for (int i = 0; i < 300; ++i) {
                const int64_t due = monotonic_ns() + 1'000'000;
                const timespec until{due / 1'000'000'000, due % 1'000'000'000};
                clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
                late.push_back(monotonic_ns() - due);
            }
            return late;
        };
        // In threads of their own, as the slack stays with the thread.
        std::vector<int64_t> plain, least;
        std::thread([&] { plain = lateness(); }).join();
        std::thread([&] {
            use_least_timer_slack();
            least = lateness();
        }).join();
        out.sleep_p50_ns = percentile(plain, 0.5);
        out.sleep_p99_ns = percentile(plain, 0.99);
        out.slack_p50_ns = percentile(least, 0.5);
        out.slack_p99_ns = percentile(least, 0.99);
    }

    DelayError delays(int64_t target, uint64_t count) const {
        DelayError out{.target_ns = target, .count = count};
        std::thread([&] {
            use_least_timer_slack();
            SpinTokens tokens;
            tokens.free = std::max(usable_cpus() - 1, 1);
            Delay delay(&tokens, nullptr, tick_ns_);
            std::vector<int64_t> over;
            over.reserve(count);
            const int64_t begin = delay.now_ns();
            for (uint64_t i = 1; i <= count; ++i) {
                const int64_t due = begin + static_cast<int64_t>(i) * target;
                delay.until(due);
                over.push_back(delay.now_ns() - due);
            }
            const auto wanted = static_cast<double>(target) * static_cast<double>(count);
            out.total = static_cast<double>(over.back()) / wanted;
            out.p50_ns = percentile(over, 0.5);
            out.p99_ns = percentile(over, 0.99);
        }).join();
        return out;
    }

    void calls(HostProfile& out) const {
        std::string name = (options_.scratch / "reprise-calibrate-XXXXXX").string();
        const UniqueFd file(mkostemp(name.data(), O_CLOEXEC));
        if (!file.valid()) {
            throw machine_error(name + ": cannot be created: " + std::strerror(errno), "name a directory with --dir");
        }
        std::array<char, 4096> buffer{};
        const bool written = write(file.get(), buffer.data(), buffer.size()) == static_cast<ssize_t>(buffer.size());
        out.call_ns = cost_ns(20'000, [] { syscall(SYS_getppid); });
        out.pread_ns = cost_ns(20'000, [&] { (void)!pread(file.get(), buffer.data(), buffer.size(), 0); });
        out.open_ns = cost_ns(5'000, [&] { ::close(::open(name.c_str(), O_RDONLY | O_CLOEXEC)); });
        out.clock_ns = cost_ns(20'000, [] { (void)ticks_now(); });
        out.spin_ns = cost_ns(20'000, [] { spin_pause(); });
        ::unlink(name.c_str());
        if (!written) {
            throw machine_error(name + ": cannot be written: " + std::strerror(errno),
                                "free space, or name another --dir");
        }
    }

    /// Half a ping-pong over two futex words.
    static double wake() {
        std::array<std::atomic<uint32_t>, 2> turn{};
        constexpr uint32_t kTurns = 3'000;
        const auto wait = [](std::atomic<uint32_t>& word, uint32_t seen) {
            while (word.load() == seen) {
                syscall(SYS_futex, &word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
            }
        };
        const auto wake_up = [](std::atomic<uint32_t>& word, uint32_t value) {
            word.store(value);
            syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
        };
        std::thread other([&] {
            for (uint32_t i = 1; i <= kTurns; ++i) {
                wait(turn[0], i - 1);
                wake_up(turn[1], i);
            }
        });
        const int64_t begin = monotonic_ns();
        for (uint32_t i = 1; i <= kTurns; ++i) {
            wake_up(turn[0], i);
            wait(turn[1], i - 1);
        }
        const int64_t end = monotonic_ns();
        other.join();
        return static_cast<double>(end - begin) / (2.0 * kTurns);
    }

    WorkRates work(int threads) const {
        std::vector<WorkRates> rates(static_cast<size_t>(threads));
        std::vector<std::thread> running;
        running.reserve(static_cast<size_t>(threads));
        std::atomic<int> ready{0};
        for (int i = 0; i < threads; ++i) {
            running.emplace_back([&, i] {
                WorkUnits units;
                ready.fetch_add(1);
                while (ready.load() < threads) {
                    std::this_thread::yield();
                }
                WorkRates& mine = rates[static_cast<size_t>(i)];
                mine.integer = rate([&] { return units.run_integer(); });
                mine.inflate = rate([&] { return units.run_inflate(); });
                mine.memcpy = rate([&] { return units.run_memcpy(); });
            });
        }
        for (std::thread& one : running) {
            one.join();
        }
        WorkRates mean;
        for (const WorkRates& one : rates) {
            mean.integer += one.integer / threads;
            mean.inflate += one.inflate / threads;
            mean.memcpy += one.memcpy / threads;
        }
        return mean;
    }

    template <class Unit>
    double rate(Unit unit) const {
        std::vector<double> seconds;
        std::atomic<uint64_t> sink{0};
        for (int i = 0; i < std::max(options_.repeats, 1) + 5; ++i) {
            const int64_t begin = monotonic_ns();
            sink.store(unit(), std::memory_order_relaxed);
            if (i >= 5) {  // the first warm up
                seconds.push_back(static_cast<double>(monotonic_ns() - begin) / 1e9);
            }
        }
        return 1.0 / median(seconds);
    }

    const HostOptions& options_;
    double tick_ns_ = 1.0;
    int done_ = 0;
};

}  // namespace

HostProfile measure_host(const HostOptions& options) { return Measurement(options).run(); }

SpeedRatio compare_speed(const WorkRates& here, const WorkRates& there) {
    const std::array<double, 3> ratios{here.integer / there.integer, here.inflate / there.inflate,
                                       here.memcpy / there.memcpy};
    double log_sum = 0, least = INFINITY, most = 0;
    for (const double ratio : ratios) {
        if (!std::isfinite(ratio) || ratio <= 0) {
            return {};
        }
        log_sum += std::log(ratio);
        least = std::min(least, ratio);
        most = std::max(most, ratio);
    }
    const double mean = std::exp(log_sum / 3);
    return {mean, (most - least) / (2 * mean)};
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// What the clockwork of a replay adds of its own, as Markdown tables and, with --json FILE, as JSON:
//   delay    10 000 delays of 50 us, 1 ms and 10 ms, one thread and two: total error, p50, p99 (takes four minutes)
//   compute  the same lengths taken from the processor, one thread and as many as processors
//   dlrm     steps of 375 us whose batches lie in the cache: utilisation of the accelerator by the harness itself
//   edges    pace causal per op without an edge, and a wake across processes beside a bare futex
// Usage: bench_delay [delay|compute|dlrm|edges]... [--count N] [--dir DIR] [--json FILE]
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "calibrate/clock.h"
#include "calibrate/compute.h"
#include "calibrate/delay.h"
#include "formats/oplog/oplog.h"
#include "replay/run/runner.h"

namespace {

namespace fs = std::filesystem;
using namespace reprise;
using Json = nlohmann::ordered_json;

struct Settings {
    int count = 10'000;
    fs::path dir = fs::temp_directory_path();
};

int64_t percentile(std::vector<int64_t>& values, double share) {
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, static_cast<size_t>(share * static_cast<double>(values.size())))];
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

double tick_length() {
    static const double length = measure_tick_length_ns(take_tick_point(), 50'000'000);
    return length;
}

/// `wait(due)` for `count` deadlines, each `target` after the one before, in every thread at once. It returns when it
/// was over, by the clock it waited by: CLOCK_MONOTONIC, asked after a long sleep, takes up to half a microsecond
/// itself. The total is by CLOCK_MONOTONIC.
template <class Make>
Json chain(const char* what, int64_t target, int count, int threads, Make make) {
    std::vector<int64_t> over;
    std::vector<double> totals(static_cast<size_t>(threads));
    std::vector<std::vector<int64_t>> each(static_cast<size_t>(threads));
    std::vector<std::thread> running;
    running.reserve(static_cast<size_t>(threads));
    for (int t = 0; t < threads; ++t) {
        running.emplace_back([&, t] {
            use_least_timer_slack();
            auto wait = make();
            std::vector<int64_t>& mine = each[static_cast<size_t>(t)];
            mine.reserve(static_cast<size_t>(count));
            const int64_t begin = monotonic_ns();
            for (int i = 1; i <= count; ++i) {
                const int64_t due = begin + i * target;
                mine.push_back(wait(due) - due);
            }
            const auto asked = static_cast<double>(target) * count;
            totals[static_cast<size_t>(t)] = static_cast<double>(monotonic_ns() - begin) / asked - 1.0;
        });
    }
    for (std::thread& one : running) {
        one.join();
    }
    for (const auto& mine : each) {
        over.insert(over.end(), mine.begin(), mine.end());
    }
    const double total = *std::max_element(totals.begin(), totals.end());
    const double p50 = static_cast<double>(percentile(over, 0.5)) / 1e3;
    const double p99 = static_cast<double>(percentile(over, 0.99)) / 1e3;
    std::printf("| %s of %lld us | %d | %d | %.4f %% | %.2f | %.2f |\n", what, static_cast<long long>(target / 1000),
                threads, count, total * 100, p50, p99);
    std::fflush(stdout);
    return {{"target_us", target / 1000}, {"threads", threads}, {"count", count},
            {"total_error", total},       {"p50_us", p50},      {"p99_us", p99}};
}

Json delays(const Settings& settings, bool compute) {
    std::printf("\n| %s | threads | each | total error | p50 us | p99 us |\n|---|---|---|---|---|---|\n",
                compute ? "computing" : "delays");
    Json rows = Json::array();
    const int cpus = usable_cpus();
    for (const int64_t target : {50'000, 1'000'000, 10'000'000}) {
        for (const int threads : {1, 2}) {
            SpinTokens tokens;
            tokens.free = std::max(cpus - 1, 1);
            tokens.processors = cpus;
            if (compute) {
                const int count = std::min<int>(settings.count, static_cast<int>(10'000'000'000 / target));
                rows.push_back(chain("computing", target, count, threads, [&] {
                    auto how = std::make_shared<Compute>(DelayPolicy::spin, &tokens, nullptr, tick_length());
                    return [how](int64_t due) {
                        how->fill(due);
                        return monotonic_ns();
                    };
                }));
            } else {
                rows.push_back(chain("a delay", target, settings.count, threads, [&] {
                    auto how = std::make_shared<Delay>(&tokens, nullptr, tick_length());
                    return [how](int64_t due) {
                        how->until(due);
                        return how->now_ns();
                    };
                }));
            }
        }
    }
    return rows;
}

/// Writes a log and replays it.
class Job {
public:
    explicit Job(const fs::path& dir) : dir_((dir / "reprise-bench-XXXXXX").string()) {
        if (mkdtemp(dir_.data()) == nullptr) {
            std::perror("bench_delay: mkdtemp");
            std::exit(1);
        }
        Header header;
        header.source = "bench";
        WriterOptions options;
        options.sync = false;
        writer = std::make_unique<LogWriter>(fs::path(dir_) / "job.oplog", header, options);
    }
    ~Job() { fs::remove_all(dir_); }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    /// In a process of its own.
    TaskId task() {
        ProcessRow row;
        row.pid = 100 + static_cast<int>(writer->tables().processes.size());
        TaskRow task;
        task.process = writer->add_process(row);
        task.tid = 1000 + static_cast<int>(writer->tables().tasks.size());
        return writer->add_task(task);
    }
    HandleId open(TaskId task, const std::string& name, size_t bytes) {
        fs::create_directories(fs::path(dir_) / "root");
        std::ofstream out(fs::path(dir_) / "root" / name, std::ios::binary);
        const std::vector<char> block(1 << 20, 'x');
        for (size_t done = 0; done < bytes; done += block.size()) {
            out.write(block.data(), static_cast<std::streamsize>(std::min(block.size(), bytes - done)));
        }
        out.close();
        FileRow file;
        file.path = writer->intern("/" + name);
        file.size = bytes;
        file.origin = Origin::existed;
        file.role = Role::dataset;
        const FileId id = writer->add_file(file);
        HandleRow handle;
        handle.file = id;
        const HandleId made = writer->add_handle(handle);
        writer->append(task,
                       {.kind = OpKind::open, .begin = 0, .duration = 1, .result = 3, .handle = made, .file = id});
        return made;
    }
    fs::path run_log() const { return fs::path(dir_) / "run.oplog"; }
    ReplayResult run(Pace pace, EngineKind engine, DelayPolicy delay = DelayPolicy::automatic,
                     const fs::path& output = {}) {
        if (writer != nullptr) {
            writer->finish();
            writer.reset();
        }
        const LogReader log(fs::path(dir_) / "job.oplog");
        ReplayOptions options;
        options.root = fs::path(dir_) / "root";
        options.pace = pace;
        options.engine = engine;
        options.delay = delay;
        options.filter = OpFilter::all();
        options.output = output;
        ReplayResult result = replay(log, options);
        if (result.ended != "complete" || result.mismatches != 0) {
            std::fprintf(stderr, "bench_delay: %s, %llu results differ\n", result.ended.c_str(),
                         static_cast<unsigned long long>(result.mismatches));
            std::exit(1);
        }
        return result;
    }

    std::unique_ptr<LogWriter> writer;

private:
    std::string dir_;
};

/// A loader that reads `bytes` a batch, eight batches ahead at most, and a trainer whose steps take 375 us.
double dlrm_au(const Settings& settings, size_t bytes, int loaders, EngineKind engine, int steps) {
    constexpr int64_t kStep = 375'000;
    constexpr int kAhead = 8;
    Job job(settings.dir);
    const TaskId trainer = job.task();
    std::vector<TaskId> tasks;
    std::vector<HandleId> handles;
    for (int i = 0; i < loaders; ++i) {
        tasks.push_back(job.task());
        handles.push_back(job.open(tasks.back(), "batches", std::max<size_t>(bytes, 1) * 4));
    }
    std::vector<uint64_t> read_of(static_cast<size_t>(steps)), submit_of(static_cast<size_t>(steps));
    for (int step = 0; step < steps; ++step) {
        const auto loader = static_cast<size_t>(step % loaders);
        const int64_t at = 1'000'000 + step * kStep;
        std::vector<Edge> room;
        if (step >= kAhead) {
            room.push_back({trainer, EdgeKind::queue, 100, submit_of[static_cast<size_t>(step - kAhead)]});
        }
        // As recorded, a batch took no time, one step before it was needed.
        read_of[static_cast<size_t>(step)] =
            job.writer->append(tasks[loader], {.kind = OpKind::pread,
                                               .begin = at - kStep / 2,
                                               .duration = 1,
                                               .result = static_cast<int64_t>(bytes),
                                               .handle = handles[loader],
                                               .fd = 3,
                                               .offset = static_cast<int64_t>(bytes) * (step % 4),
                                               .size = static_cast<int64_t>(bytes),
                                               .edges = room});
        const std::vector<Edge> data{{tasks[loader], EdgeKind::message, 100, read_of[static_cast<size_t>(step)]}};
        job.writer->append(trainer, {.kind = OpKind::wait, .begin = at, .duration = 1, .arg = 1, .edges = data});
        submit_of[static_cast<size_t>(step)] =
            job.writer->append(trainer, {.kind = OpKind::gpu_submit, .begin = at + 1, .duration = 1, .size = kStep});
        job.writer->append(trainer, {.kind = OpKind::gpu_wait, .begin = at + 2, .duration = kStep - 2});
    }
    const ReplayResult result = job.run(Pace::causal, engine);
    // The task starts a millisecond before its first step.
    return static_cast<double>(kStep) * steps / static_cast<double>(result.elapsed_ns - 1'000'000);
}

Json dlrm(const Settings& settings) {
    std::printf("\n| steps of 375 us, batches in the cache | loaders | steps | AU |\n|---|---|---|---|\n");
    struct Row {
        const char* what;
        size_t bytes;
        int loaders;
        EngineKind engine;
    };
    Json rows = Json::array();
    const int cpus = usable_cpus();
    std::vector<Row> all{{"the harness alone (engine null)", size_t{16384} * 761, 1, EngineKind::null},
                         {"16384 B a batch", 16384, 1, EngineKind::posix},
                         {"256 x 761 B a batch", size_t{256} * 761, 1, EngineKind::posix}};
    for (int loaders = 1; loaders <= std::max(1, cpus - 1); loaders *= 2) {
        all.push_back({"16384 x 761 B a batch", size_t{16384} * 761, loaders, EngineKind::posix});
    }
    for (const Row& row : all) {
        constexpr int kSteps = 8'000;
        const double au = dlrm_au(settings, row.bytes, row.loaders, row.engine, kSteps);
        std::printf("| %s | %d | %d | %.2f %% |\n", row.what, row.loaders, kSteps, au * 100);
        std::fflush(stdout);
        rows.push_back({{"what", row.what}, {"bytes", row.bytes}, {"loaders", row.loaders}, {"au", au}});
    }
    return rows;
}

void wait_for(std::atomic<uint32_t>& word, uint32_t seen) {
    while (word.load() == seen) {
        syscall(SYS_futex, &word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
    }
}

/// From before a store and a wake in one process to the return of the waiter in the other, ns, the median of a
/// ping-pong over two futex words; each side computes `think` ns before it answers.
double bare_wake(int turns, int64_t think) {
    struct Shared {
        std::atomic<uint32_t> word[2];
        int64_t stored[2];  // when, by the side that did
    };
    void* const at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto* const shared = new (at) Shared{};
    const auto limit = static_cast<uint32_t>(turns);
    const pid_t pid = fork();
    const int me = pid == 0 ? 1 : 0;
    std::vector<double> took;
    took.reserve(limit);
    for (uint32_t i = 1; i <= limit; ++i) {
        if (me == 1) {
            wait_for(shared->word[0], i - 1);
        }
        for (const int64_t until = monotonic_ns() + think; think > 0 && monotonic_ns() < until;) {
        }
        shared->stored[me] = monotonic_ns();
        shared->word[me].store(i);
        syscall(SYS_futex, &shared->word[me], FUTEX_WAKE, 1, nullptr, nullptr, 0);
        if (me == 0) {
            wait_for(shared->word[1], i - 1);
            took.push_back(static_cast<double>(monotonic_ns() - shared->stored[1]));
        }
    }
    if (pid == 0) {
        _exit(0);
    }
    waitpid(pid, nullptr, 0);
    munmap(at, 4096);
    return median(std::move(took));
}

/// The same by two tasks of a log, one process each, whose messages are edges: from the end of an op to that of the
/// wait for it, as the run's log has them.
double edge_wake(const Settings& settings, int turns, int64_t think) {
    Job job(settings.dir);
    const TaskId task[2] = {job.task(), job.task()};
    std::vector<Edge> from;
    const int64_t each = std::max<int64_t>(think, 2);
    for (int64_t i = 0; i < 2 * int64_t{turns}; ++i) {
        const TaskId me = task[i % 2];
        const int64_t at = 1'000 + i * each;
        // Waits from its own last op on for the other side, which computes meanwhile.
        const int64_t waited = i == 0 ? 1 : each;
        uint64_t last = job.writer->append(
            me, {.kind = OpKind::wait, .begin = at - waited, .duration = waited, .arg = kWaitFutex, .edges = from});
        if (think > 0) {
            last = job.writer->append(
                me, {.kind = OpKind::compute, .begin = at, .duration = think, .flags = kComputeSpins});
        }
        from = {{me, EdgeKind::message, 100, last}};
    }
    const fs::path path = job.run_log();
    job.run(Pace::causal, EngineKind::null, DelayPolicy::automatic, path);
    const LogReader run(path);
    std::vector<int64_t> waits[2], ends[2];
    for (int side = 0; side < 2; ++side) {
        run.for_each(task[side], [&](const Op& op, uint64_t) {
            if (op.kind == OpKind::wait) {
                waits[side].push_back(op.end());
            }
            if (op.kind == (think > 0 ? OpKind::compute : OpKind::wait)) {
                ends[side].push_back(op.end());
            }
        });
    }
    std::vector<double> took;
    for (size_t i = 1; i < std::min(waits[0].size(), ends[1].size()); ++i) {
        took.push_back(static_cast<double>(waits[0][i] - ends[1][i - 1]));
    }
    if (took.size() + 1 < static_cast<size_t>(turns)) {
        std::fprintf(stderr, "bench_delay: the run's log lacks waits\n");
        std::exit(1);
    }
    return median(std::move(took));
}

/// As a table's row and, by `name`, as JSON: what the harness needs beyond a bare futex.
struct Wake {
    const char* what;
    const char* name;
    int turns;
    int64_t think;  // ns; so long that whoever waits sleeps, or 0
};

Json edges(const Settings& settings) {
    constexpr int kOps = 1'000'000, kRounds = 5, kWakeRounds = 9;
    constexpr Wake kWakes[] = {{"a wake across processes, the waiter spins", "wake", 20'000, 0},
                               {"the same, the waiter sleeps", "sleeping_wake", 4'000, 50'000}};
    std::vector<double> afap, causal;
    {
        Job job(settings.dir);
        const TaskId task = job.task();
        const HandleId h = job.open(task, "file", 4096);
        for (int i = 0; i < kOps; ++i) {
            job.writer->append(
                task,
                {.kind = OpKind::pread, .begin = 10, .duration = 1, .result = 1, .handle = h, .fd = 3, .size = 1});
        }
        for (int round = 0; round < kRounds; ++round) {
            afap.push_back(static_cast<double>(job.run(Pace::afap, EngineKind::null).elapsed_ns) / kOps);
            causal.push_back(static_cast<double>(job.run(Pace::causal, EngineKind::null).elapsed_ns) / kOps);
        }
    }
    std::printf("\n| causal edges | afap or bare ns | causal ns | beyond ns |\n|---|---|---|---|\n");
    const double op = median(causal) - median(afap);
    std::printf("| an op without edge | %.1f | %.1f | %.1f |\n", median(afap), median(causal), op);
    Json out = {{"op_afap_ns", median(afap)}, {"op_causal_ns", median(causal)}, {"op_beyond_ns", op}};
    for (const Wake& wake : kWakes) {
        std::vector<double> bare, edge, beyond;
        for (int round = 0; round < kWakeRounds; ++round) {
            bare.push_back(bare_wake(wake.turns, wake.think));
            edge.push_back(edge_wake(settings, wake.turns, wake.think));
            beyond.push_back(edge.back() - bare.back());
        }
        std::printf("| %s | %.0f | %.0f | %.0f |\n", wake.what, median(bare), median(edge), median(beyond));
        std::fflush(stdout);
        const std::string name = wake.name;
        out[name + "_bare_ns"] = median(bare);
        out[name + "_edge_ns"] = median(edge);
        out[name + "_beyond_ns"] = median(beyond);
    }
    return out;
}

}  // namespace

int main(int argc, char** argv) {
    Settings settings;
    std::vector<std::string> what;
    std::string json;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const bool more = i + 1 < argc;
        if (word == "--count" && more) {
            settings.count = std::max(std::atoi(argv[++i]), 10);
        } else if (word == "--dir" && more) {
            settings.dir = argv[++i];
        } else if (word == "--json" && more) {
            json = argv[++i];
        } else if (word == "delay" || word == "compute" || word == "dlrm" || word == "edges") {
            what.push_back(word);
        } else {
            std::fprintf(stderr,
                         "usage: bench_delay [delay|compute|dlrm|edges]... [--count N] [--dir DIR] [--json FILE]\n");
            return 2;
        }
    }
    const auto wanted = [&](const char* name) {
        return what.empty() || std::find(what.begin(), what.end(), name) != what.end();
    };
    Json out;
    out["cpus"] = usable_cpus();
    std::printf("%d processors\n", usable_cpus());
    if (wanted("edges")) {
        out["edges"] = edges(settings);
    }
    if (wanted("dlrm")) {
        out["dlrm"] = dlrm(settings);
    }
    if (wanted("compute")) {
        out["compute"] = delays(settings, true);
    }
    if (wanted("delay")) {
        out["delay"] = delays(settings, false);
    }
    if (!json.empty()) {
        std::ofstream(json) << out.dump(2) << "\n";
    }
    return 0;
}

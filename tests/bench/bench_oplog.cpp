// SPDX-License-Identifier: MIT
// The op log's size, its decoding and encoding rates on one core, and the memory that a long log takes.
// The real traces come from $REPRISE_TRACES or ../shared/traces; without them only the made log is measured, aloud.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "formats/import/importer.h"
#include "formats/oplog/oplog.h"

using namespace reprise;

namespace {

// A folder that goes away with the program.
struct Scratch {
    std::string name = (std::filesystem::temp_directory_path() / "reprise-bench-XXXXXX").string();
    Scratch() {
        if (!mkdtemp(name.data())) {
            std::abort();
        }
    }
    ~Scratch() { std::filesystem::remove_all(name); }
};

std::filesystem::path scratch() {
    static const Scratch made;
    return made.name;
}

std::vector<std::filesystem::path> inputs(const std::string& name) {
    const char* traces = std::getenv("REPRISE_TRACES");
    const std::filesystem::path root = traces ? traces : "../shared/traces";
    if (!std::filesystem::exists(root / name)) {
        return {};
    }
    if (!std::filesystem::is_directory(root / name)) {
        return {root / name};
    }
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(root / name)) {
        found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    return found;
}

// A loader's day: random 4 KiB to 1 MiB preads with jittered times, an open and a close now and then.
void make_log(const std::filesystem::path& path, uint64_t ops) {
    Header header;
    header.source = "bench";
    LogWriter writer(path, header, {.sync = false});
    const ProcessId process = writer.add_process({.pid = 1});
    TaskId tasks[4];
    int64_t clock[4] = {};
    for (TaskId& task : tasks) {
        task = writer.add_task({.process = process});
    }
    std::mt19937_64 random(1);
    HandleId handle = 0;
    for (uint64_t i = 0; i < ops; ++i) {
        const uint64_t bits = random();
        const size_t t = bits & 3;
        Op op;
        op.begin = clock[t] += 2000 + static_cast<int64_t>(bits >> 8 & 1023);
        op.duration = 900 + static_cast<int64_t>(bits >> 20 & 255);
        clock[t] += op.duration;
        if (i % 1000 == 0) {
            const FileId file =
                i % 100000 == 0
                    ? writer.add_file({.path = writer.intern("/data/train/shard-" + std::to_string(i) + ".bin")})
                    : 1;
            handle = writer.add_handle({.file = file});
            op.kind = OpKind::open;
            op.file = file;
            op.result = 3;
        } else {
            op.kind = OpKind::pread;
            op.fd = 3;
            op.size = op.result = 4096;
            op.offset = static_cast<int64_t>(bits >> 32 & 0xfffff) << 12;
        }
        op.handle = handle;
        writer.append(tasks[t], op);
    }
    writer.finish();
}

struct Source {
    const char* name;
    const char* trace;  // nullptr: made
};
constexpr Source kSources[] = {
    {"era5_file1", "dftracer/era5_training_1.pfw.gz"},
    {"era5_file3", "dftracer/era5_training_3.pfw.gz"},
    {"unet3d_npz", "dftracer/dlio_unet3d_npz_lustre.pfw.gz"},
    {"cm1", "dftracer/cm1"},
    {"made_4M", nullptr},
};

// The op log of a source, made on first use; empty where its trace is missing.
std::filesystem::path log_of(const Source& source) {
    const std::filesystem::path path = scratch() / (std::string(source.name) + ".oplog");
    if (std::filesystem::exists(path)) {
        return path;
    }
    if (!source.trace) {
        make_log(path, 4'000'000);
        return path;
    }
    const auto from = inputs(source.trace);
    if (from.empty()) {
        return {};
    }
    find_importer(from, "").import(from, path, {});
    return path;
}

void decode(benchmark::State& state, const Source& source) {
    const auto path = log_of(source);
    if (path.empty()) {
        return state.SkipWithError("SKIPPED: trace not found; set REPRISE_TRACES");
    }
    const LogReader log(path);
    for (auto _ : state) {
        OpBlock block;  // a fresh one, so that no decoded section is met again
        for (const BlockInfo& one : log.blocks()) {
            log.decode(one, block);
            benchmark::DoNotOptimize(block.begin);
        }
    }
    const auto ops = static_cast<double>(log.op_count());
    state.counters["ops/s"] = benchmark::Counter(ops, benchmark::Counter::kIsIterationInvariantRate);
    state.counters["bytes/op"] = static_cast<double>(log.file_bytes()) / ops;
}

void encode(benchmark::State& state, const Source& source) {
    const auto path = log_of(source);
    if (path.empty()) {
        return state.SkipWithError("SKIPPED: trace not found; set REPRISE_TRACES");
    }
    const LogReader log(path);
    const Tables& tables = log.tables();
    std::vector<std::pair<TaskId, Op>> ops;
    log.for_each_in_time([&](TaskId task, const Op& op, uint64_t) {
        ops.emplace_back(task, op);
        ops.back().second.list = {};
        ops.back().second.edges = {};
    });
    for (auto _ : state) {
        LogWriter writer(scratch() / "encoded.oplog", log.header(), {.sync = false});
        for (StringId id = 1; id < tables.strings.size(); ++id) {
            writer.intern(tables.strings[id]);
        }
        for (size_t i = 1; i < tables.processes.size(); ++i) {
            writer.add_process(tables.processes[i]);
        }
        for (size_t i = 1; i < tables.tasks.size(); ++i) {
            writer.add_task(tables.tasks[i]);
        }
        for (size_t i = 1; i < tables.files.size(); ++i) {
            writer.add_file(tables.files[i]);
        }
        for (size_t i = 1; i < tables.handles.size(); ++i) {
            writer.add_handle(tables.handles[i]);
        }
        for (const auto& [task, op] : ops) {
            writer.append(task, op);
        }
        writer.finish();
    }
    state.counters["ops/s"] =
        benchmark::Counter(static_cast<double>(ops.size()), benchmark::Counter::kIsIterationInvariantRate);
}

// Peak resident memory of this process since the last call, MiB; the kernel keeps it, /proc/self/clear_refs resets it.
double peak_mib() {
    double kib = 0;
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) {
            kib = std::strtod(line.c_str() + 6, nullptr);
        }
    }
    std::ofstream("/proc/self/clear_refs") << 5;
    return kib / 1024;
}

// $REPRISE_BENCH_OPS ops (default 100 M), written and read back in one pass.
void long_log(benchmark::State& state) {
    const char* wanted = std::getenv("REPRISE_BENCH_OPS");
    const uint64_t ops = wanted ? std::strtoull(wanted, nullptr, 10) : 100'000'000;
    const auto path = scratch() / "long.oplog";
    peak_mib();
    make_log(path, ops);
    const double write_peak = peak_mib();
    for (auto _ : state) {
        const LogReader log(path);
        OpBlock block;
        uint64_t n = 0;
        for (const BlockInfo& one : log.blocks()) {
            log.decode(one, block);
            n += block.count();
            log.forget(one);
        }
        if (n != ops) {
            state.SkipWithError("ops are missing");
        }
    }
    state.counters["write_peak_MiB"] = write_peak;
    state.counters["read_peak_MiB"] = peak_mib();
    state.counters["ops/s"] =
        benchmark::Counter(static_cast<double>(ops), benchmark::Counter::kIsIterationInvariantRate);
    std::filesystem::remove(path);
}

const int registered = [] {
    for (const Source& source : kSources) {
        benchmark::RegisterBenchmark((std::string("decode/") + source.name).c_str(), decode, source)
            ->Unit(benchmark::kMillisecond);
        benchmark::RegisterBenchmark((std::string("encode/") + source.name).c_str(), encode, source)
            ->Unit(benchmark::kMillisecond);
    }
    benchmark::RegisterBenchmark("long_log", long_log)->Iterations(1)->Unit(benchmark::kMillisecond);
    return 0;
}();

}  // namespace

BENCHMARK_MAIN();

// SPDX-License-Identifier: MIT
// The replayer beside a bare loop of the same calls and beside fio's read_iolog, interleaved in one run:
//   pread   1 M random 4 KiB preads of a cached file, as fast as possible
//   open    100 000 x open, fstat, read, close of small files, as fast as possible
//   null    the null engine: the replayer alone, per second and per second of processor time
//   timed   4 threads x 200 cycles of open, fstat, 64 KiB reads, close and a pause of 4 ms, at recorded times
// Usage: bench_replay [pread|open|null|timed]... [--rounds N] [--dir DIR]. DIR ($TMPDIR by default) holds the files.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "calibrate/clock.h"
#include "formats/oplog/oplog.h"
#include "replay/run/runner.h"

namespace {

namespace fs = std::filesystem;
using namespace reprise;

[[noreturn]] void give_up(const std::string& why) {
    std::fprintf(stderr, "bench_replay: %s\n", why.c_str());
    std::exit(1);
}

struct Scratch {
    std::string path;
    explicit Scratch(const fs::path& below) : path((below / "reprise-bench-XXXXXX").string()) {
        if (mkdtemp(path.data()) == nullptr) {
            give_up("cannot make " + path);
        }
    }
    ~Scratch() { fs::remove_all(path); }
};

void fill(const fs::path& path, size_t bytes) {
    std::vector<char> block(std::min<size_t>(bytes, 1 << 20));
    std::mt19937_64 random(bytes);
    for (char& byte : block) {
        byte = static_cast<char>(random());
    }
    std::ofstream out(path, std::ios::binary);
    for (size_t done = 0; done < bytes; done += block.size()) {
        out.write(block.data(), static_cast<std::streamsize>(block.size()));
    }
    out.close();
    if (!out) {
        give_up("cannot write " + path.string());
    }
}

/// A log of one file table, its ops appended by the caller.
struct LogMaker {
    LogWriter writer;
    int64_t now = 0;
    explicit LogMaker(const fs::path& path) : writer(path, Header{}) {}
    FileId file(const std::string& path) {
        FileRow row;
        row.path = writer.intern(path);
        row.origin = Origin::existed;
        row.role = Role::dataset;
        return writer.add_file(row);
    }
    HandleId handle(FileId file) {
        HandleRow row;
        row.file = file;
        return writer.add_handle(row);
    }
    void add(TaskId task, Op op, int64_t duration = 400) {
        op.begin = now;
        op.duration = duration;
        now += duration;
        writer.append(task, op);
    }
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0.0 : values[values.size() / 2];
}

double since_s(int64_t begin) { return static_cast<double>(monotonic_ns() - begin) / 1e9; }

ReplayResult run_log(const LogReader& log, const fs::path& root, Pace pace, EngineKind engine, uint64_t wanted) {
    ReplayOptions options;
    options.root = root;
    options.pace = pace;
    options.engine = engine;
    options.filter = OpFilter::all();
    ReplayResult result = replay(log, options);
    if (result.ended != "complete" || result.mismatches != 0 || result.ops != wanted) {
        give_up("the replay went wrong: " + result.ended + ", " + std::to_string(result.mismatches) + " mismatches");
    }
    return result;
}

/// Seconds that fio took for a version 3 iolog, or a negative number where fio is not installed.
double run_fio(const fs::path& log, const fs::path& folder, const std::string& more) {
    const fs::path out = folder / "fio.json";
    const std::string command = "fio --name=j --replay_no_stall=1 " + more + " --read_iolog='" + log.string() +
                                "' --output-format=json --output='" + out.string() + "' >/dev/null 2>&1";
    if (std::system("command -v fio >/dev/null 2>&1") != 0 || std::system(command.c_str()) != 0) {
        return -1.0;
    }
    std::ifstream in(out);
    const nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
    if (json.is_discarded()) {
        return -1.0;
    }
    const auto& read = json["jobs"][0]["read"];
    return read["total_ios"].get<double>() / read["iops"].get<double>();
}

void row(const char* what, double seconds, uint64_t ops, double share, const char* of) {
    std::printf("  %-28s %8.3f s  %9.3f M ops/s", what, seconds, static_cast<double>(ops) / seconds / 1e6);
    if (share > 0) {
        std::printf("  %6.1f %% of %s", share * 100, of);
    }
    std::printf("\n");
}

void bench_pread(const fs::path& folder, int rounds) {
    constexpr uint64_t kOps = 1'000'000;
    constexpr int64_t kSize = 4096, kBlocks = 16'384;
    fs::create_directories(folder / "root/data");
    const fs::path big = folder / "root/data/big";
    fill(big, kSize * kBlocks);
    std::vector<int64_t> offsets(kOps);
    std::mt19937_64 random(7);
    for (int64_t& offset : offsets) {
        offset = static_cast<int64_t>(random() % kBlocks) * kSize;
    }
    LogMaker maker(folder / "pread.oplog");
    const TaskId task = maker.writer.add_task({.process = maker.writer.add_process({.pid = 1})});
    const FileId file = maker.file("/data/big");
    const HandleId handle = maker.handle(file);
    maker.add(task, {.kind = OpKind::open, .result = 3, .handle = handle, .file = file});
    std::ofstream fio_log(folder / "pread.fio");
    fio_log << "fio version 2 iolog\n" << big.string() << " add\n" << big.string() << " open\n";
    for (const int64_t offset : offsets) {
        maker.add(task,
                  {.kind = OpKind::pread, .result = kSize, .handle = handle, .fd = 3, .offset = offset, .size = kSize});
        fio_log << big.string() << " read " << offset << " " << kSize << "\n";
    }
    fio_log << big.string() << " close\n";
    fio_log.close();
    maker.add(task, {.kind = OpKind::close, .handle = handle, .fd = 3});
    maker.writer.finish();
    const LogReader log(folder / "pread.oplog");

    std::vector<double> bare, ours, ratio, fio_plain, fio_warm, fio_aio;
    std::vector<char> buffer(kSize);
    for (int round = 0; round < rounds; ++round) {
        const int fd = open(big.c_str(), O_RDONLY | O_CLOEXEC);
        const int64_t begin = monotonic_ns();
        for (const int64_t offset : offsets) {
            if (pread(fd, buffer.data(), kSize, offset) != kSize) {
                give_up("short read");
            }
        }
        bare.push_back(since_s(begin));
        close(fd);
        const ReplayResult result = run_log(log, folder / "root", Pace::afap, EngineKind::posix, kOps + 2);
        ours.push_back(static_cast<double>(result.elapsed_ns) / 1e9);
        ratio.push_back(bare.back() / ours.back());
        if (round < 3) {
            // As it comes, fio drops the file from the cache when it opens it.
            fio_plain.push_back(run_fio(folder / "pread.fio", folder, ""));
            fio_warm.push_back(run_fio(folder / "pread.fio", folder, "--invalidate=0 --ioengine=psync"));
            fio_aio.push_back(run_fio(folder / "pread.fio", folder, "--invalidate=0 --ioengine=libaio"));
        }
    }
    std::printf("pread: 1 M cached random 4 KiB preads (median of %d)\n", rounds);
    row("bare loop", median(bare), kOps, 0, "");
    row("replay --pace afap", median(ours), kOps, median(ratio), "the bare loop (at least 90 %)");
    if (median(fio_plain) <= 0 || median(fio_warm) <= 0) {
        std::printf("  SKIPPED: fio is not installed\n");
        return;
    }
    row("fio read_iolog", median(fio_plain), kOps, 0, "");
    std::printf("  replay is %.1f x that (at least 8)\n", median(fio_plain) / median(ours));
    row("fio read_iolog invalidate=0", median(fio_warm), kOps, 0, "");
    std::printf("  replay is %.1f x that\n", median(fio_warm) / median(ours));
    row("fio read_iolog, libaio", median(fio_aio), kOps, 0, "");
    std::printf("  replay is %.1f x that, with libaio\n", median(fio_aio) / median(ours));
}

void bench_open(const fs::path& folder, int rounds) {
    constexpr uint64_t kCycles = 100'000;
    constexpr int kFiles = 10'000, kFolders = 100;
    constexpr int64_t kSize = 2'000;
    std::vector<std::string> names;
    for (int i = 0; i < kFolders; ++i) {
        fs::create_directories(folder / "root/train" / ("class" + std::to_string(i)));
    }
    const std::string content(kSize, 'x');
    for (int i = 0; i < kFiles; ++i) {
        names.push_back("train/class" + std::to_string(i % kFolders) + "/image" + std::to_string(i) + ".jpg");
        std::ofstream(folder / "root" / names.back()) << content;
    }
    std::mt19937_64 random(11);
    std::vector<int> order(kCycles);
    for (int& index : order) {
        index = static_cast<int>(random() % kFiles);
    }
    LogMaker maker(folder / "open.oplog");
    const TaskId task = maker.writer.add_task({.process = maker.writer.add_process({.pid = 1})});
    std::vector<FileId> files;
    for (const std::string& name : names) {
        files.push_back(maker.file("/" + name));
    }
    constexpr int64_t kAsked = 4096;
    for (const int index : order) {
        const FileId file = files[static_cast<size_t>(index)];
        const HandleId handle = maker.handle(file);
        maker.add(task, {.kind = OpKind::open, .result = 3, .handle = handle, .file = file, .flags = O_CLOEXEC});
        maker.add(task, {.kind = OpKind::fstat, .handle = handle, .fd = 3});
        maker.add(task, {.kind = OpKind::read, .result = kSize, .handle = handle, .fd = 3, .size = kAsked});
        maker.add(task, {.kind = OpKind::close, .handle = handle, .fd = 3});
    }
    maker.writer.finish();
    const LogReader log(folder / "open.oplog");
    std::vector<double> bare, ours, ratio;
    std::vector<char> buffer(kAsked);
    const int root = open((folder / "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int round = 0; round < rounds; ++round) {
        const int64_t begin = monotonic_ns();
        for (const int index : order) {
            struct stat st;
            const int fd = openat(root, names[static_cast<size_t>(index)].c_str(), O_RDONLY | O_CLOEXEC);
            if (fd < 0 || fstat(fd, &st) != 0 || read(fd, buffer.data(), kAsked) != kSize || close(fd) != 0) {
                give_up("a call of the bare loop failed");
            }
        }
        bare.push_back(since_s(begin));
        const ReplayResult result = run_log(log, folder / "root", Pace::afap, EngineKind::posix, kCycles * 4);
        ours.push_back(static_cast<double>(result.elapsed_ns) / 1e9);
        ratio.push_back(bare.back() / ours.back());
    }
    close(root);
    std::printf("open: 100 000 x open, fstat, read, close of 10 000 small files (median of %d)\n", rounds);
    row("bare loop", median(bare), kCycles * 4, 0, "");
    row("replay --pace afap", median(ours), kCycles * 4, median(ratio), "the bare loop (at least 90 %)");
}

void bench_null(const fs::path& folder, int rounds) {
    constexpr uint64_t kOps = 10'000'000;
    LogMaker maker(folder / "null.oplog");
    const TaskId task = maker.writer.add_task({.process = maker.writer.add_process({.pid = 1})});
    const HandleId handle = maker.handle(maker.file("/data/big"));
    std::mt19937_64 random(3);
    for (uint64_t i = 0; i < kOps; ++i) {
        const uint64_t bits = random();
        maker.add(task,
                  {.kind = OpKind::pread,
                   .result = 4096,
                   .handle = handle,
                   .fd = 3,
                   .offset = static_cast<int64_t>(bits % 65'536) * 4096,
                   .size = 4096},
                  300 + static_cast<int64_t>(bits >> 56));
    }
    maker.writer.finish();
    const LogReader log(folder / "null.oplog");
    std::vector<double> wall, loop;
    for (int round = 0; round < rounds; ++round) {
        const ReplayResult result = run_log(log, {}, Pace::afap, EngineKind::null, kOps);
        wall.push_back(static_cast<double>(result.elapsed_ns) / 1e9);
        loop.push_back(result.harness_ns_per_op);
    }
    std::printf("null: the null engine over 10 M ops in one task (median of %d)\n", rounds);
    row("replay --engine null", median(wall), kOps, 0, "");
    std::printf("  %.1f ns/op in the loop alone = %.1f M ops/s per core (at least 10)\n", median(loop),
                1e3 / median(loop));
}

void bench_timed(const fs::path& folder, int rounds) {
    constexpr int kThreads = 4, kCycles = 200, kReads = 4;
    constexpr int64_t kSize = 64 << 10, kPause = 4'000'000, kCycle = 5'300'000;
    fs::create_directories(folder / "root/data");
    LogMaker maker(folder / "timed.oplog");
    const ProcessId process = maker.writer.add_process({.pid = 1});
    std::vector<TaskId> tasks;
    std::vector<FileId> files;
    for (int i = 0; i < kThreads; ++i) {
        fill(folder / "root/data" / std::to_string(i), kSize * kReads);
        tasks.push_back(maker.writer.add_task({.process = process, .tid = i + 1}));
        files.push_back(maker.file("/data/" + std::to_string(i)));
    }
    for (int i = 0; i < kThreads; ++i) {
        for (int cycle = 0; cycle < kCycles; ++cycle) {
            maker.now = cycle * kCycle + i * 150'000;
            const FileId file = files[static_cast<size_t>(i)];
            const TaskId task = tasks[static_cast<size_t>(i)];
            const HandleId handle = maker.handle(file);
            maker.add(task, {.kind = OpKind::open, .result = 3, .handle = handle, .file = file}, 10'000);
            maker.add(task, {.kind = OpKind::fstat, .handle = handle, .fd = 3}, 2'000);
            for (int k = 0; k < kReads; ++k) {
                maker.add(task,
                          {.kind = OpKind::read,
                           .result = kSize,
                           .handle = handle,
                           .fd = 3,
                           .offset = k * kSize,
                           .size = kSize},
                          300'000);
            }
            maker.add(task, {.kind = OpKind::close, .handle = handle, .fd = 3}, 5'000);
            maker.add(task, {.kind = OpKind::wait, .arg = 3}, kPause);
        }
    }
    maker.writer.finish();
    const LogReader log(folder / "timed.oplog");
    std::vector<double> error, p50, p99, greatest;
    double recorded = 0;
    for (int round = 0; round < rounds; ++round) {
        const ReplayResult result =
            run_log(log, folder / "root", Pace::timed, EngineKind::posix, kThreads * kCycles * (kReads + 4));
        recorded = static_cast<double>(result.recorded_ns);
        error.push_back(std::abs(static_cast<double>(result.elapsed_ns) / recorded - 1.0));
        p50.push_back(static_cast<double>(result.lateness.percentile(0.5)) / 1e3);
        p99.push_back(static_cast<double>(result.lateness.percentile(0.99)) / 1e3);
        greatest.push_back(static_cast<double>(result.lateness.max()) / 1e3);
    }
    std::printf("timed: 4 threads x 200 cycles, span %.3f s (median of %d)\n", recorded / 1e9, rounds);
    std::printf("  elapsed differs by %.4f %% (at most 0.5), worst %.4f %%\n", median(error) * 100,
                *std::max_element(error.begin(), error.end()) * 100);
    std::printf("  lateness p50 %.1f us, p99 %.1f us, max %.1f us\n", median(p50), median(p99), median(greatest));
}

}  // namespace

int main(int argc, char** argv) {
    int rounds = 5;
    fs::path below = fs::temp_directory_path();
    std::vector<std::string> chosen;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--rounds" && i + 1 < argc) {
            rounds = std::max(1, std::atoi(argv[++i]));
        } else if (word == "--dir" && i + 1 < argc) {
            below = argv[++i];
        } else {
            chosen.push_back(word);
        }
    }
    const std::pair<const char*, void (*)(const fs::path&, int)> all[] = {
        {"pread", bench_pread}, {"open", bench_open}, {"null", bench_null}, {"timed", bench_timed}};
    for (const auto& [name, body] : all) {
        if (chosen.empty() || std::find(chosen.begin(), chosen.end(), name) != chosen.end()) {
            const Scratch folder(below);
            body(folder.path, rounds);
            std::fflush(stdout);
        }
    }
    return 0;
}

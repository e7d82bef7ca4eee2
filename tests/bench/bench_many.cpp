// Millions of small files, each read whole in two epochs by one task (open, fstat, read, read at the end, close: ten
// ops per file):
//   prepare  beside a bare loop of open, write, close on as many threads, both synced at the end; in turn, medians
//   plan     what a replay keeps of each file beside the log, bytes of the heap
//   replay   as fast as possible: the largest process, which holds the log's tables, the plan and all results
// Usage: bench_many [--dir DIR] [--files N] [--rounds N] [--threads N] [--json FILE]. DIR ($TMPDIR by default) holds
// the files of both sides, twice 4 KiB and an inode for each of N (1,000,000 by default), removed after each round.
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "calibrate/clock.h"
#include "formats/oplog/oplog.h"
#include "replay/content/content.h"
#include "replay/prepare/cache_regime.h"
#include "replay/prepare/prepare.h"
#include "replay/run/runner.h"
#include "tests/bench/in_child.h"

namespace {

namespace fs = std::filesystem;
using namespace reprise;
using namespace reprise::bench;

constexpr size_t kPerDirectory = 1000, kSize = 4096, kOpsPerFile = 10;

double since_s(int64_t begin) { return static_cast<double>(monotonic_ns() - begin) / 1e9; }

std::string directory_of(size_t file) {
    char name[32];
    std::snprintf(name, sizeof name, "data/train/%05zu", file / kPerDirectory);
    return name;
}

std::string name_of(size_t file) {
    char name[32];
    std::snprintf(name, sizeof name, "/image_%08zu.jpeg", file);
    return directory_of(file) + name;
}

void write_log(const fs::path& path, size_t files) {
    LogWriter writer(path, {}, {.sync = false});
    const TaskId task = writer.add_task({.process = writer.add_process({.pid = 1}), .tid = 1});
    for (size_t i = 0; i < files; ++i) {
        FileRow row;
        row.path = writer.intern("/" + name_of(i));
        row.type = FileType::regular;
        row.role = Role::dataset;
        row.origin = Origin::existed;
        row.size = kSize;
        row.size_exact = true;
        writer.add_file(row);
    }
    int64_t now = 0;
    const auto add = [&](Op op) {
        op.begin = now;
        op.duration = 1000;
        now += 2000;
        writer.append(task, op);
    };
    for (const size_t step : {size_t{7919}, size_t{104729}}) {  // primes: another order in each epoch
        for (size_t i = 0; i < files; ++i) {
            const auto file = static_cast<FileId>(1 + i * step % files);
            HandleRow row;
            row.file = file;
            const HandleId handle = writer.add_handle(row);
            add({.kind = OpKind::open, .result = 3, .handle = handle, .fd = 3, .file = file});
            add({.kind = OpKind::fstat, .handle = handle, .fd = 3});
            add({.kind = OpKind::read, .result = kSize, .handle = handle, .fd = 3, .offset = 0, .size = kSize});
            add({.kind = OpKind::read, .handle = handle, .fd = 3, .offset = kSize, .size = kSize});
            add({.kind = OpKind::close, .handle = handle, .fd = 3});
        }
    }
    writer.finish();
}

void sync_all(const fs::path& root) {
    const int fd = ::open(root.c_str(), O_RDONLY);
    ::syncfs(fd);
    ::close(fd);
}

/// The whole of `reprise prepare`: reading the log, looking, writing, syncing.
double prepare_once(const fs::path& log, const fs::path& root, unsigned threads) {
    const int64_t start = monotonic_ns();
    const LogReader reader(log);
    Preparation preparation(reader, {.root = root, .log_name = log.string(), .tool = "bench", .threads = threads});
    preparation.check();
    WriteState state;
    preparation.run(state, {});
    return since_s(start);
}

/// Each thread a run of directories, so that threads do not wait for each other's; bytes made before.
double bare_once(const fs::path& root, size_t files, unsigned threads) {
    fs::create_directories(root);
    std::vector<std::byte> bytes(kSize);
    fill_random(1, 0, bytes);
    const size_t directories = (files + kPerDirectory - 1) / kPerDirectory;
    const int64_t start = monotonic_ns();
    for (size_t d = 0; d < directories; ++d) {
        fs::create_directories(root / directory_of(d * kPerDirectory));
    }
    const auto work = [&](size_t thread) {
        const size_t from = directories * thread / threads * kPerDirectory;
        const size_t to = std::min(files, directories * (thread + 1) / threads * kPerDirectory);
        for (size_t i = from; i < to; ++i) {
            const int fd = ::open((root / name_of(i)).c_str(), O_CREAT | O_EXCL | O_WRONLY, 0644);
            if (fd < 0 || ::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
                give_up("cannot write below " + root.string());
            }
            ::close(fd);
        }
    };
    std::vector<std::thread> running;
    for (size_t thread = 0; thread < threads; ++thread) {
        running.emplace_back(work, thread);
    }
    for (std::thread& thread : running) {
        thread.join();
    }
    sync_all(root);
    return since_s(start);
}

/// Bytes of the heap that the plan of a replay takes beside the log.
double plan_bytes(const fs::path& log) {
    const LogReader reader(log);
    const auto heap = [] {
        const struct mallinfo2 now = ::mallinfo2();
        return now.uordblks + now.hblkhd;
    };
    const size_t before = heap();
    const Plan plan = make_plan(reader, OpFilter{}, PathMap{}, true);
    const CacheKeeper keeper(-1, plan_cache(plan, reader), 1);
    return static_cast<double>(heap() - before);
}

double replay_once(const fs::path& log, const fs::path& root, size_t files) {
    const LogReader reader(log);
    ReplayOptions options;
    options.root = root;
    options.pace = Pace::afap;
    options.cache = CacheRequest{CacheRegime::as_is};
    const ReplayResult result = replay(reader, options);
    if (result.ended != "complete" || result.mismatches != 0 || result.ops != files * kOpsPerFile) {
        throw std::runtime_error("the replay went wrong: " + result.ended);
    }
    return static_cast<double>(result.elapsed_ns) / 1e9;
}

struct Setup {
    fs::path top;
    size_t files = 1'000'000;
    int rounds = 3;
    unsigned threads = default_prepare_threads();
};

nlohmann::json measure(const Setup& setup) {
    const fs::path log = setup.top / "many.oplog", few = setup.top / "few.oplog";
    const size_t fewer = std::max<size_t>(1, setup.files / 10);
    in_child([&] { return write_log(log, setup.files), 0.0; });
    in_child([&] { return write_log(few, fewer), 0.0; });
    std::vector<double> prepared, bare;
    Measured last, replayed;
    for (int round = 0; round < setup.rounds; ++round) {
        const fs::path ours = setup.top / "p", theirs = setup.top / "b";
        const auto our_turn = [&] {
            last = in_child([&] { return prepare_once(log, ours, setup.threads); });
            prepared.push_back(last.value);
        };
        const auto their_turn = [&] {
            bare.push_back(in_child([&] { return bare_once(theirs, setup.files, setup.threads); }).value);
        };
        round % 2 == 0 ? (our_turn(), their_turn()) : (their_turn(), our_turn());
        if (round + 1 == setup.rounds) {
            replayed = in_child([&] { return replay_once(log, ours, setup.files); });
        }
        fs::remove_all(ours);
        fs::remove_all(theirs);
    }
    const double bytes = in_child([&] { return plan_bytes(log); }).value;
    const double of_few = in_child([&] { return plan_bytes(few); }).value;
    return {{"files", setup.files},
            {"ops", setup.files * kOpsPerFile},
            {"threads", setup.threads},
            {"prepare_s", median(prepared)},
            {"bare_s", median(bare)},
            {"prepare_peak_mib", last.peak_mib},
            {"plan_bytes_per_file", (bytes - of_few) / static_cast<double>(setup.files - fewer)},
            {"plan_bytes", bytes},
            {"replay_s", replayed.value},
            {"replay_peak_mib", replayed.peak_mib}};
}

}  // namespace

int main(int argc, char** argv) {
    const char* const tmp = std::getenv("TMPDIR");
    std::string directory = tmp != nullptr ? tmp : "/tmp", json;
    Setup setup;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string word = argv[i], value = argv[i + 1];
        if (word == "--dir") {
            directory = value;
        } else if (word == "--files") {
            setup.files = std::max<size_t>(10, std::strtoull(value.c_str(), nullptr, 10));
        } else if (word == "--rounds") {
            setup.rounds = std::max(1, std::atoi(value.c_str()));
        } else if (word == "--threads") {
            setup.threads = static_cast<unsigned>(std::max(1, std::atoi(value.c_str())));
        } else if (word == "--json") {
            json = value;
        } else {
            give_up("unknown option " + word);
        }
    }
    directory += "/reprise-bench-XXXXXX";
    if (::mkdtemp(directory.data()) == nullptr) {
        give_up("cannot make " + directory);
    }
    setup.top = directory;
    const nlohmann::json found = measure(setup);
    fs::remove_all(setup.top);
    const auto number = [&](const char* key) { return found[key].get<double>(); };
    std::printf("%zu files of 4 KiB, %u threads, %d rounds\n", setup.files, setup.threads, setup.rounds);
    std::printf("  prepare    %8.2f s, bare loop %8.2f s: %.1f %% of its speed; largest process %.0f MiB\n",
                number("prepare_s"), number("bare_s"), 100 * number("bare_s") / number("prepare_s"),
                number("prepare_peak_mib"));
    std::printf("  plan       %.0f bytes per file\n", number("plan_bytes_per_file"));
    std::printf("  replay     %8.2f s, %.0f ops; largest process %.0f MiB\n", number("replay_s"), number("ops"),
                number("replay_peak_mib"));
    if (!json.empty()) {
        std::ofstream(json) << found.dump(1) << "\n";
    }
    return 0;
}

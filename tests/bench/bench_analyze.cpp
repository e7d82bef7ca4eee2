// SPDX-License-Identifier: MIT
// `reprise analyze` of a long log on one core: time and memory, page included, and each prediction apart.
// Usage: bench_analyze [--dir DIR] [--ops N] [--reprise BINARY] [--page FILE]. FILE gets the page. The log (default: 10
// M ops of 8 loaders and a trainer with an accelerator, over 300,000 files) and the page are made below DIR (default:
// $TMPDIR or /tmp) and removed.
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "formats/oplog/oplog.h"

namespace {

using namespace reprise;
namespace fs = std::filesystem;

constexpr size_t kLoaders = 8, kFiles = 300'000, kBatch = 32;
constexpr int64_t kUs = 1000;

/// Loaders read shuffled samples and send a message for each batch; the trainer receives it and works on it.
class Job {
public:
    explicit Job(const fs::path& path) : log_(path, header(), {.level = 1, .sync = false}) {
        trainer_ = log_.add_task({.process = log_.add_process({.pid = 1}), .tid = 1});
        for (size_t i = 0; i < kLoaders; ++i) {
            const ProcessId process = log_.add_process({.pid = static_cast<int>(i + 2), .parent = 1});
            loaders_.push_back({log_.add_task({.process = process, .tid = static_cast<int>(i + 2)})});
        }
        for (size_t i = 0; i < kFiles; ++i) {
            FileRow row;
            row.path = log_.intern("/data/train/" + std::to_string(i / 1000) + "/img_" + std::to_string(i) + ".jpg");
            row.size = 110'000;
            row.type = FileType::regular;
            row.role = Role::dataset;
            row.origin = Origin::existed;
            log_.add_file(row);
        }
        pipe_ = log_.add_handle({.kind = HandleKind::pipe});
    }

    void write(uint64_t ops) {
        for (uint64_t batch = 0; made_ < ops; ++batch) {
            Loader& loader = loaders_[batch % kLoaders];
            for (size_t i = 0; i < kBatch; ++i) {
                sample(loader);
            }
            Op sent = op(OpKind::send, loader.now, 5 * kUs, 64);
            sent.handle = pipe_;
            sent.size = 64;
            sent.offset = static_cast<int64_t>(batch) * 64;
            const Edge edge{loader.task, EdgeKind::message, 100, append(loader.task, sent)};
            step(loader.now, edge, sent.offset);
        }
        log_.finish();
    }

private:
    struct Loader {
        TaskId task;
        int64_t now = 0;
    };
    static Header header() {
        Header out;
        out.source = "capture";
        out.clock = "monotonic";
        out.extra["capture.cpus"] = "16";
        return out;
    }
    static Op op(OpKind kind, int64_t& now, int64_t duration, int64_t result) {
        Op out;
        out.kind = kind;
        out.begin = now;
        out.duration = duration;
        out.result = result;
        now += duration;
        return out;
    }
    uint64_t append(TaskId task, const Op& op) {
        ++made_;
        return log_.append(task, op);
    }
    void sample(Loader& loader) {
        const uint64_t bits = random_();
        const auto file = static_cast<FileId>(1 + bits % kFiles);
        const HandleId handle = log_.add_handle({.file = file, .flags = O_RDONLY});
        const auto noise = [&](int shift) { return static_cast<int64_t>(bits >> shift & 4095); };
        Op open = op(OpKind::open, loader.now, 8 * kUs + noise(8), 5);
        open.file = file;
        open.handle = handle;
        append(loader.task, open);
        Op stat = op(OpKind::fstat, loader.now, kUs + noise(12), 0);
        stat.handle = handle;
        stat.fd = 5;
        append(loader.task, stat);
        for (int64_t at = 0; at < 2; ++at) {
            Op read = op(OpKind::read, loader.now, 40 * kUs + noise(20) * (at == 0 ? 20 : 1), at == 0 ? 110'000 : 0);
            read.handle = handle;
            read.fd = 5;
            read.offset = at * 110'000;
            read.size = 110'000;
            append(loader.task, read);
        }
        Op close = op(OpKind::close, loader.now, kUs, 0);
        close.handle = handle;
        close.fd = 5;
        append(loader.task, close);
        append(loader.task, op(OpKind::compute, loader.now, 900 * kUs + noise(30) * 10, 0));
    }
    void step(int64_t sent, const Edge& edge, int64_t offset) {
        Op received = op(OpKind::receive, now_, std::max<int64_t>(sent - now_, kUs), 64);
        received.handle = pipe_;
        received.size = 64;
        received.offset = offset;
        received.edges = {&edge, 1};
        append(trainer_, received);
        Op work = op(OpKind::gpu_submit, now_, 20 * kUs, 0);
        work.size = 3000 * kUs;
        append(trainer_, work);
        append(trainer_, op(OpKind::gpu_wait, now_, 3000 * kUs, 0));
    }

    LogWriter log_;
    TaskId trainer_ = 0;
    std::vector<Loader> loaders_;
    HandleId pipe_ = 0;
    int64_t now_ = 0;
    uint64_t made_ = 0;
    std::mt19937_64 random_{1};
};

struct Took {
    double seconds = 0, cpu = 0, mib = 0;
};

/// On one core.
Took run(const std::vector<std::string>& command) {
    const auto start = std::chrono::steady_clock::now();
    const pid_t child = ::fork();
    if (child == 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(::sched_getcpu(), &one);
        ::sched_setaffinity(0, sizeof one, &one);
        std::vector<char*> words;
        for (const std::string& word : command) {
            words.push_back(const_cast<char*>(word.c_str()));
        }
        words.push_back(nullptr);
        const int nothing = ::open("/dev/null", O_WRONLY);
        ::dup2(nothing, STDOUT_FILENO);
        ::execv(words[0], words.data());
        ::_exit(127);
    }
    int status = 0;
    rusage usage{};
    ::wait4(child, &status, 0, &usage);
    if (status != 0) {
        std::fprintf(stderr, "bench_analyze: %s failed\n", command[0].c_str());
        std::exit(1);
    }
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
            seconds(usage.ru_utime) + seconds(usage.ru_stime), static_cast<double>(usage.ru_maxrss) / 1024};
}

nlohmann::json json_of(const fs::path& path) {
    std::ifstream in(path);
    return nlohmann::json::parse(in);
}

}  // namespace

int main(int argc, char** argv) {
    uint64_t ops = 10'000'000;
    fs::path page, dir = fs::temp_directory_path(), reprise = fs::path(argv[0]).parent_path().parent_path() / "reprise";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--ops") == 0) {
            ops = std::stoull(argv[i + 1]);
        } else if (std::strcmp(argv[i], "--dir") == 0) {
            dir = argv[i + 1];
        } else if (std::strcmp(argv[i], "--page") == 0) {
            page = argv[i + 1];
        } else if (std::strcmp(argv[i], "--reprise") == 0) {
            reprise = argv[i + 1];
        }
    }
    std::string name = (dir / "reprise-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
        std::perror(name.c_str());
        return 1;
    }
    const fs::path top = name;
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    Job(top / "long.oplog").write(ops);
    const Took took = run({reprise, "analyze", top / "long.oplog", "--no-what-if", "--html", top / "a.html"});
    std::printf("analyze %.1f M ops: %.2f s on one core, %.2f s of its time, %.0f MiB, page %.2f MB\n",
                static_cast<double>(ops) / 1e6, took.seconds, took.cpu, took.mib,
                static_cast<double>(fs::file_size(top / "a.html")) / 1e6);
    if (!page.empty()) {
        fs::copy_file(top / "a.html", page, fs::copy_options::overwrite_existing);
    }
    const Took whole = run({reprise, "analyze", top / "long.oplog", "--json=" + (top / "a.json").string()});
    const nlohmann::json bounds = json_of(top / "a.json")["logs"][0]["bounds"];
    std::printf("planning: %.2f s\n", bounds["planning_took_s"].get<double>());
    for (const char* what :
         {"modelled", "infinitely_fast_storage", "infinitely_fast_processor", "infinitely_fast_accelerator"}) {
        std::printf("%s: %.2f s\n", what, bounds[what]["took_s"].get<double>());
    }
    std::printf("with predictions: %.2f s, %.0f MiB\n", whole.seconds, whole.mib);
    fs::remove_all(top);
    return 0;
}

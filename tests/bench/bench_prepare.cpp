// Preparation beside what it must keep up with, two sides in one run, interleaved, medians:
//   content   generating random content, one core
//   large     one large file beside dd and fio (buffered and direct) writing as many bytes, all synced at the end
//   samples   many files of 110 KiB beside a bare loop of open, write, close
//   empty     many empty files beside a bare loop of open(O_CREAT), close: in 100 directories, and in one
//   scattered a tenth of them of 6 KB and named in the log, in one directory and in the order of their inodes
// Usage: bench_prepare [--dir DIR] [--large-mib N] [--samples N] [--empty N] [--rounds N] [--threads N]
// [content|large|samples|empty|scattered]... Everything is made below DIR (default: $TMPDIR or /tmp); small files are
// removed at the end, not between rounds: for a minute ext4 searches long where inodes were freed.
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "formats/oplog/header_facts.h"
#include "formats/oplog/oplog.h"
#include "formats/support/error.h"
#include "replay/content/content.h"
#include "replay/prepare/prepare.h"

namespace {

using namespace reprise;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

fs::path top;
int rounds = 5;
unsigned threads = 0;  // 0: as prepare chooses

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

struct Spec {
    size_t files = 1, directories = 1;
    uint64_t size = 0;
    size_t gap = 1;  // the log names one of so many; the others are empty
};

std::string name_of(const Spec& spec, size_t file) {
    char name[64];
    std::snprintf(name, sizeof name, "d%04zu/f%07zu", file * spec.directories / spec.files, file);
    return name;
}

fs::path write_log(const Spec& spec) {
    const fs::path path = top / "log";
    Header header;
    header.extra.emplace(std::string(fact::file_systems.key), R"({"8:1": "ext4"})");
    LogWriter writer(path, header, {.sync = false});
    writer.add_task({.process = writer.add_process({}), .tid = 1});
    for (size_t i = 0; i < spec.files; i += spec.gap) {
        FileRow row;
        row.device = 0x801;
        row.inode = 1000 + i;
        row.path = writer.intern("/" + name_of(spec, i));
        row.type = FileType::regular;
        row.role = Role::dataset;
        row.origin = Origin::existed;
        row.size = spec.size;
        row.size_exact = true;
        writer.add_file(row);
    }
    writer.finish();
    return path;
}

/// The whole of `reprise prepare`: reading the log, looking, writing, syncing.
double prepare_once(const fs::path& log, const fs::path& root, unsigned threads) {
    const auto start = Clock::now();
    const LogReader reader(log);
    Preparation preparation(reader, {.root = root, .log_name = log.string(), .tool = "bench", .threads = threads});
    preparation.check();
    WriteState state;
    preparation.run(state, {});
    return seconds_since(start);
}

/// A bare loop of the same files; with a sync at the end, as preparation has one.
double bare_once(const Spec& spec, const fs::path& root) {
    fs::create_directories(root);
    for (size_t d = 0; d < spec.directories; ++d) {
        char name[32];
        std::snprintf(name, sizeof name, "d%04zu", d);
        fs::create_directory(root / name);
    }
    std::vector<std::string> names;
    for (size_t i = 0; i < spec.files; ++i) {
        names.push_back((root / name_of(spec, i)).string());
    }
    std::vector<std::byte> bytes(spec.size);
    fill_random(1, 0, bytes);
    const auto start = Clock::now();
    for (size_t i = 0; i < names.size(); ++i) {
        const int fd = ::open(names[i].c_str(), O_CREAT | O_WRONLY, 0644);
        if (spec.size > 0 && i % spec.gap == 0 && ::write(fd, bytes.data(), bytes.size()) < 0) {
            std::abort();
        }
        ::close(fd);
    }
    const int fd = ::open(root.c_str(), O_RDONLY);
    ::syncfs(fd);
    ::close(fd);
    return seconds_since(start);
}

double shell(const std::string& command) {
    const auto start = Clock::now();
    if (std::system((command + " >/dev/null 2>&1").c_str()) != 0) {
        return 0;
    }
    return seconds_since(start);
}

/// Processor time of this process and of the children it waited for, seconds. Tells more than elapsed time where the
/// machine is busy with other things.
double cpu_seconds() {
    double sum = 0;
    for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage usage{};
        ::getrusage(who, &usage);
        for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
            sum += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
        }
    }
    return sum;
}

struct Side {
    const char* name;
    std::function<double(int)> once;  // round -> seconds; 0: could not run
    std::vector<double> seconds = {}, cpu = {};
};

/// Runs the sides in turn, prints amount/seconds of each and the ratio of the first to the others.
void compare(const char* title, double amount, const char* unit, std::vector<Side> sides) {
    for (int round = 0; round < rounds; ++round) {
        for (Side& side : sides) {
            const double before = cpu_seconds();
            side.seconds.push_back(side.once(round));
            side.cpu.push_back(cpu_seconds() - before);
        }
    }
    const double first = median(sides[0].seconds);
    std::printf("%s\n", title);
    for (const Side& side : sides) {
        const double seconds = median(side.seconds);
        if (seconds == 0) {
            std::printf("  %-34s could not run\n", side.name);
            continue;
        }
        std::printf("  %-34s %10.3f s %12.1f %s %8.3f s cpu", side.name, seconds, amount / seconds, unit,
                    median(side.cpu));
        if (&side != &sides[0]) {
            std::printf("   prepare is %.2f x as fast", seconds / first);
        }
        std::printf("\n");
    }
    std::fflush(stdout);
}

fs::path fresh(const char* side, int round) { return top / (std::string(side) + std::to_string(round)); }

void bench_content() {
    std::vector<std::byte> memory(size_t{1} << 20);
    std::vector<double> seconds;
    for (int round = 0; round < rounds; ++round) {
        const auto start = Clock::now();
        for (uint64_t i = 0; i < 4096; ++i) {
            fill_random(1, i << 20, memory);
        }
        seconds.push_back(seconds_since(start));
    }
    std::printf("random content, one core\n  %-34s %10.3f s %12.1f MiB/s\n", "fill_random", median(seconds),
                4096 / median(seconds));
}

void bench_large(uint64_t mib) {
    const Spec spec{.files = 1, .directories = 1, .size = mib << 20};
    const fs::path log = write_log(spec);
    const std::string size = std::to_string(mib) + "M";
    const auto file = [](const char* side) { return (top / side).string(); };
    // Removed at once, outside the timing: several of these would fill the disk.
    const auto timed = [](const std::string& command, const std::string& made) {
        const double seconds = shell(command);
        fs::remove_all(made);
        return seconds;
    };
    const auto dd = [&](const char* flags, const char* name) {
        return timed(
            "dd if=/dev/zero of=" + file(name) + " bs=4M count=" + std::to_string(mib / 4) + " conv=fsync " + flags,
            file(name));
    };
    const auto fio = [&](const char* flags, const char* name) {
        return timed(
            "fio --name=w --filename=" + file(name) + " --rw=write --bs=4M --end_fsync=1 --size=" + size + " " + flags,
            file(name));
    };
    compare(("one file of " + std::to_string(mib) + " MiB").c_str(), static_cast<double>(mib), "MiB/s",
            {{"prepare",
              [&](int round) {
                  const double seconds = prepare_once(log, fresh("p", round), threads);
                  fs::remove_all(fresh("p", round));
                  return seconds;
              }},
             {"dd bs=4M conv=fsync", [&](int) { return dd("", "dd"); }},
             {"dd bs=4M oflag=direct conv=fsync", [&](int) { return dd("oflag=direct", "ddd"); }},
             {"fio psync bs=4M end_fsync", [&](int) { return fio("--ioengine=psync", "fio"); }},
             {"fio libaio direct iodepth=8",
              [&](int) { return fio("--ioengine=libaio --direct=1 --iodepth=8", "fiod"); }}});
}

void bench_files(const char* title, const Spec& spec, double amount, const char* unit) {
    const fs::path log = write_log(spec);
    compare(title, amount, unit,
            {{"prepare", [&](int round) { return prepare_once(log, fresh("p", round), threads); }},
             {"bare loop", [&](int round) { return bare_once(spec, fresh("b", round)); }}});
    fs::create_directories(top / title);
    for (const auto& item : fs::directory_iterator(top)) {
        if (item.path().filename().string().find(' ') == std::string::npos) {
            fs::rename(item, top / title / item.path().filename());
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    uint64_t large_mib = 4096;
    size_t samples = 10000, empty = 1000000;
    const char* const tmp = std::getenv("TMPDIR");
    std::string directory = tmp != nullptr ? tmp : "/tmp";
    std::vector<std::string> which;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word.starts_with("--") && i + 1 < argc) {
            const char* const value = argv[++i];
            if (word == "--dir") {
                directory = value;
            }
            if (word == "--large-mib") {
                large_mib = std::strtoull(value, nullptr, 10);
            }
            if (word == "--samples") {
                samples = std::strtoull(value, nullptr, 10);
            }
            if (word == "--empty") {
                empty = std::strtoull(value, nullptr, 10);
            }
            if (word == "--threads") {
                threads = static_cast<unsigned>(std::atoi(value));
            }
            if (word == "--rounds") {
                rounds = std::max(1, std::atoi(value));
            }
        } else {
            which.push_back(word);
        }
    }
    if (which.empty()) {
        which = {"content", "large", "samples", "empty", "scattered"};
    }
    std::string name = directory + "/reprise-bench-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
        std::perror(name.c_str());
        return 4;
    }
    top = name;
    int code = 0;
    try {
        for (const std::string& one : which) {
            if (one == "content") {
                bench_content();
            }
            if (one == "large") {
                bench_large(large_mib);
            }
            if (one == "samples") {
                bench_files(("files of 110 KiB: " + std::to_string(samples)).c_str(),
                            {.files = samples, .directories = 10, .size = 112640},
                            static_cast<double>(samples) * 112640 / 1048576, "MiB/s");
            }
            if (one == "empty") {
                bench_files(("empty files in 100 directories: " + std::to_string(empty)).c_str(),
                            {.files = empty, .directories = 100, .size = 0}, static_cast<double>(empty), "files/s");
                bench_files(("empty files in one directory: " + std::to_string(empty)).c_str(),
                            {.files = empty, .directories = 1, .size = 0}, static_cast<double>(empty), "files/s");
            }
            if (one == "scattered") {
                bench_files(("files of 6 KB among ten times as many: " + std::to_string(empty)).c_str(),
                            {.files = empty, .directories = 1, .size = 6000, .gap = 10}, static_cast<double>(empty),
                            "files/s");
            }
        }
    } catch (const Error& error) {
        std::fprintf(stderr, "bench_prepare: %s\n", error.what());
        code = static_cast<int>(error.code());
    }
    fs::remove_all(top);
    return code;
}

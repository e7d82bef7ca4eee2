// SPDX-License-Identifier: MIT
// capture_load MODE [N] [FILE]: jobs that are hard on a recorder (tests/cli/capture.sh, tests/bench/bench_capture.py).
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

int open_file(const char* path, int flags) {
    const int fd = ::open(path, flags | O_CLOEXEC, 0644);
    if (fd < 0) {
        std::perror(path);
        std::exit(9);
    }
    return fd;
}

// N processes, at most some at a time; each opens the file.
int processes(long n, const char* file) {
    long running = 0;
    for (long i = 0; i < n; ++i) {
        if (running == 8) {
            ::wait(nullptr);
            --running;
        }
        const pid_t child = ::fork();
        if (child == 0) {
            ::close(open_file(file, O_RDONLY));
            ::_exit(0);
        }
        if (child < 0) {
            return 9;
        }
        ++running;
    }
    while (::wait(nullptr) > 0) {
    }
    return 0;
}

// N threads at the same time; each reads once at its own offset.
int threads(long n, const char* file) {
    const int fd = open_file(file, O_RDONLY);
    std::vector<std::thread> all;
    for (long i = 0; i < n; ++i) {
        all.emplace_back([fd, i] {
            char byte = 0;
            if (::pread(fd, &byte, 1, i) != 1) {
                std::exit(9);
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        });
    }
    for (auto& thread : all) {
        thread.join();
    }
    return 0;
}

// Paths of 4095 bytes, which the kernel takes, and of 4096, which it refuses.
int long_path() {
    for (const size_t length : {4095U, 4096U}) {
        std::string path;
        while (path.size() < length) {
            path += "/.";
        }
        path.resize(length - 1);
        path += length % 2 ? "." : "/";
        const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if ((fd >= 0) != (length < 4096)) {
            return 9;
        }
    }
    return 0;
}

// Into the background as daemons go: two forks and a session of its own. It writes N lines, one every 20 ms.
int daemon_writes(long n, const char* file) {
    if (::fork() != 0) {
        return 0;
    }
    ::setsid();
    if (::fork() != 0) {
        ::_exit(0);
    }
    const int fd = open_file(file, O_WRONLY | O_CREAT | O_APPEND);
    for (long i = 0; i < n; ++i) {
        if (::write(fd, "daemon\n", 7) != 7) {
            ::_exit(9);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return 0;
}

// As fast as it goes. Prints nanoseconds per call.
int flat_out(long n, const char* file) {
    const int fd = open_file(file, O_RDONLY);
    std::vector<char> page(4096);
    const auto begin = Clock::now();
    for (long i = 0; i < n; ++i) {
        if (::pread(fd, page.data(), page.size(), 0) < 0) {
            return 9;
        }
    }
    std::printf("%.1f\n", std::chrono::duration<double, std::nano>(Clock::now() - begin).count() /
                              static_cast<double>(std::max(n, 1L)));
    return 0;
}

double processor_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double median(std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

// What one round costs, in nanoseconds of this thread's processor time and of the clock: medians over batches of 500,
// so that neither interrupts nor other tasks count. A round is a cached 4 KiB pread, or open, read and close.
int cost(long n, const char* file, bool cycle) {
    const int fd = open_file(file, O_RDONLY);
    std::vector<char> page(4096);
    constexpr long kBatch = 500;
    std::vector<double> processor, wall;
    for (long batch = 0; batch < n / kBatch; ++batch) {
        const double cpu = processor_ns();
        const auto begin = Clock::now();
        for (long i = 0; i < kBatch; ++i) {
            if (cycle) {
                const int one = ::open(file, O_RDONLY);
                if (one < 0 || ::read(one, page.data(), page.size()) < 0) {
                    return 9;
                }
                ::close(one);
            } else if (::pread(fd, page.data(), page.size(), (i & 15) * 4096) < 0) {
                return 9;
            }
        }
        wall.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kBatch);
        processor.push_back((processor_ns() - cpu) / kBatch);
    }
    if (wall.empty()) {
        return 2;
    }
    std::printf("%.1f %.1f\n", median(processor), median(wall));
    return 0;
}

int crash() { std::abort(); }

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    const long n = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 1;
    const char* file = argc > 3 ? argv[3] : "/dev/null";
    if (mode == "processes") {
        return processes(n, file);
    }
    if (mode == "threads") {
        return threads(n, file);
    }
    if (mode == "long_path") {
        return long_path();
    }
    if (mode == "daemon") {
        return daemon_writes(n, file);
    }
    if (mode == "flat_out") {
        return flat_out(n, file);
    }
    if (mode == "pread" || mode == "cycle") {
        return cost(n, file, mode == "cycle");
    }
    if (mode == "crash") {
        return crash();
    }
    std::fprintf(stderr, "capture_load processes|threads|long_path|daemon|flat_out|pread|cycle|crash [N] [FILE]\n");
    return 2;
}

// SPDX-License-Identifier: MIT
// known_events MODE N FILE: N events of one kind, nothing between them that is not known: how much of what a log says
// of them is the recorder's? Prints "span SECONDS busy 0 cpu SECONDS", by the clock and of processor time, and marks
// that span.
//   pages      new anonymous pages touched, 64 at a time
//   faults     a mapped file touched every 64 KiB
//   shm        new pages of a memory file mapped and touched, 64 at a time
//   preads     4 KiB of a file in memory, 1 us of computing between them
//   pingpong   two threads on one processor hand a byte to each other by pipes, 1 us of computing in each
//   futexes    the same by two futexes
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>

#include "reprise_marker.h"

namespace {

constexpr size_t kPage = 4096, kAround = 65536;
constexpr int kAtATime = 64;
volatile uint64_t sink = 0;

void check(bool good, const char* what) {
    if (!good) {
        std::perror(what);
        std::_Exit(1);
    }
}

void compute() {  // about 1 us
    uint64_t x = sink + 1;
    for (int i = 0; i < 400; ++i) {
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    }
    sink = x;
}

volatile char* map(size_t bytes, int fd, int protection, int flags) {
    void* memory = ::mmap(nullptr, bytes, protection, flags, fd, 0);
    check(memory != MAP_FAILED, "mmap");
    return static_cast<volatile char*>(memory);
}

void pages(long n) {
    volatile char* memory = map(kAtATime * kPage, -1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    ::madvise(const_cast<char*>(memory), kAtATime * kPage, MADV_NOHUGEPAGE);
    for (long done = 0; done < n; done += kAtATime) {
        for (int i = 0; i < kAtATime; ++i) {
            memory[static_cast<size_t>(i) * kPage] = 1;
        }
        ::madvise(const_cast<char*>(memory), kAtATime * kPage, MADV_DONTNEED);
    }
}

void faults(long n, const char* file) {
    const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
    struct stat found {};
    check(fd >= 0 && ::fstat(fd, &found) == 0, file);
    const size_t bytes = static_cast<size_t>(found.st_size) / kAround * kAround;
    volatile char* memory = map(bytes, fd, PROT_READ, MAP_SHARED);
    ::madvise(const_cast<char*>(memory), bytes, MADV_NOHUGEPAGE);
    for (long done = 0; done < n;) {
        for (size_t at = 0; at < bytes && done < n; at += kAround, ++done) {
            sink = sink + static_cast<uint64_t>(memory[at]);
        }
        ::madvise(const_cast<char*>(memory), bytes, MADV_DONTNEED);
    }
}

void shm(long n) {
    const int fd = ::memfd_create("known-events", MFD_CLOEXEC);
    check(fd >= 0, "memfd_create");
    for (long done = 0; done < n; done += kAtATime) {
        check(::ftruncate(fd, kAtATime * kPage) == 0, "ftruncate");
        volatile char* memory = map(kAtATime * kPage, fd, PROT_READ | PROT_WRITE, MAP_SHARED);
        for (int i = 0; i < kAtATime; ++i) {
            memory[static_cast<size_t>(i) * kPage] = 1;
        }
        ::munmap(const_cast<char*>(memory), kAtATime * kPage);
        check(::ftruncate(fd, 0) == 0, "ftruncate");
    }
}

void preads(long n, const char* file) {
    const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
    std::array<char, kPage> page{};
    for (long i = 0; i < n; ++i) {
        check(::pread(fd, page.data(), page.size(), (i & 15) * off_t{kPage}) > 0, file);
        compute();
    }
}

void pingpong(long n) {
    int there[2], back[2];
    check(::pipe(there) == 0 && ::pipe(back) == 0, "pipe");
    std::thread other([&] {
        char byte = 0;
        for (long i = 0; i < n && ::read(there[0], &byte, 1) == 1; ++i) {
            compute();
            check(::write(back[1], &byte, 1) == 1, "write");
        }
    });
    char byte = 0;
    for (long i = 0; i < n; ++i) {
        compute();
        check(::write(there[1], &byte, 1) == 1 && ::read(back[0], &byte, 1) == 1, "ping");
    }
    other.join();
}

void wait_for(std::atomic<uint32_t>& word, uint32_t value) {
    while (word.load() != value) {
        ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value - 1, nullptr, nullptr, 0);
    }
}
void post(std::atomic<uint32_t>& word) {
    ++word;
    ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void futexes(long n) {
    std::atomic<uint32_t> there = 0, back = 0;
    std::thread other([&] {
        for (uint32_t i = 1; i <= n; ++i) {
            wait_for(there, i);
            compute();
            post(back);
        }
    });
    for (uint32_t i = 1; i <= n; ++i) {
        compute();
        post(there);
        wait_for(back, i);
    }
    other.join();
}

double processor_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void one_processor() {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<unsigned>(std::max(::sched_getcpu(), 0)), &here);
    check(::sched_setaffinity(0, sizeof here, &here) == 0, "sched_setaffinity");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        return 2;
    }
    const std::string mode = argv[1];
    const long n = std::strtol(argv[2], nullptr, 10);
    one_processor();
    reprise_begin("span", 0);
    const auto begin = std::chrono::steady_clock::now();
    const double used = processor_seconds();
    if (mode == "pages") {
        pages(n);
    } else if (mode == "faults") {
        faults(n, argv[3]);
    } else if (mode == "shm") {
        shm(n);
    } else if (mode == "preads") {
        preads(n, argv[3]);
    } else if (mode == "pingpong") {
        pingpong(n);
    } else if (mode == "futexes") {
        futexes(n);
    } else {
        return 2;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const double cpu = processor_seconds() - used;
    reprise_end("span", 0);
    std::printf("span %.6f busy 0 cpu %.6f\n", took.count(), cpu);
    return 0;
}

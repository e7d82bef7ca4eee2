// SPDX-License-Identifier: MIT
// shm_loader FOLDER BATCHES: two worker processes read the folder's files into shared memory, 16 MiB a batch, and send
// its name through a pipe; the parent maps each batch, sums it up and drops it. Prints "span SECONDS busy 0".
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {

constexpr size_t kBatch = size_t{16} << 20;
constexpr int kWorkers = 2;

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    std::_Exit(1);
}

std::string batch_name(int number) {
    return "/reprise_batch_" + std::to_string(::getppid()) + "_" + std::to_string(number);
}

// Fills one batch from the files, one after the other, from `at` on.
void fill(char* to, const std::vector<std::string>& files, size_t& at) {
    size_t done = 0;
    while (done < kBatch) {
        const int fd = ::open(files[at++ % files.size()].c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            fail("open");
        }
        ssize_t n = 0;
        while (done < kBatch && (n = ::read(fd, to + done, std::min<size_t>(kBatch - done, 1 << 20))) > 0) {
            done += static_cast<size_t>(n);
        }
        ::close(fd);
    }
}

[[noreturn]] void work(int worker, int batches, const std::vector<std::string>& files, int results) {
    size_t at = files.size() * static_cast<size_t>(worker) / kWorkers;
    for (int number = worker; number < batches; number += kWorkers) {
        const int fd = ::shm_open(batch_name(number).c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd < 0 || ::ftruncate(fd, kBatch) != 0) {
            fail("shm_open");
        }
        void* memory = ::mmap(nullptr, kBatch, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED) {
            fail("mmap");
        }
        fill(static_cast<char*>(memory), files, at);
        ::munmap(memory, kBatch);
        ::close(fd);
        if (::write(results, &number, sizeof number) != sizeof number) {
            fail("write");
        }
    }
    std::_Exit(0);
}

uint64_t consume(int number) {
    const std::string name = "/reprise_batch_" + std::to_string(::getpid()) + "_" + std::to_string(number);
    const int fd = ::shm_open(name.c_str(), O_RDWR, 0);
    void* memory = fd < 0 ? MAP_FAILED : ::mmap(nullptr, kBatch, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        fail("mmap");
    }
    const auto* words = static_cast<const uint64_t*>(memory);
    uint64_t sum = 0;
    for (int pass = 0; pass < 4; ++pass) {
        for (size_t i = 0; i < kBatch / sizeof *words; ++i) {
            sum = sum * 31 + words[i];
        }
    }
    ::munmap(memory, kBatch);
    ::close(fd);
    ::shm_unlink(name.c_str());
    return sum;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        return 2;
    }
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
        files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    const int batches = std::atoi(argv[2]);
    int results[2];
    if (files.empty() || ::pipe(results) != 0) {
        return 2;
    }
    const auto begin = std::chrono::steady_clock::now();
    for (int worker = 0; worker < kWorkers; ++worker) {
        const pid_t child = ::fork();
        if (child < 0) {
            fail("fork");
        }
        if (child == 0) {
            work(worker, batches, files, results[1]);
        }
    }
    ::close(results[1]);
    uint64_t sum = 0;
    int number = 0;
    for (int seen = 0; seen < batches && ::read(results[0], &number, sizeof number) == sizeof number; ++seen) {
        sum ^= consume(number);
    }
    while (::wait(nullptr) > 0) {
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("span %.6f busy 0 sum %llu\n", took.count(), static_cast<unsigned long long>(sum));
    return 0;
}

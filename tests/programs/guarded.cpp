// SPDX-License-Identifier: MIT
// guarded FILE THREADS READS: threads that read 512 KiB at a time, one at a time under a mutex, and compute a little
// between.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
    const int file = argc == 4 ? ::open(argv[1], O_RDONLY) : -1;
    if (file < 0) {
        return 2;
    }
    std::mutex lock;
    const auto read = [&](int first) {
        std::vector<char> page(524288);
        for (int i = 0; i < std::atoi(argv[3]); ++i) {
            {
                const std::lock_guard guard(lock);
                if (::pread(file, page.data(), page.size(), off_t{first + i} * 524288) < 0) {
                    std::abort();
                }
            }
            const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(5);
            while (std::chrono::steady_clock::now() < until) {
            }
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < std::atoi(argv[2]); ++i) {
        threads.emplace_back(read, i * std::atoi(argv[3]));
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    return 0;
}

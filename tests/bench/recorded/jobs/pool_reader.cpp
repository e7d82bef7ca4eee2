// SPDX-License-Identifier: MIT
// pool_reader FOLDER THREADS PASSES: a pool of threads takes blocks of the folder's files from a queue, reads each into
// memory of its own and adds it up; the main thread fills the queue, which is bounded, and collects the results.
// Prints "span SECONDS busy 0".
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kBlock = size_t{256} << 10;
constexpr size_t kMostQueued = 16;

struct Block {
    const std::string* file = nullptr;
    uint64_t offset = 0;
};

class Pool {
public:
    void put(Block block) {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [this] { return queue_.size() < kMostQueued; });
        queue_.push_back(block);
        work_.notify_one();
    }
    void end() {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        work_.notify_all();
    }
    void run() {
        while (true) {
            std::unique_lock lock(mutex_);
            work_.wait(lock, [this] { return ended_ || !queue_.empty(); });
            if (queue_.empty()) {
                return;
            }
            const Block block = queue_.front();
            queue_.pop_front();
            lock.unlock();
            room_.notify_one();
            const uint64_t sum = read(block);
            lock.lock();
            sum_ ^= sum;
        }
    }
    uint64_t sum() const { return sum_; }

private:
    static uint64_t read(const Block& block) {
        const int fd = ::open(block.file->c_str(), O_RDONLY | O_CLOEXEC);
        std::vector<uint64_t> memory(kBlock / sizeof(uint64_t));
        const ssize_t n = ::pread(fd, memory.data(), kBlock, static_cast<off_t>(block.offset));
        ::close(fd);
        if (fd < 0 || n < 0) {
            std::perror("pool_reader");
            std::_Exit(1);
        }
        uint64_t sum = 0;
        for (int pass = 0; pass < 4; ++pass) {
            for (const uint64_t word : memory) {
                sum = sum * 31 + word;
            }
        }
        return sum;
    }

    std::mutex mutex_;
    std::condition_variable work_, room_;
    std::deque<Block> queue_;
    bool ended_ = false;
    uint64_t sum_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        return 2;
    }
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
        files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    const auto begin = std::chrono::steady_clock::now();
    Pool pool;
    std::vector<std::thread> threads;
    for (int i = 0; i < std::atoi(argv[2]); ++i) {
        threads.emplace_back([&pool] { pool.run(); });
    }
    for (int pass = 0; pass < std::atoi(argv[3]); ++pass) {
        for (const std::string& file : files) {
            const uint64_t bytes = std::filesystem::file_size(file);
            for (uint64_t at = 0; at < bytes; at += kBlock) {
                pool.put({&file, at});
            }
        }
    }
    pool.end();
    for (std::thread& thread : threads) {
        thread.join();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("span %.6f busy 0 sum %llu\n", took.count(), static_cast<unsigned long long>(pool.sum()));
    return 0;
}

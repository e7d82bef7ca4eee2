// SPDX-License-Identifier: MIT
// An input pipeline as C++ frameworks have it: reader threads fill a bounded queue, and a tuning thread beside them
// looks at it after pauses that grow from 20 ms to 1.28 s. The tuner waits on a condition with a time-out and is told
// at the end, in the middle of a long pause; the main thread joins it.
//
//   timed_pipeline DIR COMPUTE_S     readers take the files of DIR in turn; per file the main thread computes so many
//   seconds
//
// Prints "span SECONDS busy 0": from before the threads start until they have ended; marks it "span".
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "reprise_marker.h"

namespace {

constexpr std::size_t readers = 2, capacity = 8, chunk = 128 * 1024;
constexpr std::chrono::milliseconds first_pause{20}, last_pause{1280};

using Bytes = std::vector<unsigned char>;

double now(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

class Pipeline {
public:
    explicit Pipeline(std::vector<std::string> names) : names_(std::move(names)) {
        for (std::size_t i = 0; i < readers; ++i) {
            threads_.emplace_back([this] { read(); });
        }
        threads_.emplace_back([this] { tune(); });
    }

    Bytes next() {
        std::unique_lock lock(mutex_);
        not_empty_.wait(lock, [this] { return !queue_.empty(); });
        Bytes taken = std::move(queue_.front());
        queue_.pop_front();
        not_full_.notify_one();
        return taken;
    }

    /// Ends the tuner in the middle of its pause. Gives the number of times it looked.
    int finish() {
        {
            const std::scoped_lock lock(mutex_);
            ended_ = true;
        }
        stop_.notify_all();
        for (auto& thread : threads_) {
            thread.join();
        }
        return looks_;
    }

private:
    void read() {
        for (;;) {
            std::string name;
            {
                const std::scoped_lock lock(mutex_);
                if (given_ == names_.size()) {
                    return;
                }
                name = names_[given_++];
            }
            Bytes data = content(name);
            std::unique_lock lock(mutex_);
            not_full_.wait(lock, [this] { return queue_.size() < capacity; });
            queue_.push_back(std::move(data));
            not_empty_.notify_one();
        }
    }

    static Bytes content(const std::string& name) {
        Bytes data;
        const int fd =
            open(name.c_str(), O_RDONLY | O_CLOEXEC);  // NOLINT(cppcoreguidelines-pro-type-vararg): open is one
        for (ssize_t got = 1; fd >= 0 && got > 0;) {
            const std::size_t have = data.size();
            data.resize(have + chunk);
            got = ::read(fd, data.data() + have, chunk);
            data.resize(have + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        }
        if (fd < 0 || data.empty()) {
            std::perror(name.c_str());
            std::exit(1);
        }
        close(fd);
        return data;
    }

    void tune() {
        std::unique_lock lock(mutex_);
        for (auto pause = first_pause; !stop_.wait_for(lock, pause, [this] { return ended_; });
             pause = std::min(2 * pause, last_pause)) {
            depth_ += queue_.size();
            ++looks_;
        }
    }

    std::vector<std::string> names_;
    std::size_t given_ = 0, depth_ = 0;
    int looks_ = 0;
    bool ended_ = false;
    std::deque<Bytes> queue_;
    std::mutex mutex_;
    std::condition_variable not_empty_, not_full_, stop_;
    std::vector<std::thread> threads_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: timed_pipeline DIR COMPUTE_S\n");
        return 2;
    }
    const double compute = std::atof(argv[2]);
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
        names.push_back(entry.path());
    }
    std::sort(names.begin(), names.end());
    unsigned sum = 0;
    reprise_begin("span", 0);
    const double begin = now(CLOCK_MONOTONIC);
    Pipeline pipeline(names);
    for (std::size_t i = 0; i < names.size(); ++i) {
        const Bytes data = pipeline.next();
        for (const double until = now(CLOCK_THREAD_CPUTIME_ID) + compute; now(CLOCK_THREAD_CPUTIME_ID) < until;) {
            for (std::size_t k = 0; k < data.size(); k += 64) {
                sum += data[k];
            }
        }
    }
    const int looks = pipeline.finish();
    reprise_end("span", 0);
    std::printf("span %.6f busy 0 looks %d sum %u\n", now(CLOCK_MONOTONIC) - begin, looks, sum);
    return 0;
}

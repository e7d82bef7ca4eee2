// SPDX-License-Identifier: MIT
#include "replay/prepare/parallel.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

namespace reprise {

void run_parallel(unsigned threads, size_t pieces, std::atomic<bool>& stop, const std::function<void()>& tick,
                  const std::function<void(size_t worker, size_t piece)>& work) {
    if (pieces == 0) {
        return;
    }
    const auto workers = static_cast<size_t>(std::clamp<size_t>(threads, 1, pieces));
    struct alignas(64) Share {
        std::atomic<size_t> next{0};
        size_t end = 0;
    };
    std::vector<Share> shares(workers);
    for (size_t w = 0; w < workers; ++w) {
        shares[w].next = pieces * w / workers;
        shares[w].end = pieces * (w + 1) / workers;
    }
    std::mutex mutex;
    std::condition_variable finished;
    size_t running = workers;
    std::exception_ptr failure;

    const auto run_worker = [&](size_t self) {
        try {
            for (size_t turn = 0; turn < workers; ++turn) {
                Share& share = shares[(self + turn) % workers];
                while (!stop.load(std::memory_order_relaxed)) {
                    const size_t piece = share.next.fetch_add(1, std::memory_order_relaxed);
                    if (piece >= share.end) {
                        break;
                    }
                    work(self, piece);
                }
            }
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) {
                failure = std::current_exception();
            }
            stop = true;
        }
        // Notify under the lock: the waiter's frame owns everything here and may be gone once it is released.
        const std::lock_guard lock(mutex);
        --running;
        finished.notify_one();
    };

    boost::asio::thread_pool pool(workers);
    for (size_t w = 0; w < workers; ++w) {
        boost::asio::post(pool, [&run_worker, w] { run_worker(w); });
    }
    {
        std::unique_lock lock(mutex);
        while (running > 0) {  // NOLINT(bugprone-infinite-loop): the workers count it down
            finished.wait_for(lock, std::chrono::milliseconds(50));
            if (!tick) {
                continue;
            }
            lock.unlock();
            tick();
            lock.lock();
        }
    }
    pool.join();
    if (failure) {
        std::rethrow_exception(failure);
    }
}

}  // namespace reprise

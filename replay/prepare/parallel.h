// SPDX-License-Identifier: MIT
// Runs many small pieces of work on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

namespace reprise {

/// Calls work(worker, piece) once for every piece in [0, pieces), on `threads` threads. A worker takes the pieces of
/// its own share in order, so that neighbours (files of one directory) stay together, and then what others have left.
/// Where `tick` is given, the calling thread calls it about twenty times a second meanwhile. A piece that throws stops
/// the rest; the first exception is thrown again here. Setting `stop` from anywhere stops after the pieces in hand.
template <typename Work>
void run_parallel(unsigned threads, size_t pieces, std::atomic<bool>& stop, const std::function<void()>& tick,
                  Work work) {
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

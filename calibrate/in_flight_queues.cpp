// SPDX-License-Identifier: MIT
// The queues of requests: a ring of io_uring, or threads.
#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "calibrate/in_flight.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

[[noreturn]] void request_failed(const StorageFolder& in, int error) {
    errno = error;
    in.failed("a request failed");
}

class UringQueue : public InFlightQueue {
public:
    UringQueue(const StorageFolder& in, int fd, int depth, int64_t bytes) : in_(in), fd_(fd), bytes_(bytes) {
        error_ = -io_uring_queue_init(static_cast<unsigned>(depth), &ring_, 0);
        for (int slot = 0; slot < depth && error_ == 0; ++slot) {
            buffers_.push_back(std::make_unique<StorageBuffer>(static_cast<size_t>(bytes)));
        }
    }
    ~UringQueue() override {
        if (error_ == 0) {
            io_uring_queue_exit(&ring_);
        }
    }
    UringQueue(const UringQueue&) = delete;
    UringQueue& operator=(const UringQueue&) = delete;
    bool valid() const { return error_ == 0; }

    void submit(int slot, bool write, int64_t offset) override {
        io_uring_sqe* const entry = io_uring_get_sqe(&ring_);  // there is one for each slot
        char* const buffer = buffers_[static_cast<size_t>(slot)]->data;
        const auto bytes = static_cast<unsigned>(bytes_);
        if (write) {
            io_uring_prep_write(entry, fd_, buffer, bytes, static_cast<__u64>(offset));
        } else {
            io_uring_prep_read(entry, fd_, buffer, bytes, static_cast<__u64>(offset));
        }
        io_uring_sqe_set_data64(entry, static_cast<__u64>(slot));
    }
    int wait() override {
        io_uring_cqe* done = nullptr;
        if (io_uring_peek_cqe(&ring_, &done) != 0) {
            int error = 0;
            do {
                error = -io_uring_submit_and_wait(&ring_, 1);
            } while (error == EINTR);
            if (error > 0) {
                request_failed(in_, error);
            }
            error = -io_uring_wait_cqe(&ring_, &done);
            if (error != 0) {
                request_failed(in_, error);
            }
        }
        const auto slot = static_cast<int>(io_uring_cqe_get_data64(done));
        const int result = done->res;
        io_uring_cqe_seen(&ring_, done);
        if (result < 0) {
            request_failed(in_, -result);
        }
        return slot;
    }

private:
    const StorageFolder& in_;
    const int fd_;
    const int64_t bytes_;
    io_uring ring_{};
    int error_ = 0;
    std::vector<std::unique_ptr<StorageBuffer>> buffers_;
};

/// One thread for each slot.
class ThreadQueue : public InFlightQueue {
public:
    /// `fds`: of each slot. `syncs`: what was written.
    ThreadQueue(const StorageFolder& in, std::vector<int> fds, int64_t bytes, bool syncs)
        : in_(in), bytes_(bytes), syncs_(syncs), asked_(fds.size()) {
        for (size_t slot = 0; slot < fds.size(); ++slot) {
            threads_.emplace_back([this, slot, fd = fds[slot]] { work(slot, fd); });
        }
    }
    ~ThreadQueue() override {
        {
            const std::lock_guard guard(lock_);
            over_ = true;
        }
        more_.notify_all();
        for (std::thread& thread : threads_) {
            thread.join();
        }
    }
    ThreadQueue(const ThreadQueue&) = delete;
    ThreadQueue& operator=(const ThreadQueue&) = delete;

    void submit(int slot, bool write, int64_t offset) override {
        {
            const std::lock_guard guard(lock_);
            asked_[static_cast<size_t>(slot)] = {true, write, offset};
        }
        more_.notify_all();
    }
    int wait() override {
        std::unique_lock guard(lock_);
        told_.wait(guard, [this] { return !done_.empty(); });
        const auto [slot, error] = done_.front();
        done_.pop_front();
        if (error != 0) {
            request_failed(in_, error);
        }
        return slot;
    }

private:
    struct Asked {
        bool any = false, write = false;
        int64_t offset = 0;
    };
    void work(size_t slot, int fd) {
        const StorageBuffer buffer(static_cast<size_t>(bytes_));
        for (;;) {
            Asked asked;
            {
                std::unique_lock guard(lock_);
                more_.wait(guard, [&] { return over_ || asked_[slot].any; });
                if (!asked_[slot].any) {
                    return;
                }
                asked = std::exchange(asked_[slot], {});
            }
            const int error = perform(fd, asked, buffer.data);
            {
                const std::lock_guard guard(lock_);
                done_.emplace_back(static_cast<int>(slot), error);
            }
            told_.notify_one();
        }
    }
    int perform(int fd, const Asked& asked, char* buffer) const {
        const auto bytes = static_cast<size_t>(bytes_);
        const ssize_t moved =
            asked.write ? ::pwrite(fd, buffer, bytes, asked.offset) : ::pread(fd, buffer, bytes, asked.offset);
        return moved < 0 || (syncs_ && ::fsync(fd) != 0) ? errno : 0;
    }

    const StorageFolder& in_;
    const int64_t bytes_;
    const bool syncs_;
    std::mutex lock_;
    std::condition_variable more_, told_;
    std::vector<Asked> asked_;
    std::deque<std::pair<int, int>> done_;
    bool over_ = false;
    std::vector<std::thread> threads_;
};

class SyncQueue : public InFlightQueue {
public:
    SyncQueue(const StorageFolder& in, int depth, int64_t bytes) {
        std::vector<int> fds;
        for (int slot = 0; slot < depth; ++slot) {
            const std::string path = in.folder() + "/synced-" + std::to_string(slot);
            files_.emplace_back(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
            if (!files_.back().valid()) {
                in.failed("cannot create a file");
            }
            ::unlink(path.c_str());
            fds.push_back(files_.back().get());
        }
        threads_ = std::make_unique<ThreadQueue>(in, std::move(fds), bytes, true);
    }
    void submit(int slot, bool /*write*/, int64_t /*offset*/) override { threads_->submit(slot, true, 0); }
    int wait() override { return threads_->wait(); }

private:
    std::vector<UniqueFd> files_;
    std::unique_ptr<ThreadQueue> threads_;
};

}  // namespace

std::unique_ptr<InFlightQueue> uring_queue(const StorageFolder& in, int fd, int depth, int64_t bytes) {
    auto queue = std::make_unique<UringQueue>(in, fd, depth, bytes);
    return queue->valid() ? std::move(queue) : nullptr;
}

std::unique_ptr<InFlightQueue> thread_queue(const StorageFolder& in, int fd, int depth, int64_t bytes) {
    return std::make_unique<ThreadQueue>(in, std::vector<int>(static_cast<size_t>(depth), fd), bytes, false);
}

std::unique_ptr<InFlightQueue> sync_queue(const StorageFolder& in, int depth, int64_t bytes) {
    return std::make_unique<SyncQueue>(in, depth, bytes);
}

}  // namespace reprise

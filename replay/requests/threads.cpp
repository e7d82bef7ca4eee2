// SPDX-License-Identifier: MIT
// Requests where the kernel makes none: as many threads as were in flight.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "formats/support/error.h"
#include "replay/requests/queue.h"

namespace reprise {
namespace {

using Does = AsyncRequest::Does;

constexpr uint32_t kMostThreads = 1024;

class Threads : public RequestQueue {
public:
    explicit Threads(uint32_t depth) : most_(std::clamp(depth, 1u, kMostThreads)) {}
    ~Threads() override {
        {
            const std::lock_guard guard(lock_);
            ends_ = true;
        }
        work_.notify_all();
        for (std::thread& each : threads_) {
            each.join();
        }
    }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;

    bool prepare(const RequestCall& call) override {
        line_.emplace_back(call);
        return true;
    }

    size_t submit() override {
        const size_t count = line_.size();
        {
            const std::lock_guard guard(lock_);
            for (Kept& each : line_) {
                waiting_.push_back(std::move(each));
            }
            while (threads_.size() < most_ && threads_.size() < waiting_.size() + busy_) {
                start();
            }
        }
        line_.clear();
        work_.notify_all();
        return count;
    }

    bool makes(uint8_t) const override { return true; }

    size_t take(std::span<RequestDone> out, int64_t wait_ns, uint32_t) override {
        std::unique_lock guard(lock_);
        if (wait_ns > 0) {
            some_.wait_for(guard, std::chrono::nanoseconds(wait_ns), [&] { return !done_.empty(); });
        }
        size_t count = 0;
        for (; count < out.size() && !done_.empty(); done_.pop_front()) {
            out[count++] = done_.front();
        }
        return count;
    }

private:
    struct Kept {
        // As the kernel's queues do, it keeps the file open until it is done.
        explicit Kept(const RequestCall& asked) : call(asked), pieces(asked.pieces.begin(), asked.pieces.end()) {
            call.fd = asked.fd < 0 ? asked.fd : ::fcntl(asked.fd, F_DUPFD_CLOEXEC, 0);
        }
        ~Kept() {
            if (call.fd >= 0) {
                ::close(call.fd);
            }
        }
        Kept(Kept&& other) noexcept : call(other.call), pieces(std::move(other.pieces)) { other.call.fd = -1; }
        Kept& operator=(Kept&&) = delete;
        Kept(const Kept&) = delete;
        Kept& operator=(const Kept&) = delete;
        RequestCall call;
        std::vector<iovec> pieces;
    };

    void start() {
        try {
            threads_.emplace_back([this] { run(); });
        } catch (const std::system_error&) {
            if (threads_.empty()) {
                throw;
            }
            most_ = static_cast<uint32_t>(threads_.size());
        }
    }

    void run() {
        std::unique_lock guard(lock_);
        for (;;) {
            work_.wait(guard, [&] { return ends_ || !waiting_.empty(); });
            if (waiting_.empty()) {
                return;
            }
            Kept mine = std::move(waiting_.front());
            waiting_.pop_front();
            ++busy_;
            guard.unlock();
            mine.call.pieces = mine.pieces;
            const RequestDone done{mine.call.id, perform_at_once(mine.call), mine.call.serial};
            guard.lock();
            --busy_;
            done_.push_back(done);
            some_.notify_all();
        }
    }

    uint32_t most_;
    std::vector<Kept> line_;
    std::mutex lock_;
    std::condition_variable work_, some_;
    std::deque<Kept> waiting_;
    std::deque<RequestDone> done_;
    std::vector<std::thread> threads_;
    size_t busy_ = 0;
    bool ends_ = false;
};

template <class... Args>
int64_t call_of(long number, Args... args) {
    const long result = syscall(number, args...);
    return result < 0 ? -errno : result;
}

int64_t call_on_name(NameCall& call) {
    switch (call.code) {
        case IORING_OP_OPENAT2: return call_of(SYS_openat2, call.directory, call.name, &call.how, sizeof call.how);
        case IORING_OP_CLOSE: return call_of(SYS_close, call.fd);
        case IORING_OP_STATX: return call_of(SYS_statx, call.directory, call.name, call.flags, call.mask, &call.found);
        case IORING_OP_MKDIRAT: return call_of(SYS_mkdirat, call.directory, call.name, call.mode);
        case IORING_OP_UNLINKAT: return call_of(SYS_unlinkat, call.directory, call.name, call.flags);
        case IORING_OP_RENAMEAT:
            return call_of(SYS_renameat2, call.directory, call.name, call.directory2, call.name2, call.flags);
        case IORING_OP_LINKAT:
            return call_of(SYS_linkat, call.directory, call.name, call.directory2, call.name2, call.flags);
        case IORING_OP_SYMLINKAT: return call_of(SYS_symlinkat, call.name, call.directory2, call.name2);
        case IORING_OP_MADVISE: return call_of(SYS_madvise, call.memory.data(), call.memory.size(), call.advice);
        default: return -EINVAL;
    }
}

}  // namespace

std::unique_ptr<RequestQueue> make_threads(const QueueOptions& options) {
    return std::make_unique<Threads>(options.depth);
}

int64_t perform_at_once(const RequestCall& call) {
    if (call.name != nullptr) {
        return call_on_name(*call.name);
    }
    const AsyncRequest& asked = call.asked;
    const auto flags = static_cast<long>(asked.own_flags);
    const iovec one{call.buffer, call.bytes};
    const std::span<const iovec> pieces = asked.vectored ? call.pieces : std::span(&one, 1);
    switch (asked.does) {
        case Does::read: return call_of(SYS_preadv2, call.fd, pieces.data(), pieces.size(), asked.offset, 0L, flags);
        case Does::write: return call_of(SYS_pwritev2, call.fd, pieces.data(), pieces.size(), asked.offset, 0L, flags);
        case Does::sync: return call_of(SYS_fsync, call.fd);
        case Does::sync_data: return call_of(SYS_fdatasync, call.fd);
        case Does::sync_range: return call_of(SYS_sync_file_range, call.fd, asked.offset, asked.size, flags);
        case Does::allocate: return call_of(SYS_fallocate, call.fd, flags, asked.offset, asked.size);
        case Does::advise: return call_of(SYS_fadvise64, call.fd, asked.offset, asked.size, flags);
        default: return 0;  // nothing; what is not made does not come here
    }
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "replay/requests/queue.h"

namespace reprise {
namespace {

using Does = AsyncRequest::Does;

constexpr uint32_t kMostInLine = 4096;

/// What the kernel writes about a context where programs may read it (fs/aio.c).
struct RingHead {
    unsigned id, size, head, tail;
};

class Aio : public RequestQueue {
public:
    ~Aio() override {
        if (context_ != 0) {
            syscall(SYS_io_destroy, context_);
        }
    }
    Aio() = default;
    Aio(const Aio&) = delete;
    Aio& operator=(const Aio&) = delete;

    int make(uint32_t depth) { return syscall(SYS_io_setup, depth, &context_) == 0 ? 0 : -errno; }

    bool prepare(const RequestCall& call) override {
        if (line_.size() == kMostInLine) {
            return false;
        }
        const bool vectored = call.asked.vectored;
        iocb control{};
        control.aio_data = RequestDone::word(call.id, call.serial);
        control.aio_fildes = static_cast<uint32_t>(call.fd);
        control.aio_offset = call.asked.offset;
        control.aio_rw_flags = static_cast<__kernel_rwf_t>(call.asked.own_flags);
        switch (call.asked.does) {
            case Does::read: control.aio_lio_opcode = vectored ? IOCB_CMD_PREADV : IOCB_CMD_PREAD; break;
            case Does::write: control.aio_lio_opcode = vectored ? IOCB_CMD_PWRITEV : IOCB_CMD_PWRITE; break;
            case Does::sync: control.aio_lio_opcode = IOCB_CMD_FSYNC; break;
            case Does::sync_data: control.aio_lio_opcode = IOCB_CMD_FDSYNC; break;
            default:
                refused({call.id, 0, call.serial});
                ++not_in_line_;
                return true;  // IOCB_CMD_NOOP, which no kernel knows
        }
        if (call.asked.does == Does::sync || call.asked.does == Does::sync_data) {
            control.aio_offset = 0;
        } else if (vectored) {
            pieces_.emplace_back(call.pieces.begin(), call.pieces.end());  // the kernel copies them at io_submit
            control.aio_buf = reinterpret_cast<uint64_t>(pieces_.back().data());
            control.aio_nbytes = call.pieces.size();
        } else {
            control.aio_buf = reinterpret_cast<uint64_t>(call.buffer);
            control.aio_nbytes = call.bytes;
        }
        line_.push_back(control);
        return true;
    }

    size_t submit() override {
        const size_t count = line_.size(), all = count + std::exchange(not_in_line_, 0);
        pointers_.clear();
        for (iocb& control : line_) {
            pointers_.push_back(&control);
        }
        for (size_t at = 0; at < count;) {
            const long taken = syscall(SYS_io_submit, context_, count - at, pointers_.data() + at);
            if (taken > 0) {
                at += static_cast<size_t>(taken);
            } else if (taken == 0 || errno == EAGAIN) {
                // As much is in flight as the context holds: some of it has to be done first.
                drain_into_refused();
            } else {
                refused(RequestDone::of(line_[at].aio_data, -errno));
                ++at;
            }
        }
        line_.clear();
        pieces_.clear();
        return all;
    }

    size_t take(std::span<RequestDone> out, int64_t wait_ns, uint32_t asked) override {
        size_t count = 0;
        {
            const std::lock_guard guard(refused_lock_);
            for (; count < out.size() && !refused_.empty(); refused_.pop_front()) {
                out[count++] = refused_.front();
            }
            count_refused();
        }
        if (count == out.size()) {
            return count;
        }
        io_event events[64];
        timespec limit{wait_ns / 1'000'000'000, wait_ns % 1'000'000'000};
        const long most = static_cast<long>(std::min(out.size() - count, std::size(events)));
        const long least = count == 0 && wait_ns > 0 && !in_ring() ? std::clamp(static_cast<long>(asked), 1L, most) : 0;
        if (least == 0 && !in_ring()) {
            return count;
        }
        // Where it need not wait, a timeout would only be copied.
        const long found = syscall(SYS_io_getevents, context_, least, most, events, least != 0 ? &limit : nullptr);
        for (long i = 0; i < found; ++i) {
            out[count++] = RequestDone::of(events[i].data, events[i].res);
        }
        return count;
    }

    DoneMark done_mark() const override {
        const auto* head = reinterpret_cast<const RingHead*>(context_);
        return {&head->head, &head->tail, &refused_count_, ~0u};
    }

private:
    bool in_ring() const {
        const auto* head = reinterpret_cast<const RingHead*>(context_);
        return __atomic_load_n(&head->head, __ATOMIC_ACQUIRE) != __atomic_load_n(&head->tail, __ATOMIC_ACQUIRE);
    }
    void refused(RequestDone done) {
        const std::lock_guard guard(refused_lock_);
        refused_.push_back(done);
        count_refused();
    }
    void count_refused() {
        __atomic_store_n(&refused_count_, static_cast<unsigned>(refused_.size()), __ATOMIC_RELAXED);
    }
    void drain_into_refused() {
        io_event events[64];
        timespec limit{0, 10'000'000};
        const long found =
            syscall(SYS_io_getevents, context_, 1L, static_cast<long>(std::size(events)), events, &limit);
        for (long i = 0; i < found; ++i) {
            refused(RequestDone::of(events[i].data, events[i].res));
        }
    }

    aio_context_t context_ = 0;
    std::vector<iocb> line_;
    size_t not_in_line_ = 0;  // done already
    std::vector<iocb*> pointers_;
    std::deque<std::vector<iovec>> pieces_;
    std::mutex refused_lock_;
    std::deque<RequestDone> refused_;  // done without the kernel's ring
    unsigned refused_count_ = 0;       // of them
};

}  // namespace

MadeQueue make_aio(const QueueOptions& options) {
    auto queue = std::make_unique<Aio>();
    const int error = queue->make(std::clamp(options.depth, 1u, 65'536u));
    return error == 0 ? MadeQueue{std::move(queue), 0} : MadeQueue{nullptr, error};
}

}  // namespace reprise

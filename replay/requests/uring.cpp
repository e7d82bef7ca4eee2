// SPDX-License-Identifier: MIT
#include <liburing.h>

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>
#include <vector>

#include "replay/requests/queue.h"

namespace reprise {
namespace {

using Does = AsyncRequest::Does;

constexpr unsigned kMostEntries = 4096;
constexpr unsigned kPollIdle = 1000;  // ms until the kernel's thread sleeps, its own default
constexpr unsigned kMostFiles = 256;  // registered at a time
constexpr uint8_t kOrder = IOSQE_IO_DRAIN | IOSQE_IO_LINK | IOSQE_IO_HARDLINK | IOSQE_ASYNC | IOSQE_CQE_SKIP_SUCCESS;

class Uring : public RequestQueue {
public:
    Uring(std::span<std::byte> area, bool one_task) : area_(area), one_task_(one_task) {}
    ~Uring() override {
        if (made_) {
            io_uring_queue_exit(&ring_);
        }
    }
    Uring(const Uring&) = delete;
    Uring& operator=(const Uring&) = delete;

    int make(unsigned entries, bool polled) {
        io_uring_params params{};
        params.flags = IORING_SETUP_CLAMP | (polled ? IORING_SETUP_SQPOLL : 0u);
        params.sq_thread_idle = polled ? kPollIdle : 0;
        const int error = io_uring_queue_init_params(entries, &ring_, &params);
        made_ = error == 0;
        waits_here_ = (params.features & IORING_FEAT_EXT_ARG) != 0;
        probe_.reset(made_ ? io_uring_get_probe_ring(&ring_) : nullptr);
        return error;
    }

    [[gnu::hot]] bool prepare(const RequestCall& call) override {
        int place = -1;
        if ((call.order & IOSQE_FIXED_FILE) != 0 && call.name == nullptr && call.fd >= 0 && !place_of(call, &place)) {
            return false;
        }
        io_uring_sqe* const sqe = io_uring_get_sqe(&ring_);
        if (sqe == nullptr) {
            return false;
        }
        if (call.name != nullptr) {
            fill(*sqe, *call.name);
        } else {
            fill(*sqe, call);
        }
        sqe->flags |= call.order & kOrder;
        if (place >= 0) {
            sqe->fd = place;
            sqe->flags |= IOSQE_FIXED_FILE;
        }
        last_ = sqe;
        io_uring_sqe_set_data64(sqe, RequestDone::word(call.id, call.serial));
        return true;
    }

    [[gnu::hot]] size_t submit() override {
        end_line();
        const int count = io_uring_submit(&ring_);
        return count > 0 ? static_cast<size_t>(count) : 0;
    }

    size_t submit_and_take(std::span<RequestDone> out, int64_t wait_ns, uint32_t least, size_t* submitted) override {
        if (!waits_here_) {
            return RequestQueue::submit_and_take(out, wait_ns, least, submitted);
        }
        end_line();
        io_uring_cqe* first = nullptr;
        __kernel_timespec limit{wait_ns / 1'000'000'000, wait_ns % 1'000'000'000};
        const unsigned before = io_uring_sq_ready(&ring_);
        io_uring_submit_and_wait_timeout(&ring_, &first, std::max(least, 1u), &limit, nullptr);
        *submitted = before - std::min(before, io_uring_sq_ready(&ring_));
        return peek(out);
    }

    [[gnu::hot]] size_t take(std::span<RequestDone> out, int64_t wait_ns, uint32_t least) override {
        size_t count = peek(out);
        if (count == 0 && wait_ns > 0) {
            wait(wait_ns, std::max(least, 1u));
            count = peek(out);
        }
        return count;
    }

    size_t wait_beside(std::span<RequestDone>, int64_t wait_ns) override {
        wait(wait_ns, 1);
        return 0;
    }

    size_t look_beside(std::span<RequestDone> out) override {
        size_t count = 0;
        unsigned head = 0, known = looked_;
        io_uring_cqe* cqe = nullptr;
        io_uring_for_each_cqe(&ring_, head, cqe) {
            if (known != 0) {
                --known;
            } else if (count == out.size()) {
                break;
            } else {
                out[count++] = RequestDone::of(io_uring_cqe_get_data64(cqe), cqe->res);
            }
        }
        looked_ += static_cast<unsigned>(count);
        return count;
    }

    bool makes(uint8_t code) const override {
        return probe_ != nullptr && io_uring_opcode_supported(probe_.get(), code) != 0;
    }

    DoneMark done_mark() const override {
        return {ring_.cq.khead, ring_.cq.ktail, ring_.sq.kflags, IORING_SQ_CQ_OVERFLOW};
    }

private:
    void wait(int64_t ns, unsigned least) {
        io_uring_cqe* first = nullptr;
        __kernel_timespec limit{ns / 1'000'000'000, ns % 1'000'000'000};
        // Without a time-out of its own the wait takes a request, and so a place that submit() might need.
        if (waits_here_) {
            io_uring_wait_cqes(&ring_, &first, least, &limit, nullptr);
        } else {
            io_uring_wait_cqe(&ring_, &first);
        }
    }
    void end_line() {
        // What was linked to it in the recording may be no request here (a timer). The kernel would hand it to a
        // thread.
        if (last_ != nullptr) {
            last_->flags &= static_cast<uint8_t>(~(IOSQE_IO_LINK | IOSQE_IO_HARDLINK));
            last_ = nullptr;
        }
        // Each call is spared the search for its descriptor. It is this task's only.
        if (std::exchange(one_task_, false)) {
            io_uring_register_ring_fd(&ring_);
        }
    }

    [[gnu::hot]] size_t peek(std::span<RequestDone> out) {
        if (__builtin_expect(looked_ != 0, 0)) {
            io_uring_cq_advance(&ring_, std::exchange(looked_, 0));
        }
        if (io_uring_cq_ready(&ring_) == 0) {
            if ((IO_URING_READ_ONCE(*ring_.sq.kflags) & IORING_SQ_CQ_OVERFLOW) == 0) {
                return 0;
            }
            io_uring_get_events(&ring_);
        }
        size_t count = 0;
        unsigned head = 0;
        io_uring_cqe* cqe = nullptr;
        io_uring_for_each_cqe(&ring_, head, cqe) {
            if (count == out.size()) {
                break;
            }
            out[count++] = RequestDone::of(io_uring_cqe_get_data64(cqe), cqe->res);
        }
        io_uring_cq_advance(&ring_, static_cast<unsigned>(count));
        return count;
    }

    // The one buffer that is registered is all of the area; where that is refused such reads are plain ones.
    bool fixed_buffers() {
        if (!asked_buffers_ && !area_.empty()) {
            const iovec all{area_.data(), area_.size()};
            fixed_buffers_ = io_uring_register_buffers(&ring_, &all, 1) == 0;
        }
        asked_buffers_ = true;
        return fixed_buffers_;
    }

    // Where the file is registered; -1 where the kernel registers none. False: all places are taken, and requests in
    // line may mean theirs, so that submit() is due first.
    bool place_of(const RequestCall& call, int* place) {
        if (!asked_files_) {
            asked_files_ = true;
            const std::vector<int> none(kMostFiles, -1);
            if (io_uring_register_files(&ring_, none.data(), kMostFiles) == 0) {
                files_.resize(kMostFiles);
            }
        }
        if (files_.empty()) {
            return true;
        }
        const auto known = places_.find(call.handle);
        if (known != places_.end() && files_[known->second].fd == call.fd) {
            *place = static_cast<int>(known->second);
            return true;
        }
        const unsigned next = known != places_.end() ? known->second : next_file_;
        RegisteredFile& file = files_[next];
        if (file.fd >= 0 && io_uring_sq_ready(&ring_) != 0) {
            return false;
        }
        if (io_uring_register_files_update(&ring_, next, &call.fd, 1) != 1) {
            return true;  // a plain descriptor, then
        }
        if (file.fd >= 0) {
            places_.erase(file.handle);
        }
        file = {call.handle, call.fd};
        places_[call.handle] = next;
        next_file_ = next == next_file_ ? (next_file_ + 1) % kMostFiles : next_file_;
        *place = static_cast<int>(next);
        return true;
    }

    /// The kernel reads them when it takes the request, and more requests may come before that. Of an entry of the
    /// ring, which is given again after it was taken.
    std::span<const iovec> kept(const io_uring_sqe& sqe, std::span<const iovec> pieces) {
        const auto entry = static_cast<size_t>(&sqe - ring_.sq.sqes);
        pieces_.resize(std::max(pieces_.size(), entry + 1));
        pieces_[entry].assign(pieces.begin(), pieces.end());
        return pieces_[entry];
    }

    static void fill(io_uring_sqe& sqe, NameCall& call) {
        switch (call.code) {
            case IORING_OP_OPENAT2: io_uring_prep_openat2(&sqe, call.directory, call.name, &call.how); return;
            case IORING_OP_CLOSE: io_uring_prep_close(&sqe, call.fd); return;
            case IORING_OP_STATX:
                io_uring_prep_statx(&sqe, call.directory, call.name, static_cast<int>(call.flags), call.mask,
                                    &call.found);
                return;
            case IORING_OP_MKDIRAT: io_uring_prep_mkdirat(&sqe, call.directory, call.name, call.mode); return;
            case IORING_OP_UNLINKAT:
                io_uring_prep_unlinkat(&sqe, call.directory, call.name, static_cast<int>(call.flags));
                return;
            case IORING_OP_RENAMEAT:
                io_uring_prep_renameat(&sqe, call.directory, call.name, call.directory2, call.name2, call.flags);
                return;
            case IORING_OP_LINKAT:
                io_uring_prep_linkat(&sqe, call.directory, call.name, call.directory2, call.name2,
                                     static_cast<int>(call.flags));
                return;
            case IORING_OP_SYMLINKAT: io_uring_prep_symlinkat(&sqe, call.name, call.directory2, call.name2); return;
            case IORING_OP_MADVISE:
                io_uring_prep_madvise(&sqe, call.memory.data(), static_cast<unsigned>(call.memory.size()), call.advice);
                return;
            default: io_uring_prep_nop(&sqe); return;  // makes() knows no other
        }
    }

    void fill(io_uring_sqe& sqe, const RequestCall& call) {
        const AsyncRequest& asked = call.asked;
        const auto offset = static_cast<uint64_t>(asked.offset);
        const auto bytes = static_cast<unsigned>(call.bytes);
        const std::span<const iovec> pieces = asked.vectored ? kept(sqe, call.pieces) : std::span<const iovec>();
        const auto count = static_cast<unsigned>(pieces.size());
        switch (asked.does) {
            case Does::read:
                if (asked.vectored) {
                    io_uring_prep_readv2(&sqe, call.fd, pieces.data(), count, offset,
                                         static_cast<int>(asked.own_flags));
                    return;
                }
                if (asked.fixed_buffer && fixed_buffers()) {
                    io_uring_prep_read_fixed(&sqe, call.fd, call.buffer, bytes, offset, 0);
                } else {
                    io_uring_prep_read(&sqe, call.fd, call.buffer, bytes, offset);
                }
                sqe.rw_flags = static_cast<int>(asked.own_flags);
                return;
            case Does::write:
                if (asked.vectored) {
                    io_uring_prep_writev2(&sqe, call.fd, pieces.data(), count, offset,
                                          static_cast<int>(asked.own_flags));
                    return;
                }
                io_uring_prep_write(&sqe, call.fd, call.buffer, bytes, offset);
                sqe.rw_flags = static_cast<int>(asked.own_flags);
                return;
            case Does::sync: io_uring_prep_fsync(&sqe, call.fd, 0); break;
            case Does::sync_data: io_uring_prep_fsync(&sqe, call.fd, IORING_FSYNC_DATASYNC); break;
            case Does::sync_range:
                io_uring_prep_sync_file_range(&sqe, call.fd, static_cast<unsigned>(asked.size), offset,
                                              static_cast<int>(asked.own_flags));
                return;
            case Does::allocate:
                io_uring_prep_fallocate(&sqe, call.fd, static_cast<int>(asked.own_flags), asked.offset, asked.size);
                return;
            case Does::advise:
                io_uring_prep_fadvise(&sqe, call.fd, offset, static_cast<off_t>(asked.size),
                                      static_cast<int>(asked.own_flags));
                return;
            default: io_uring_prep_nop(&sqe); return;  // nothing; what is not made does not come here
        }
        sqe.off = offset;
        sqe.len = static_cast<unsigned>(asked.size);
    }

    struct FreeProbe {
        void operator()(io_uring_probe* probe) const { io_uring_free_probe(probe); }
    };
    io_uring ring_{};
    std::unique_ptr<io_uring_probe, FreeProbe> probe_;  // of the codes that the kernel knows
    struct RegisteredFile {
        uint64_t handle = 0;
        int fd = -1;
    };
    std::vector<std::vector<iovec>> pieces_;         // by entry of the ring
    std::vector<RegisteredFile> files_;              // by place; empty: the kernel registers none
    std::unordered_map<uint64_t, unsigned> places_;  // by handle
    unsigned next_file_ = 0;                         // the place that is used, or used again, next
    io_uring_sqe* last_ = nullptr;                   // in line
    unsigned looked_ = 0;                            // told by look_beside(), from the ring's head on
    std::span<std::byte> area_;
    bool one_task_;  // until it is registered
    bool made_ = false, waits_here_ = false, asked_buffers_ = false, fixed_buffers_ = false, asked_files_ = false;
};

}  // namespace

MadeQueue make_uring(const QueueOptions& options) {
    const unsigned entries = std::bit_ceil(std::clamp(options.depth, 8u, kMostEntries));
    auto ring = std::make_unique<Uring>(options.area, options.one_task);
    int error = ring->make(entries, options.polled);
    if (error != 0 && options.polled) {
        ring = std::make_unique<Uring>(options.area, options.one_task);
        error = ring->make(entries, false);
    }
    return error == 0 ? MadeQueue{std::move(ring), 0} : MadeQueue{nullptr, error};
}

}  // namespace reprise

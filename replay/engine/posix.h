// SPDX-License-Identifier: MIT
// Performs ops as the system calls they were recorded from, for one task. The calls that jobs make most are
// inline; the others are in posix*.cpp.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/oplog/oplog.h"
#include "formats/support/unique_fd.h"
#include "replay/engine/engine.h"
#include "replay/engine/process_state.h"
#include "replay/engine/read_buffer.h"
#include "replay/engine/syscalls.h"
#include "replay/engine/whole_blocks.h"
#include "replay/plan/access.h"
#include "replay/plan/left_out.h"
#include "replay/requests/replayed_ring.h"

namespace reprise {

class PosixEngine {
public:
    static constexpr bool kUsesRoot = true;
    /// The process outlives the engine. Throws Error (machine) where there is no memory for the buffer.
    explicit PosixEngine(const EngineContext& context);
    ~PosixEngine();
    PosixEngine(const PosixEngine&) = delete;
    PosixEngine& operator=(const PosixEngine&) = delete;

    /// What must not count as time inside the call. True where it took any.
    [[gnu::always_inline]] bool before(const OpBlock& b, size_t i) {
        if (__builtin_expect((b.flags[i] & kFreshMemory) == 0, 1)) {
            return false;
        }
        const OpInfo& row = info(static_cast<OpKind>(b.kind[i]));
        if (row.is(Trait::reads) && !row.is(Trait::writes)) {
            make_fresh(read_size(b.size[i]));
        }
        return true;
    }

    /// The call's result, -errno, or not_performed(). Ops that only explain time return their recorded result.
    [[gnu::always_inline]] int64_t submit(const OpBlock& b, size_t i) {
        const auto kind = static_cast<OpKind>(b.kind[i]);
        if (__builtin_expect(ring_ != nullptr, 0)) {
            const bool async = info(kind).is(Trait::async);
            if (in_line_ && !async) {  // no op of its own submits it
                hand_over();
            }
            look(*ring_);
            // What submit_other() looks for, no request has, but for the limit of a file's size.
            if (async && !worker_.read_only && b.result[i] != -EFBIG) {
                return submit_async(b, i, kind);
            }
            if (kind == OpKind::compute && !await(b.first + i)) {
                return not_performed(LeftOut::stopped);
            }
        }
        if (kind == OpKind::pread || kind == OpKind::read) {
            const int fd = worker_.descriptors.get(b.handle[i]);
            if (__builtin_expect(fd >= 0 && b.result[i] != -EINVAL, 1)) {
                const size_t bytes = read_size(b.size[i]);
                const int64_t result = kind == OpKind::pread ? sys::call(SYS_pread64, fd, buffer_, bytes, b.offset[i])
                                                             : sys::call(SYS_read, fd, buffer_, bytes);
                return __builtin_expect(result != -EINVAL, 1) ? result : in_whole_blocks(b, i, kind, fd);
            }
        }
        return submit_other(b, i, kind);
    }

    /// Results of requests that were asked for before they were done.
    size_t complete(std::span<Completion> out, bool wait);
    /// See engine.h. Those of the ring that the task used last.
    void watch(int64_t until_ns, bool sleeps);
    void glance() {
        if (ring_ != nullptr && ring_->in_flight() != 0) {
            look(*ring_);
        }
    }

protected:
    /// For engines that change what is asked for: requests are performed at once where they are submitted.
    void make_requests_at_once() { at_once_ = true; }
    /// `result`: of a request that went through no ring. `told`: its completion is to have it.
    int64_t made_at_once(const OpBlock& b, size_t i, int64_t result, bool told);
    /// With a buffer of at least so many bytes, of which `buffer_bytes_` are for ops. `small`: see ReadBuffer.
    PosixEngine(const EngineContext& context, size_t least_bytes, bool small = false);
    /// Descriptor of a handle, or a not_performed() code in `*refusal`.
    int descriptor(HandleId handle, int64_t* refusal) {
        const int fd = worker_.descriptors.get(handle);
        return __builtin_expect(fd >= 0, 1) ? fd : descriptor_later(handle, refusal);
    }
    int descriptor_later(HandleId handle, int64_t* refusal);
    size_t read_size(int64_t size) const {
        return std::min(static_cast<size_t>(std::max<int64_t>(size, 0)), buffer_bytes_);
    }
    size_t write_size(int64_t size) const {
        return std::min(static_cast<size_t>(std::max<int64_t>(size, 0)), worker_.pattern.size());
    }
    void make_fresh(size_t bytes) { sys::aside(SYS_madvise, buffer_, (bytes + 4095) & ~size_t{4095}, MADV_DONTNEED); }
    /// Fills iov_ with pieces of `base`, at most `most` bytes in all.
    int pieces(std::span<const int64_t> sizes, int64_t total, std::byte* base, size_t most);

    WorkerState& worker_;
    const ReadBuffer memory_;
    std::byte* const buffer_;
    size_t buffer_bytes_ = 0;  // what ops may use
    /// What a write writes, at least so many bytes; only read from. Other bytes each time, as a storage that compresses
    /// or finds what it has already would else do less than for the job.
    std::byte* outgoing(HandleId handle, size_t bytes);
    /// 1 for a direct call that was refused (EINVAL): a buffer that no device takes, as where the job's was not
    /// aligned; with an offset or a size that is refused it makes no difference. 0 for all others.
    size_t off_by(const OpBlock& b, size_t i) const { return b.result[i] == -EINVAL && is_direct(b.handle[i]) ? 1 : 0; }
    /// Whether it reads or writes at the position, which it moves.
    static bool at_position(OpKind kind) {
        return kind == OpKind::read || kind == OpKind::readv || kind == OpKind::write || kind == OpKind::writev;
    }
    bool is_direct(HandleId handle) const { return worker_.plan.is_direct(handle); }
    AccessCounts counts_;
    const std::byte* outgoing_ = nullptr;  // the bytes of all writes, or of the next one
    size_t next_out_ = 0;                  // where among them the next write starts
    std::vector<iovec> iov_;

private:
    int64_t submit_other(const OpBlock& b, size_t i, OpKind kind);
    int64_t submit_refused(const OpBlock& b, size_t i, OpKind kind);
    bool refused_as_asked(const OpBlock& b, size_t i, OpKind kind) const;
    int64_t perform(const OpBlock& b, size_t i, OpKind kind);
    /// Descriptors
    /// What an open makes.
    struct OpenedFile {
        FileId file = 0;
        HandleId handle = 0;  // 0: the recorded open failed
        int64_t flags = 0;    // as performed
        int64_t recorded = 0;
        bool fstat_follows = false;
    };
    int64_t submit_plain(const OpBlock& b, size_t i, OpKind kind);
    int64_t open(const OpBlock& b, size_t i);
    int64_t opened(const OpenedFile& what, int64_t fd);
    void expect_open(const OpBlock& b, size_t i);
    int64_t close(const OpBlock& b, size_t i);
    int64_t duplicate(const OpBlock& b, size_t i);
    int64_t control(const OpBlock& b, size_t i);
    int64_t make_memfd(const OpBlock& b, size_t i);
    int64_t fstat(const OpBlock& b, size_t i);
    /// Data
    int64_t vectored(const OpBlock& b, size_t i, OpKind kind);
    /// After EINVAL: what this storage refuses of part of a block, and the recorded one took. -EINVAL for all else.
    int64_t in_whole_blocks(const OpBlock& b, size_t i, OpKind kind, int fd);
    int64_t read_part(int fd, BlockRange asked, int64_t expected, int64_t block);
    void count_part(BlockRange asked, int64_t result, int64_t fetched);
    int64_t copy(const OpBlock& b, size_t i, OpKind kind);
    static bool gives_offset(int fd, int64_t offset, bool told);
    int64_t into_nothing(int fd, int64_t offset, bool by_offset, size_t bytes);
    int64_t clone(int from, int64_t offset, int to, int64_t offset2, size_t bytes);
    int64_t from_nothing(HandleId handle, int fd, int64_t offset, bool by_offset, size_t bytes);
    /// Requests
    static constexpr int64_t kOrderFlags = 0xff;  // of uring_submit: IOSQE_*
    // Hot: those of a request lie together, on 12 pages of the program in place of 16.
    [[gnu::hot]] int64_t submit_async(const OpBlock& b, size_t i, OpKind kind);
    [[gnu::hot]] int64_t request(const OpBlock& b, size_t i);
    [[gnu::hot]] int64_t make(const OpBlock& b, size_t i, ReplayedRing& ring, RequestCall& call);
    int64_t make_at_once(const OpBlock& b, size_t i, RequestCall& call);
    int64_t take_kept(uint32_t request);
    /// The block that direct requests of a file are multiples of, where this one is not; else 0.
    int64_t part_of_block(HandleId handle, const AsyncRequest& asked, int fd) {
        return is_direct(handle) ? part_of_direct(handle, asked, fd) : 0;
    }
    int64_t part_of_direct(HandleId handle, const AsyncRequest& asked, int fd);
    int64_t make_in_blocks(const OpBlock& b, size_t i, const RequestCall& call, int64_t block);
    [[gnu::hot]] void fill(RequestCall& call, const OpBlock& b, size_t i, std::byte* buffer);
    void leave_request(const OpBlock& b, size_t i);
    [[gnu::hot]] int64_t enter(const OpBlock& b, size_t i);
    [[gnu::hot]] int64_t result_of(const OpBlock& b, size_t i);
    ReplayedRing* ring_at(uint64_t op) { return __builtin_expect(op < next_ring_op_, 1) ? ring_ : next_ring_at(op); }
    ReplayedRing* next_ring_at(uint64_t op);
    /// Until all is done that op `op` needs. False where the run was stopped.
    bool await(uint64_t op) { return __builtin_expect(op < next_need_op_, 1) || await_needs(op); }
    [[gnu::hot]] bool await_needs(uint64_t op);
    bool await(const RequestNeed& need);
    ReplayedRing& ring_of(const RequestNeed& need);
    bool wait_for_needs(uint64_t op);
    void passed_needs(const RequestNeed* next);
    void look_on(ReplayedRing& ring, const RequestNeed& need);
    bool others_live() const;
    [[gnu::hot]] void hand_over();
    void look(ReplayedRing& ring) {
        ring.look();
        make_put_off();
    }
    /// Requests that stand for calls on names and descriptors (replay/plan/ring_calls.h)
    struct NamedRequest {
        NameCall call;
        UniqueFd parent, parent2;  // where they are not kept
        std::string target;        // of a symbolic link
        RequestNeed need;          // its own result
        OpenedFile later = {};     // of an open that the task did not wait for at its op
    };
    struct ToldResult {
        int64_t result = 0;
        uint64_t tick = 0;
    };
    /// A request on a descriptor whose open is in flight. It is made when that is done, and the task goes on: a job
    /// that takes results as they come does not wait for the slowest open either.
    struct PutOff {
        uint32_t request = 0;
        HandleId handle = 0;
        ReplayedRing* ring = nullptr;
        AsyncRequest asked;
    };
    bool put_off(const OpBlock& b, size_t i, HandleId handle, const AsyncRequest& asked, ReplayedRing& ring);
    bool is_put_off(uint32_t request) const { return __builtin_expect(!put_off_.empty(), 0) && among_put_off(request); }
    bool among_put_off(uint32_t request) const;
    /// Makes those whose descriptors are there now.
    void make_put_off() {
        if (__builtin_expect(!put_off_.empty(), 0)) {
            make_opened();
        }
    }
    void make_opened();
    void make(const PutOff& later);
    void keep_order(int64_t order) {
        if (__builtin_expect(order != 0, 0)) {
            keep_in_order(order);
        }
    }
    void keep_in_order(int64_t order);
    /// A ring does not know of a request that was put off.
    bool has(ReplayedRing& ring, const RequestNeed& need) const {
        return ring.has(need.count, need.request) && (need.request == 0 || !is_put_off(need.request));
    }
    int64_t ring_call(const OpBlock& b, size_t i);
    int64_t ring_called(const OpBlock& b, size_t i, OpKind kind);
    int64_t named_done(uint32_t request, int64_t result) {
        return named_.empty() ? result : take_named(request, result);
    }
    int64_t take_named(uint32_t request, int64_t result);
    void opened_by_now(HandleId handle);
    bool open_in_flight(HandleId handle);
    bool others_wait_for(uint64_t op) const;
    std::unique_ptr<NamedRequest> named(const RingCall& call, const ReplayedRing& ring, bool opens_later);
    bool name_in(FileId file, int* parent, const char** name, UniqueFd* closes);
    const RootPath* place_of(FileId file) const;
    bool waits_at(uint64_t op) const;
    static bool storage_refused(const OpBlock& b, size_t i, OpKind kind);
    int64_t lock(const OpBlock& b, size_t i);
    /// Names
    int64_t by_path(const OpBlock& b, size_t i, OpKind kind);
    int64_t by_name(const OpBlock& b, size_t i, OpKind kind, const RootPath& path);
    /// A look for a lock that somebody had: -EEXIST or -ENOENT; the call itself might take it, here and now.
    int64_t look_for_lock(const OpBlock& b, size_t i, OpKind kind);
    int64_t two_names(const OpBlock& b, size_t i, OpKind kind);
    int64_t by_resolved(const OpBlock& b, size_t i, OpKind kind, const RootPath& path);
    int64_t attribute(const OpBlock& b, size_t i, OpKind kind, const char* path, bool follow);
    /// Memory
    int64_t map(const OpBlock& b, size_t i);
    int64_t on_map(const OpBlock& b, size_t i, OpKind kind);
    int64_t populate(const OpBlock& b, size_t i) const;
    int64_t touch(const OpBlock& b, size_t i);
    bool writes_file(uint32_t map) const;
    bool stores_to_file(uint32_t map) const;
    int64_t store(uint64_t op, uint64_t at, std::span<std::byte> memory) const;
    template <class Each>
    int64_t on_each_piece(uint32_t map, int64_t offset, int64_t bytes, int64_t hole, const Each& each) const;

    bool open_pipe();

    HandleId unverified_ = 0;              // opened, and its next op, an fstat, will tell whether it is a device
    const RootPath* next_path_ = nullptr;  // of the next open
    std::unordered_map<uint32_t, int64_t> touched_to_;  // by mapping: where this task's last touch of it ended
    struct Untold {
        uint64_t op = 0;
        uint32_t request = 0;
        ReplayedRing* ring = nullptr;
    };
    const TaskPlan& task_;
    std::unique_ptr<ReadBuffer> blocks_;  // for reads of whole blocks
    HandleId asked_handle_ = 0;           // part_of_block() knows of
    int64_t asked_block_ = 0;
    // In task_.requests, and of which op; none: no op.
    const RequestNeed *next_need_ = nullptr, *no_need_ = nullptr;  // the second: their end
    uint64_t next_need_op_ = UINT64_MAX, next_ring_op_ = 0;
    size_t next_ring_ = 0;
    ReplayedRing* ring_ = nullptr;  // where the task's requests go
    bool in_line_ = false;          // some of its requests were not handed over yet
    bool at_once_ = false;
    const bool looks_;           // for results in memory, where the job did
    const bool drops_requests_;  // some requests are filtered out
    std::vector<Untold> untold_;
    size_t next_call_ = 0, ring_number_ = 0;                             // in task_.requests.calls.by_call; of ring_
    std::unordered_map<uint32_t, std::unique_ptr<NamedRequest>> named_;  // in flight, by request
    std::unordered_map<uint32_t, ToldResult> told_;                      // of calls whose uring_complete is to come
    std::unordered_map<HandleId, uint32_t> opening_;                     // by an open in flight, its request
    std::vector<PutOff> put_off_;
    bool makes_put_off_ = false;
    bool ordered_ = false;  // some requests are linked or drained: none is put off from there on
    int pipe_[2] = {-1, -1};
    int null_ = -1;
};

}  // namespace reprise

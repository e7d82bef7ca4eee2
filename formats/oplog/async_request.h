// SPDX-License-Identifier: MIT
// What an asynchronous request (ops uring_submit and aio_submit) does: the one place that reads IORING_OP_* and
// IOCB_CMD_*.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "formats/oplog/oplog.h"

namespace reprise {

struct AsyncRequest {
    enum class Does : uint8_t {
        nothing,
        read,
        write,
        sync,       // data and metadata
        sync_data,  // data
        sync_range,
        allocate,
        advise,
        // Requests that stand for a call on names, descriptors or memory.
        open,
        close,
        stat,
        make_name,
        end_name,
        splice,  // also tee
        advise_memory,
        other,  // sockets, timers, polls, and what is newer than this code
    };

    Does does = Does::other;
    bool vectored = false;      // one size per buffer, in Op::list
    bool fixed_buffer = false;  // into a buffer registered with the ring
    /// The range of the file that it reads, writes, allocates, syncs or gives advice on, as the request has it; size 0
    /// where it has none.
    int64_t offset = 0, size = 0;
    /// Flags of the request itself: RWF_*, IORING_FSYNC_*, SYNC_FILE_RANGE_*, the mode of an allocation, the advice.
    int64_t own_flags = 0;

    bool reads() const { return does == Does::read; }
    bool writes() const { return does == Does::write; }
    /// Changes the data of an open file. What a splice copies is in the op of its call.
    bool alters() const { return does == Does::write || does == Does::allocate; }
    /// Occupies the storage; timers, polls and sockets wait beside others without a load.
    bool on_storage() const { return (does >= Does::read && does <= Does::allocate) || is_call(); }
    /// A replay makes it as a request. Timers, polls, sockets and what is newer than this code take their recorded
    /// time.
    bool is_made() const { return does <= Does::advise; }
    /// Recordings keep what it asks for in the op of the call that it stands for, right before its uring_complete. A
    /// replay makes it as a request where it has that op (replay/plan/ring_calls.h).
    bool is_call() const { return does >= Does::open && does <= Does::advise_memory; }
};

/// flags of uring_submit: IOSQE_* in the lowest 8 bits, the request's own above them.
inline constexpr int kUringOwnFlags = 8;
/// ... and this bit: the kernel's polling thread took the request (IORING_SETUP_SQPOLL); no op uring_enter submits it.
inline constexpr int64_t kUringPolled = int64_t{1} << 40;

/// Whether the op's offset and size are a range of the file.
constexpr bool has_range(AsyncRequest::Does does) {
    using Does = AsyncRequest::Does;
    constexpr auto bit = [](Does one) { return 1u << static_cast<unsigned>(one); };
    constexpr unsigned with =
        bit(Does::read) | bit(Does::write) | bit(Does::sync_range) | bit(Does::allocate) | bit(Does::advise);
    return (with >> static_cast<unsigned>(does) & 1u) != 0;
}

/// Of each code: what does not depend on the op.
struct RequestShape {
    AsyncRequest::Does does = AsyncRequest::Does::other;
    bool vectored = false, fixed_buffer = false;
};
inline constexpr size_t kRequestCodes = 64;
extern const std::array<RequestShape, kRequestCodes> uring_shapes, aio_shapes;

/// `kind` is uring_submit or aio_submit, `code` the op's arg, `flags` the op's. Replays ask this of every request.
inline AsyncRequest async_request(OpKind kind, int64_t code, int64_t flags = 0) {
    const bool aio = kind == OpKind::aio_submit, known = code >= 0 && code < int64_t{kRequestCodes};
    const RequestShape shape = known ? (aio ? aio_shapes : uring_shapes)[static_cast<size_t>(code)] : RequestShape();
    AsyncRequest request{shape.does, shape.vectored, shape.fixed_buffer};
    request.own_flags = aio ? flags : (flags & ~kUringPolled) >> kUringOwnFlags;
    constexpr int64_t kDataOnly = 1;  // IORING_FSYNC_DATASYNC
    if (!aio && request.does == AsyncRequest::Does::sync && (request.own_flags & kDataOnly) != 0) {
        request.does = AsyncRequest::Does::sync_data;
    }
    return request;
}

/// With the range. The op's kind has Trait::submits.
inline AsyncRequest async_request(OpKind kind, int64_t code, int64_t flags, int64_t offset, int64_t size) {
    AsyncRequest request = async_request(kind, code, flags);
    if (has_range(request.does)) {
        request.offset = offset;
        request.size = size;
    }
    return request;
}
inline AsyncRequest async_request(const Op& op) { return async_request(op.kind, op.arg, op.flags, op.offset, op.size); }
inline AsyncRequest async_request(const OpBlock& block, size_t i) {
    return async_request(static_cast<OpKind>(block.kind[i]), block.arg[i], block.flags[i], block.offset[i],
                         block.size[i]);
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// What an asynchronous request (ops uring_submit and aio_submit) does: the one place that reads IORING_OP_* and
// IOCB_CMD_*.
#pragma once

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

/// `kind` is uring_submit or aio_submit, `code` the op's arg, `flags` the op's.
AsyncRequest async_request(OpKind kind, int64_t code, int64_t flags = 0);
/// flags of uring_submit: IOSQE_* in the lowest 8 bits, the request's own above them.
inline constexpr int kUringOwnFlags = 8;
/// ... and this bit: the kernel's polling thread took the request (IORING_SETUP_SQPOLL); no op uring_enter submits it.
inline constexpr int64_t kUringPolled = int64_t{1} << 40;

/// With the range. The op's kind has Trait::submits.
AsyncRequest async_request(const Op& op);
AsyncRequest async_request(const OpBlock& block, size_t i);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Who performs asynchronous requests: a ring of io_uring, a context of libaio, or threads where neither is to be had.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "formats/oplog/async_request.h"

namespace reprise {

/// One request, as the queue is asked to perform it. `pieces` need to last until prepare() returns.
struct RequestCall {
    AsyncRequest asked;
    int fd = -1;
    uint8_t order = 0;  // IOSQE_IO_DRAIN, _IO_LINK, _IO_HARDLINK, _ASYNC, _CQE_SKIP_SUCCESS; of io_uring only
    uint32_t id = 0;    // not 0
    std::byte* buffer = nullptr;
    size_t bytes = 0;                    // of the buffer
    std::span<const iovec> pieces = {};  // of vectored ones
};

struct RequestDone {
    uint32_t id = 0;
    int64_t result = 0;  // or -errno
};

struct QueueOptions {
    uint32_t depth = 1;              // in flight at most, as far as the recording tells
    bool polled = false;             // a polling thread of the kernel takes them
    bool one_task = false;           // the task that submits first is the only one that uses it
    std::span<std::byte> area = {};  // that all reads go to, where they use buffers that are registered
};

/// One thread at a time prepares and submits, and one at a time takes; the two may be different ones.
class RequestQueue {
public:
    virtual ~RequestQueue() = default;
    /// Puts a request in line. False: there is no room before submit().
    virtual bool prepare(const RequestCall& call) = 0;
    /// Hands over what is in line; how many there were. What the kernel refuses at once is done with its error.
    virtual size_t submit() = 0;
    /// Those that are done, in the order in which they were. `wait_ns`: how long to wait for one; 0: not at all.
    virtual size_t take(std::span<RequestDone> out, int64_t wait_ns) = 0;
    /// Whether something may be done: take() would find it without a system call.
    virtual bool ready() const { return true; }
};

/// -errno where the kernel refuses.
struct MadeQueue {
    std::unique_ptr<RequestQueue> queue;
    int error = 0;
};
MadeQueue make_uring(const QueueOptions& options);
MadeQueue make_aio(const QueueOptions& options);
/// `depth` threads, which make plain calls.
std::unique_ptr<RequestQueue> make_threads(const QueueOptions& options);

/// The plain call that does the same: its result, or -errno.
int64_t perform_at_once(const RequestCall& call);

}  // namespace reprise

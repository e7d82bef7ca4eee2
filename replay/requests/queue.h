// SPDX-License-Identifier: MIT
// Who performs asynchronous requests: a ring of io_uring, a context of libaio, or threads where neither is to be had.
#pragma once

#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "formats/oplog/async_request.h"

namespace reprise {

/// A call on names, descriptors or memory. It names what it acts on in directories that were resolved before, and
/// follows no link at the end of a name; only an open resolves by itself, as `how` says.
struct NameCall {
    uint8_t code =
        0;  // IORING_OP_OPENAT2, _CLOSE, _STATX, _MKDIRAT, _UNLINKAT, _RENAMEAT, _LINKAT, _SYMLINKAT, _MADVISE
    int directory = -1, directory2 = -1;
    int fd = -1;                       // to close
    const char* name = "";             // in `directory`; of a symbolic link its target
    const char* name2 = "";            // in `directory2`; of a symbolic link its name
    uint32_t flags = 0;                // AT_*, RENAME_*
    uint32_t mask = 0;                 // of statx
    uint32_t mode = 0;                 // of mkdir
    open_how how = {};                 // of an open
    struct statx found = {};           // what statx found
    std::span<std::byte> memory = {};  // that madvise is about
    int advice = 0;
};

/// One request, as the queue is asked to perform it. `pieces` need to last until prepare() returns.
struct RequestCall {
    AsyncRequest asked;
    int fd = -1;
    uint8_t order = 0;  // IOSQE_FIXED_FILE, _IO_DRAIN, _IO_LINK, _IO_HARDLINK, _ASYNC, _CQE_SKIP_SUCCESS; io_uring only
    uint64_t handle = 0;  // tells what `fd` stands for from what a descriptor of that number stood for before
    uint32_t id = 0;      // not 0
    uint32_t serial = 0;  // told again when it is done: a log may use a number twice
    std::byte* buffer = nullptr;
    size_t bytes = 0;                    // of the buffer
    std::span<const iovec> pieces = {};  // of vectored ones
    /// Of a read that takes whole blocks around what was asked for: bytes before that, and how much it was.
    uint32_t head = 0;
    int64_t wanted = -1;
    NameCall* name = nullptr;  // of those that stand for calls (AsyncRequest::is_call); lasts until it is done
};

struct RequestDone {
    uint32_t id = 0;
    int64_t result = 0;  // or -errno
    uint32_t serial = 0;
    /// Of a request in the 64 bits that the kernel's queues hand back.
    static uint64_t word(uint32_t id, uint32_t serial) { return uint64_t{serial} << 32 | id; }
    static RequestDone of(uint64_t word, int64_t result) {
        return {static_cast<uint32_t>(word), result, static_cast<uint32_t>(word >> 32)};
    }
};

struct QueueOptions {
    uint32_t depth = 1;              // in flight at most, as far as the recording tells
    bool polled = false;             // a polling thread of the kernel takes them
    bool one_task = false;           // the task that submits first is the only one that uses it
    std::span<std::byte> area = {};  // that all reads go to, where they use buffers that are registered
};

/// Where a queue shows that something may be done: take() would find it without a system call.
struct DoneMark {
    const unsigned* head = nullptr;  // null: nowhere, one has to ask
    const unsigned* tail = nullptr;
    const unsigned* flags = nullptr;
    unsigned flag = 0;  // of `flags`: more than is between head and tail
    bool any() const {
        return __atomic_load_n(tail, __ATOMIC_ACQUIRE) != __atomic_load_n(head, __ATOMIC_RELAXED) ||
               (__atomic_load_n(flags, __ATOMIC_RELAXED) & flag) != 0;
    }
};

/// One thread at a time prepares and submits, and one at a time takes; the two may be different ones.
class RequestQueue {
public:
    virtual ~RequestQueue() = default;
    /// Puts a request in line. False: there is no room before submit().
    virtual bool prepare(const RequestCall& call) = 0;
    /// Hands over what is in line; how many there were. What the kernel refuses at once is done with its error.
    virtual size_t submit() = 0;
    /// Those that are done, in the order in which they were. `wait_ns`: how long to wait for one, or where none is done
    /// for `least`, which are in flight; 0: not at all.
    virtual size_t take(std::span<RequestDone> out, int64_t wait_ns, uint32_t least) = 0;
    /// Both at once, in one system call where the kernel has one. `*submitted`: as submit().
    virtual size_t submit_and_take(std::span<RequestDone> out, int64_t wait_ns, uint32_t least, size_t* submitted) {
        *submitted = submit();
        return take(out, wait_ns, least);
    }
    /// Waits for one while others look_beside(), but none of them take()s: that could take the result just before the
    /// wait begins. How many it took itself, into `out`: a queue may not be able to wait without that.
    virtual size_t wait_beside(std::span<RequestDone> out, int64_t wait_ns) { return take(out, wait_ns, 1); }
    /// What is done and was not told before. It stays in the queue, and ends the wait of the other one, until the next
    /// take(). None where the queue has no such looks.
    virtual size_t look_beside(std::span<RequestDone>) { return 0; }
    /// Lasts as long as the queue.
    virtual DoneMark done_mark() const { return {}; }
    /// Whether it makes such a NameCall.
    virtual bool makes(uint8_t) const { return false; }
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

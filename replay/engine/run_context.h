// SPDX-License-Identifier: MIT
// What an engine asks the run around it: whether to stop, who has ended, and descriptors handed between processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "formats/oplog/op.h"
#include "replay/plan/access.h"

namespace reprise {

/// A descriptor that waits to be taken by other processes (Plan::passed).
struct alignas(64) PassSlot {
    std::atomic<uint64_t> where{0};  // process id << 32 | descriptor; 0: not there yet
    std::atomic<uint32_t> taken{0};
};

class RunContext {
public:
    virtual bool stopped() const = 0;
    virtual bool ended(TaskId task) const = 0;
    /// By index in Plan::passed.
    virtual PassSlot& pass(size_t index) = 0;
    /// What a task's engine did otherwise than recorded, once it is over.
    virtual void add(const AccessCounts&) {}
    /// The kernel makes no queue for asynchronous requests, for that reason: threads perform them.
    virtual void requests_by_threads(bool /*aio*/, int /*error*/) {}
    /// The task's op needs results of a ring that has no request in flight, so that others have to make some. True:
    /// none of them ever will.
    virtual bool needs_in_vain(TaskId /*task*/) { return false; }
    /// It needs none any more.
    virtual void needs_none(TaskId /*task*/) {}

protected:
    ~RunContext() = default;
};

}  // namespace reprise

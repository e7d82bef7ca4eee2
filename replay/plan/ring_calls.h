// SPDX-License-Identifier: MIT
// Calls on names and descriptors that a job sent through its ring of io_uring (open, close, statx, rename...). The log
// has such a call as the op uring_submit, where it was submitted, and as the op of the call where it was done, right
// before the uring_complete of the request. A replay needs to know at the first of them what the second says.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/async_request.h"
#include "formats/oplog/oplog.h"

namespace reprise {

/// Whether a submission stands for a call, which may not be in the log.
inline bool stands_for_call(const OpBlock& block, size_t i, const AsyncRequest& asked) {
    return asked.is_call() && block.request[i] != 0 && block.result[i] >= 0;
}

struct RingCall {
    uint64_t submitted = 0;  // op uring_submit
    uint64_t called = 0;     // op of the call
    uint32_t request = 0;
    OpKind kind = OpKind::open;
    HandleId handle = 0;
    int32_t fd = -1;
    FileId file = 0, file2 = 0;
    int64_t flags = 0, mode = 0, arg = 0;
    uint32_t map = 0;
    int64_t offset = 0, size = 0;
    StringId text = 0;
    int64_t result = 0;

    bool operator==(const RingCall&) const = default;
};

/// Of one task.
struct TaskRingCalls {
    std::vector<RingCall> by_submission;                 // by RingCall::submitted
    std::vector<std::pair<uint64_t, uint32_t>> by_call;  // op of the call, its request; by op
    /// The one that op `op` submits; null: none.
    const RingCall* submitted_by(uint64_t op) const;

    bool operator==(const TaskRingCalls&) const = default;
};

struct Plan;

/// Fed with ops of one task after the other, each in its order, that the filter keeps: those of requests, and all that
/// come while `waits()`.
class RingCallScan {
public:
    void see(const OpBlock& block, size_t i);
    /// Whether such a call was submitted and is not done.
    bool waits() const { return !waiting_.empty(); }
    /// Whether the op of its call follows the request's submission. Once all ops were seen.
    bool has(uint32_t request) const { return found_.contains(request); }
    /// Fills TaskRequests::calls.
    void finish(Plan& plan) const;

private:
    struct Submitted {
        TaskId task = 0;
        uint64_t op = 0;
        AsyncRequest::Does does = AsyncRequest::Does::other;
    };
    struct Found {
        TaskId task;
        RingCall call;
    };
    std::unordered_map<uint32_t, Submitted> waiting_;
    std::unordered_map<uint32_t, Found> found_;
    std::optional<Found> last_;  // the last op of a call
};

}  // namespace reprise

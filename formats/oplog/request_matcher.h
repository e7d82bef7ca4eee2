// SPDX-License-Identifier: MIT
// Asynchronous requests from their submission to their completion, op by op: which ring each went to, how long it took
// and what it moved.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/async_request.h"
#include "formats/oplog/op_fields.h"
#include "formats/oplog/oplog.h"

namespace reprise {

/// A ring of io_uring, or all that a process has of libaio.
struct RingName {
    ProcessId process = 0;
    HandleId handle = 0;  // of io_uring; 0: not known, or libaio
    bool aio = false;

    bool operator<(const RingName& other) const {
        return process != other.process ? process < other.process
               : handle != other.handle ? handle < other.handle
                                        : aio < other.aio;
    }
};

struct SeenRing : RingName {
    int32_t pid = 0;
    int32_t fd = -1;      // of io_uring, where it was first entered; -1: never
    bool polled = false;  // the kernel's polling thread took requests
};

/// "io_uring, fd 5", "libaio"
std::string ring_name(const SeenRing& ring);

/// A request whose result the log has.
struct DoneRequest {
    uint32_t number = 0;
    uint32_t ring = 0;  // in RequestMatcher::rings()
    TaskId task = 0;    // that submitted it
    OpKind kind = OpKind::uring_submit;
    FileId file = 0;
    int64_t code = 0;  // IORING_OP_* or IOCB_CMD_*, by `kind`
    AsyncRequest what;
    int64_t begin = 0, end = 0;  // ns: the submission's end, the completion's end
    int64_t result = 0;          // bytes, or -errno

    int64_t latency() const { return end > begin ? distance_ns(begin, end) : 0; }
    uint64_t bytes() const { return result > 0 && (what.reads() || what.writes()) ? static_cast<uint64_t>(result) : 0; }
};

/// Memory: about 150 bytes for each request in flight, and 50 for each completion whose submission comes later, in
/// another task.
class RequestMatcher {
public:
    /// `tables`: of the log that the ops are from. `done` gets every request once its completion and its ring are
    /// known.
    RequestMatcher(const Tables& tables, std::function<void(const DoneRequest&)> done)
        : tables_(tables), done_(std::move(done)) {}

    /// The ops of each task in their order, tasks in any; ops without Trait::async do nothing. Not for ops that a run
    /// left out.
    void add(TaskId task, const Op& op);
    /// Requests that no uring_enter followed. Call once, at the end.
    void finish();

    const std::vector<SeenRing>& rings() const { return rings_; }
    /// Submitted, and no completion of them was seen.
    uint64_t unfinished() const { return open_.size(); }

private:
    static constexpr uint32_t kNoRing = UINT32_MAX;
    struct Result {
        int64_t end = 0, result = 0;
    };
    /// The ring of a request of io_uring is that of the next uring_enter of its task.
    struct OfTask {
        HandleId handle = 0;  // of its last uring_enter
        int32_t fd = -1;
        bool polled = false;
        std::vector<uint32_t> waiting;      // requests without a ring
        std::vector<DoneRequest> finished;  // of them, those that are done
    };

    void submit(TaskId task, const Op& op);
    void complete(const Op& op);
    void finished(DoneRequest& request);
    uint32_t ring_of(const RingName& name, int32_t fd);
    void assign(TaskId task);
    ProcessId process_of(TaskId task) const;

    const Tables& tables_;
    const std::function<void(const DoneRequest&)> done_;
    std::vector<SeenRing> rings_;
    std::map<RingName, uint32_t> by_name_;
    std::vector<OfTask> tasks_;
    std::unordered_map<uint32_t, DoneRequest> open_;  // submitted, not yet done
    std::unordered_map<uint32_t, Result> early_;      // done, not yet submitted
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Asynchronous requests (io_uring, libaio): which ring each belongs to, and what has to be done before the job goes on.
//
// Between submission and completion the storage decides, not the recording. What the job did after it had taken results
// waits for as many results here, whichever they are (edges `reaped`, or the order of the ops where the log has none of
// them), and a write of what a request read waits for that request (edges `resource`). Where the recording shows that
// a ring was kept full, so that its job waited only with so many requests in flight, a request needs but a free place.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "formats/oplog/async_request.h"
#include "formats/oplog/oplog.h"
#include "replay/plan/ring_calls.h"
#include "replay/plan/ring_looks.h"
#include "replay/plan/sleeping_looks.h"

namespace reprise {

/// A ring of io_uring, or all that a process has of libaio.
struct RequestRing {
    ProcessId process = 0;
    HandleId handle = 0;  // of io_uring; 0: not known, or libaio
    bool aio = false;
    bool polled = false;  // the kernel's polling thread takes the requests
    bool shared = false;  // several tasks submit to it, or wait for it
    bool full = false;    // the job waited only with `depth` requests in flight: each needs but a free place
    bool exact = false;   // the log says what the job had taken (edges `reaped`, or libaio); else what was done counts
    uint32_t depth = 0;   // most in flight at a time in the recording, until the job took their results
    uint64_t requests = 0;  // that a replay makes
    /// Of a ring each of whose requests was done before the job made the next, and for which it hardly ever waited: how
    /// many it keeps in flight where they take longer, the recording does not show. 0: it does.
    uint64_t at_once = 0;
    /// Computing of the job that was a wait: it looked for results in memory. And such of which that is not clear; ns.
    int64_t looked_ns = 0, unclear_looks_ns = 0;
    TaskId looker = 0;         // of a polled ring: the task that looks, where that is known (join_polled_jobs())
    bool part_blocks = false;  // some are not of whole blocks of 4 KiB
    uint64_t data_edges = 0;   // that wait for a very request

    bool operator==(const RequestRing&) const = default;
};

/// Before op `op`, or inside it: so many requests of a ring are done, or a very one is.
struct RequestNeed {
    uint64_t op = 0;
    uint64_t count = 0;
    uint32_t ring = 0;     // in Plan::rings
    uint32_t request = 0;  // 0: `count` of any
    bool inside = false;   // the op is itself the wait (uring_enter, aio_reap, the first aio_complete, a RingWait)
    bool looks = false;    // the job looks for it in memory, and keeps its processor

    bool operator==(const RequestNeed&) const = default;
};

/// Computing that was a wait for requests: what it waits for takes what it takes, and then so much is the job's own.
struct RingWait {
    uint64_t op = 0;
    int64_t own_ns = 0;

    bool operator==(const RingWait&) const = default;
};

/// Of one task. Empty where it makes no requests and waits for none.
struct TaskRequests {
    std::vector<RequestNeed> needs;                    // by op
    std::vector<std::pair<uint64_t, uint32_t>> rings;  // from that op on requests go to that ring; by op
    std::vector<uint64_t> polls;                       // waits for requests; by op
    std::vector<RingWait> looks;                       // by op
    TaskRingCalls calls;                               // of the requests, those that stand for calls on names
    bool any() const { return !needs.empty() || !rings.empty(); }
};

/// Whether a replay makes the request. Timers, polls, sockets and what is newer than this code take their recorded
/// time. Of calls, TaskRequests::calls says.
bool makes_request(const OpBlock& block, size_t i);
/// The same where what it asks for is known.
inline bool makes_request(const OpBlock& block, size_t i, const AsyncRequest& asked) {
    return block.request[i] != 0 && block.result[i] >= 0 && asked.is_made();
}

/// Fills TaskPlan::serves_ring: what the kernel's threads compute for requests, its threads here compute again.
/// `calls`: by task, whether it does more than compute and wait. Once the starts of tasks are known.
void find_ring_workers(Plan& plan, const std::vector<uint8_t>& calls);

/// Waits for requests are explained: TaskPlan::explained has them from here on.
void explain_polls(Plan& plan);

/// Fed with ops that the filter keeps, task after task, each in order: requests, waits, compute, and all while
/// calls_wait(). Results are taken before the job computes or
/// sleeps, and so before the submission that shows it. A poll (or epoll, or read of an eventfd)
/// that nobody else ended, in which requests of the task were done, was a wait for the first of them.
class RequestScan {
public:
    void see(const OpBlock& block, size_t i, ProcessId process);
    /// Whether the op of a call is to come, which a request stands for.
    bool calls_wait() const { return calls_.waits(); }
    /// Fills Plan::rings and TaskPlan::requests.
    void finish(Plan& plan);
    /// Of Plan::repeated_sleep_ns, what waits for results. Once finished.
    int64_t slept_ns() const { return slept_ns_; }

private:
    struct Submitted {
        TaskId task = 0;
        uint32_t ring = 0, request = 0;
        uint64_t op = 0;
        HandleId handle = 0;  // of the file
        int64_t begin = 0;
        bool paused = false;               // the job computed or slept before it, since it made the last one
        uint64_t after = 0;                // 1 + op of the uring_enter or aio_reap before that pause; 0: none
        int64_t pause = 0;                 // ns, when it began
        int64_t entered = 0;               // ns, when `after` was over
        uint64_t reaped = 0;               // 1 + op of the latest completion that the job had taken; 0: not told
        std::vector<uint64_t> needs = {};  // 1 + op of the completion of each very request
        uint64_t had = 0;                  // results of the ring that the job had taken; count()
        size_t look = 0;                   // before it: of looks_, from 1 on
        bool part = false;                 // see RequestRing::part_blocks
        bool call = false;                 // stands for a call, which may not be in the log
        bool reads = false;
    };
    struct Completed {
        TaskId task = 0;
        uint32_t request = 0;
        uint64_t op = 0;
        int64_t begin = 0;
        bool aio = false;
        uint32_t ring = 0;    // count()
        uint64_t number = 0;  // among those of its ring, from 1 on; 0: of a request that no replay makes
    };
    struct Wait {
        TaskId task = 0;
        uint32_t ring = 0;
        uint64_t op = 0;
        int64_t begin = 0, end = 0;
        int64_t least = 0;
        uint64_t reaped = 0;
        uint32_t request = 0;        // of a poll: the first that was done in it, whose ring it is
        int64_t took = 0;            // of a poll, ns
        bool sleep = false;          // see SleptFor
        uint64_t made = 0, had = 0;  // requests of the ring, and results that the job had taken; count()
    };
    /// The latest poll of the present task that nobody else ended.
    struct Poll {
        uint64_t op = 0;
        int64_t begin = 0, end = -1;  // ns; -1: none
        int64_t took = 0;
        bool cut = false;  // by a result
    };
    struct Ring;
    uint32_t ring_of(ProcessId process, HandleId handle, bool aio);
    void assign(uint32_t ring);
    void leave_task();
    void see_poll(const OpBlock& block, size_t i);
    void see_pause(const OpBlock& block, size_t i);
    void polled_for(const Completed& done);
    void join_sleeps(Plan& plan);
    void join_polled();
    void find_looks(Plan& plan);
    template <class A, class B>
    static bool by_time(const A& a, const B& b) {
        return std::tuple{a.begin, a.task, a.op} < std::tuple{b.begin, b.task, b.op};
    }
    uint64_t number_of(TaskId task, uint64_t op, uint32_t ring) const;
    template <class At>
    uint64_t taken(const RequestRing& facts, uint32_t number, const Ring& ring, const At& at, uint64_t& done) const;
    /// Orders and numbers what the ring had, and finds how much the job had taken when.
    void count(RequestRing& facts, uint32_t number, Ring& ring);
    /// Of the moments when the job had taken results since the request before.
    struct Takes {
        size_t all = 0, full = 0, drain = 0;  // from a full ring; of all that was in flight
        uint64_t in_flight = 0;               // before, in sum
    };
    static Takes takes_of(const RequestRing& facts, const Ring& ring);
    static bool only_looks(const RequestRing& facts, const Ring& ring);
    static bool kept_full(const RequestRing& facts, const Ring& ring);
    static uint64_t made_at_once(const Plan& plan, const RequestRing& facts, const Ring& ring);
    static uint64_t done_by(const Ring& ring, int64_t time);
    void need_at_submissions(Plan& plan, uint32_t number, const Ring& ring);
    static uint64_t need_in_waits(Plan& plan, uint32_t number, const Ring& ring);
    static void need_last(Plan& plan, uint32_t number, const Ring& ring, uint64_t waited);

    RingCallScan calls_;
    RingLooks looks_;
    SleepingLooks sleeping_;
    int64_t slept_ns_ = 0;
    std::vector<RequestRing> rings_;
    std::map<std::pair<ProcessId, std::pair<HandleId, bool>>, uint32_t> by_handle_;
    std::vector<Submitted> submitted_;
    std::vector<Completed> completed_;  // by task, op: as they were seen
    std::vector<Wait> waits_;
    // Of the present task.
    TaskId task_ = 0;
    ProcessId process_ = 0;
    size_t unassigned_ = 0;  // first of submitted_ whose ring is not known yet
    HandleId last_handle_ = 0;
    bool polled_ = false, reaps_ = false;
    Poll poll_;
    uint64_t entered_ = 0;     // 1 + op of the last uring_enter since a submission
    int64_t entered_end_ = 0;  // ns, when that was over
    bool paused_ = false;
    int64_t pause_ = 0;
    uint64_t reaped_ = 0;
};

}  // namespace reprise

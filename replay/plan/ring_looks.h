// SPDX-License-Identifier: MIT
// Jobs that look for results of requests in memory, again and again, and wait in no call (io_uring_peek_cqe in a loop,
// IORING_SETUP_SQPOLL). A recording has computing there, which ends just after a result came: that is a wait.
//
// A job that computes while its requests are in flight looks alike, but results come at any moment of its computing.
// So what decides is where the last result that it took lies in the computing before its next request: near the end
// each time (it looked), or anywhere. Decided for computing of one length, by powers of 2, as a job may do both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/oplog/op.h"

namespace reprise {

/// Computing of a task up to the result that it took last before it went on.
struct RingLook {
    TaskId task = 0;
    size_t first = 0, count = 0;  // of RingLooks::ops(): the computing before that result
    uint64_t op = 0;              // of the result
    int64_t looked_ns = 0;        // that computing
    int64_t own_ns = 0;           // from the result on to what the task did next
    uint32_t arrivals = 0;        // of results meanwhile; those that come together are one
    bool requests = false;        // it made a request next: else there is no telling which results it took
    bool took = true;             // one of them; else it computed, and did not look
};

/// Fed with the ops of a task in order, task after task.
class RingLooks {
public:
    void computed(TaskId task, uint64_t op, int64_t begin, int64_t ns);
    void result(TaskId task, uint64_t op, int64_t begin);
    /// The task makes a request. `taken`: 1 + op of the last result that it had taken; 0: not told, as likely as not
    /// all of them. What it did before is a look with that index less 1; 0: it is none.
    size_t request(TaskId task, uint64_t op, int64_t begin, uint64_t taken);
    /// The task takes results, and when they came is not known. Computing since it did something else, ns; 0: little.
    int64_t computed_before(TaskId task, uint64_t op);
    /// All ops were seen. Ops that were not end a look, too, and there is no telling what the task had taken by then.
    void finish() { follows(0, 0); }

    const std::vector<RingLook>& looks() const { return looks_; }
    /// Computing, by number.
    const std::vector<uint64_t>& ops() const { return ops_; }

private:
    struct Seen {
        uint64_t op = 0;
        int64_t begin = 0, ns = 0;  // ns: of computing; < 0: it is a result
    };
    void follows(TaskId task, uint64_t op);
    size_t end(uint64_t taken, int64_t begin, bool requests);
    TaskId task_ = 0;
    uint64_t next_ = 0;  // op that follows
    std::vector<Seen> seen_;
    std::vector<RingLook> looks_;
    std::vector<uint64_t> ops_;
};

/// What the looks of one task for results of one ring say.
class LookEvidence {
public:
    void add(const RingLook& look);
    void decide();
    /// The computing of such a look was a wait for the result.
    bool waited(const RingLook& look) const;
    /// Of looks that show neither the one nor the other: computing, ns.
    int64_t unclear_ns() const { return unclear_ns_; }

private:
    static size_t length_of(const RingLook& look);
    struct Length {
        double count = 0, evidence = 0;
        int64_t ns = 0;
        bool waited = false;
    };
    std::array<Length, 65> lengths_{};
    int64_t unclear_ns_ = 0;
};

}  // namespace reprise

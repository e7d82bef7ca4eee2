// SPDX-License-Identifier: MIT
// The asynchronous requests of a prediction: what is in flight in each ring, what has to wait for what, and which tasks
// wait for it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/async_request.h"
#include "replay/plan/plan.h"
#include "replay/predict/virtual_calls.h"

namespace reprise {

class VirtualRequests {
public:
    static constexpr uint32_t kNone = UINT32_MAX;

    struct Request {
        VirtualCall call;
        AsyncRequest asked;
        HandleId handle = 0;
        TaskId task = 0;
        uint32_t number = 0, ring = 0;
        bool posts = true;      // its completion counts: no IOSQE_CQE_SKIP_SUCCESS
        uint32_t next = kNone;  // linked to it
    };
    /// What a completion lets go.
    struct Released {
        std::vector<TaskId> tasks;
        std::vector<uint32_t> slots;  // of requests that begin
    };

    explicit VirtualRequests(const Plan& plan) : plan_(plan), rings_(plan.rings.size()), cursors_(plan.tasks.size()) {}

    struct Made {
        uint32_t slot = kNone;  // kNone: the plan knows no ring for it
        bool begins = false;    // at once; otherwise a completion releases it
    };
    /// What an op asks for. In the order of the task.
    Made make(const OpBlock& b, size_t i);
    Request& at(uint32_t slot) { return slots_[slot]; }
    Released complete(uint32_t slot, int64_t now);

    bool met(const RequestNeed& need) const;
    /// The task is released once, when the need is met.
    void wait(TaskId task, const RequestNeed& need) { waiters_[need.ring].push_back({task, need}); }
    /// Gives up a wait, and releases its task; none: nobody waits.
    std::optional<std::pair<TaskId, RequestNeed>> drop_waiter();
    /// It counts as done for those who wait for the very request.
    void forget(uint32_t number) { flying_.erase(number); }
    /// Where the request is, if it is in flight.
    std::optional<uint32_t> in_flight(uint32_t number) const;
    /// When the request was done. Told once.
    std::optional<int64_t> take_done(uint32_t number);

private:
    struct Ring {
        uint64_t done = 0;
        uint32_t in_flight = 0;         // or linked to one that is
        std::deque<uint32_t> deferred;  // behind one that waits for all before it
        uint32_t linked = kNone;        // the next one waits for this
    };
    struct Waiter {
        TaskId task = 0;
        RequestNeed need;
    };
    void release(uint32_t ring, Released& out);
    bool deferred_may_begin(const Ring& ring) const;
    uint32_t new_slot();

    const Plan& plan_;
    std::vector<Ring> rings_;
    std::vector<size_t> cursors_;  // by task, in TaskRequests::rings
    std::deque<Request> slots_;
    std::vector<uint8_t> drains_;  // by slot: waits for all before it
    std::vector<uint32_t> free_;
    std::unordered_map<uint32_t, uint32_t> flying_;              // slot by number
    std::unordered_map<uint32_t, int64_t> done_;                 // when, by number
    std::unordered_map<uint32_t, std::vector<Waiter>> waiters_;  // by ring
};

}  // namespace reprise

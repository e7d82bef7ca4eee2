// SPDX-License-Identifier: MIT
// Time-outs of event loops that ran out: timers, which end at a time of their own, however long the waits before took.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/oplog/op.h"

namespace reprise {

/// A wait that ran out `after_ns` after the op `armed` of its task began, the first wait that had to end then.
struct Timer {
    uint64_t armed = 0, op = 0;
    int64_t after_ns = 0;
    bool loop = false;  // of an event loop: what others send ends the wait before the timer does
};

/// An event loop waits for descriptors until its next timer. Whatever comes before ends that wait, and the next one has
/// a shorter time-out: all of them are to end at the same time. A loop with such a timer has no other waits that run
/// out than its timers', those that nothing came before among them.
class Timers {
public:
    /// The ops of one task, in their order.
    void see(uint64_t op, OpKind kind, int64_t arg, int64_t result, int64_t begin, int64_t duration);
    /// Of the task seen so far, ascending. The next op is of another task.
    std::vector<Timer> take();

private:
    struct Armed {
        uint64_t op = 0;
        int64_t begin = 0, ends = 0;
    };
    std::optional<Armed> armed_;
    std::vector<Timer> done_;
    bool kept_ = false;  // a timer was, over a wait that something else ended
};

}  // namespace reprise

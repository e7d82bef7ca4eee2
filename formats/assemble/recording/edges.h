// SPDX-License-Identifier: MIT
// Who waited for whom: edges between the ops of a raw recording, found as the records come. An op whose source is not
// known yet waits for it a while; the assembler holds it as long.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/assemble/assembler.h"

namespace reprise {

/// A recorded task by its numbers.
using RawTaskKey = uint64_t;
inline RawTaskKey raw_task_key(uint32_t pid, uint32_t tid) { return uint64_t{pid} << 32 | tid; }

/// An op, or where one would be: a call that made none stands before op `number`.
struct RawOpRef {
    TaskId task = 0;
    uint64_t number = 0;
    int64_t begin = 0, end = 0;  // ns since the origin, of the call
    bool slept = false;          // it waited for somebody inside
    bool is_op = true;
    bool delivered = false;  // on a socket or terminal: the kernel delivers it, and may wake others later
};

/// What made a sleeper runnable.
struct RawWaker {
    RawTaskKey task = 0;
    int64_t enter = 0;      // ns since the origin, of the call it was in
    bool deferred = false;  // not that call itself, but what it left to the kernel (RAW_FLAG_DEFERRED)
    EdgeKind kind = EdgeKind::wake;
};

class RawEdges {
public:
    /// How long an op may wait for its source, ns of the recording's time.
    static constexpr int64_t kLag = 10'000'000;

    /// `settle(task, enter)` brings a task up to the call it is in and returns the number of its next op.
    using Settle = std::function<uint64_t(RawTaskKey task, int64_t enter)>;
    RawEdges(Assembler& assembler, Settle settle) : assembler_(assembler), settle_(std::move(settle)) {}

    void sent(const CallEffect::Moved& moved, const RawOpRef& source);
    /// True where the message's source is known or awaited: the op needs no other edge.
    bool received(const CallEffect::Moved& moved, const RawOpRef& target);
    /// A call that can wake others ended; `enter` names it.
    void may_have_woken(RawTaskKey task, int64_t enter, const RawOpRef& source);
    void woken(const RawOpRef& target, const RawWaker& waker);
    void add(const RawOpRef& target, const RawOpRef& source, EdgeKind kind);
    /// Markers: the end of a fetch by a process whose parent is `parent`, and the batch it became.
    void fetched(uint32_t process, uint32_t parent, std::string_view loader, int64_t number, const RawOpRef& source);
    void batch(uint32_t process, std::string_view loader, int64_t number, const RawOpRef& target);

    /// No record that ends before `now` is to come.
    void advance(int64_t now);
    void finish() { advance(INT64_MAX); }
    void forget_task(RawTaskKey task) { wakers_.erase(task); }

    uint64_t wakes_unmatched() const { return wakes_unmatched_; }
    uint64_t messages_unmatched() const { return messages_unmatched_; }

private:
    struct Send {
        int64_t end = 0;  // bytes sent up to here
        RawOpRef source;
    };
    struct Channel {
        std::deque<Send> sends;
        int64_t shift = 0;  // bytes that came from where nobody recorded
        int64_t sent = 0;
        std::deque<std::pair<int64_t, RawOpRef>> waiting;  // bytes received up to here, by whom
    };
    struct Waiting {
        int64_t until = 0;
        RawOpRef target;
        RawWaker waker;
        uint64_t channel = 0;
    };
    struct Awaited {
        RawWaker waker;
        RawOpRef target;
    };
    struct WakingCall {
        int64_t enter = 0;
        RawOpRef source;
    };
    void give_up(const Waiting& waiting);
    void add_wake(const RawOpRef& target, const RawOpRef& source, const RawWaker& waker);

    Assembler& assembler_;
    Settle settle_;
    std::unordered_map<uint64_t, Channel> channels_;
    std::unordered_map<RawTaskKey, std::deque<WakingCall>> wakers_;
    std::deque<Waiting> waiting_;                                                      // by `until`
    std::unordered_map<RawTaskKey, std::vector<Awaited>> awaited_;                     // by waker
    std::map<std::pair<uint32_t, std::string>, std::map<int64_t, RawOpRef>> fetches_;  // by consumer and loader
    uint64_t wakes_unmatched_ = 0, messages_unmatched_ = 0;
};

/// Whether a call of number `waker_nr` can end a wait inside a call of number `nr`.
bool can_wake(uint16_t waker_nr, uint16_t nr, bool interruptible);

}  // namespace reprise

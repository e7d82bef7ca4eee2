// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/edges.h"

#include <algorithm>

#include "formats/oplog/syscalls.h"

namespace reprise {
namespace {

constexpr size_t kMostSends = 65536;        // of a channel that nobody reads
constexpr size_t kMostWakingCalls = 16384;  // of a task; a wake is recorded only when the sleeper runs again
constexpr size_t kMostFetches = 65536;      // of a loader

}  // namespace

bool can_wake(uint16_t waker_nr, uint16_t nr, bool interruptible) {
    const Syscall *waker = find_syscall(waker_nr), *call = find_syscall(nr);
    // Calls on names also make others wait for the kernel's own locks, in sleeps that no signal ends.
    const int reasons = waker && call ? waker->wakes & call->waits : 0;
    return (interruptible ? reasons : reasons & ~wake::names) != 0;
}

// A source that had not ended when the target continued had at least begun. If the source slept itself, it may have
// waited for the target: then only the op before it is certain. Either way time runs backwards along edges, so that
// they form no cycle.
void RawEdges::add(const RawOpRef& target, const RawOpRef& source, EdgeKind kind) {
    if (source.task == 0 || source.task == target.task) {
        return;
    }
    if (source.begin >= target.end && source.end > target.end) {
        return;
    }
    uint64_t op = source.number;
    if (!source.is_op || (source.end > target.end && source.slept)) {
        if (op == 0) {
            return;
        }
        --op;
    }
    assembler_.add_edge(target.task, target.number, {source.task, kind, 100, op});
}

void RawEdges::sent(const CallEffect::Moved& moved, const RawOpRef& source) {
    Channel& channel = channels_[moved.channel];
    if (moved.to == moved.from) {
        return;
    }
    channel.sent = moved.to;
    const int64_t end = moved.to + channel.shift;
    if (!moved.counts_bytes) {
        channel.sends.clear();  // whoever reads an eventfd next reads all that was added
    }
    channel.sends.push_back({end, source});
    if (channel.sends.size() > kMostSends) {
        channel.sends.pop_front();
    }
    while (!channel.waiting.empty() && (channel.waiting.front().first <= end || !moved.counts_bytes)) {
        add(channel.waiting.front().second, source, EdgeKind::message);
        channel.waiting.pop_front();
    }
}

bool RawEdges::received(const CallEffect::Moved& moved, const RawOpRef& target) {
    if (moved.to == moved.from) {
        return false;
    }
    Channel& channel = channels_[moved.channel];
    if (!moved.counts_bytes) {
        if (channel.sends.empty()) {
            return false;
        }
        add(target, channel.sends.back().source, EdgeKind::message);
        return true;
    }
    while (!channel.sends.empty() && channel.sends.front().end < moved.to) {
        channel.sends.pop_front();
    }
    if (!channel.sends.empty()) {
        add(target, channel.sends.front().source, EdgeKind::message);
        return true;
    }
    channel.waiting.emplace_back(moved.to, target);
    Waiting waiting;
    waiting.until = target.end > INT64_MAX - kLag ? INT64_MAX : target.end + kLag;
    waiting.target = target;
    waiting.channel = moved.channel;
    waiting_.push_back(waiting);
    // If nothing was ever sent, the other end is not recorded: a wake may still give the edge.
    return channel.sent > 0;
}

void RawEdges::may_have_woken(RawTaskKey task, int64_t enter, const RawOpRef& source) {
    auto& calls = wakers_[task];
    calls.push_back({enter, source});
    if (calls.size() > kMostWakingCalls) {
        calls.pop_front();
    }
    const auto it = awaited_.find(task);
    if (it == awaited_.end()) {
        return;
    }
    std::erase_if(it->second, [&](const Awaited& each) {
        if (each.waker.enter > enter) {
            return false;
        }
        if (each.waker.enter == enter) {
            add_wake(each.target, source, each.waker);
        }
        return true;
    });
    if (it->second.empty()) {
        awaited_.erase(it);
    }
}

// A soft interrupt in a call delivers what was sent to a socket, and whatever else comes to the machine just then; a
// worker what was written to a terminal. Only calls on such are taken for the cause.
void RawEdges::add_wake(const RawOpRef& target, const RawOpRef& source, const RawWaker& waker) {
    if (!waker.deferred || source.delivered) {
        add(target, source, waker.kind);
    }
}

void RawEdges::woken(const RawOpRef& target, const RawWaker& waker) {
    if (const auto it = wakers_.find(waker.task); it != wakers_.end()) {
        const auto& calls = it->second;
        const auto found = std::lower_bound(calls.begin(), calls.end(), waker.enter,
                                            [](const WakingCall& call, int64_t enter) { return call.enter < enter; });
        if (found != calls.end() && found->enter == waker.enter) {
            return add_wake(target, found->source, waker);
        }
        if (found != calls.end()) {
            ++wakes_unmatched_;
            return;
        }
    }
    awaited_[waker.task].push_back({waker, target});
    Waiting waiting;
    waiting.until = target.end > INT64_MAX - kLag ? INT64_MAX : target.end + kLag;
    waiting.target = target;
    waiting.waker = waker;
    waiting_.push_back(waiting);
}

// The source's call has not ended in time: use the op before it.
void RawEdges::give_up(const Waiting& waiting) {
    if (waiting.channel) {
        Channel& channel = channels_[waiting.channel];
        if (channel.waiting.empty() || channel.waiting.front().second.task != waiting.target.task ||
            channel.waiting.front().second.number != waiting.target.number) {
            return;
        }
        // These bytes came from an unrecorded sender; bytes sent later follow them.
        const int64_t to = channel.waiting.front().first;
        channel.shift = std::max(channel.shift, to - channel.sent);
        channel.waiting.pop_front();
        ++messages_unmatched_;
        return;
    }
    const RawWaker& waker = waiting.waker;
    const auto it = awaited_.find(waker.task);
    if (it == awaited_.end()) {
        return;
    }
    const auto found = std::find_if(it->second.begin(), it->second.end(), [&](const Awaited& each) {
        return each.waker.enter == waker.enter && each.target.task == waiting.target.task &&
               each.target.number == waiting.target.number;
    });
    if (found == it->second.end()) {
        return;
    }
    it->second.erase(found);
    if (it->second.empty()) {
        awaited_.erase(it);
    }
    RawOpRef source;
    // What a call is on, it says when it ends.
    source.number = waker.deferred ? 0 : settle_(waker.task, waker.enter);
    if (source.number == 0) {
        ++wakes_unmatched_;
        return;
    }
    source.task = assembler_.task(static_cast<int32_t>(waker.task >> 32), static_cast<int32_t>(waker.task));
    source.begin = source.end = waker.enter;
    source.is_op = false;
    add(waiting.target, source, waker.kind);
}

void RawEdges::advance(int64_t now) {
    while (!waiting_.empty() && waiting_.front().until <= now) {
        const Waiting waiting = waiting_.front();
        waiting_.pop_front();
        give_up(waiting);
    }
}

void RawEdges::fetched(uint32_t process, uint32_t parent, std::string_view loader, int64_t number,
                       const RawOpRef& source) {
    for (const uint32_t consumer : {process, parent}) {
        if (consumer == 0) {
            continue;
        }
        auto& numbers = fetches_[{consumer, std::string(loader)}];
        if (numbers.size() >= kMostFetches) {
            numbers.erase(numbers.begin());
        }
        numbers[number] = source;
    }
}

void RawEdges::batch(uint32_t process, std::string_view loader, int64_t number, const RawOpRef& target) {
    const auto numbers = fetches_.find({process, std::string(loader)});
    if (numbers == fetches_.end()) {
        return;
    }
    const auto found = numbers->second.find(number);
    if (found == numbers->second.end()) {
        return;
    }
    if (found->second.end <= target.end) {
        add(target, found->second, EdgeKind::marker);
    }
    numbers->second.erase(found);
}

}  // namespace reprise

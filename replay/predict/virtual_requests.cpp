// SPDX-License-Identifier: MIT
#include "replay/predict/virtual_requests.h"

#include <utility>

namespace reprise {
namespace {

// IOSQE_IO_DRAIN, _IO_LINK, _IO_HARDLINK, _CQE_SKIP_SUCCESS
constexpr int64_t kDrain = 1 << 1, kLinks = 1 << 2 | 1 << 3, kSilent = 1 << 6;

}  // namespace

uint32_t VirtualRequests::new_slot() {
    if (free_.empty()) {
        slots_.emplace_back();
        drains_.push_back(0);
        return static_cast<uint32_t>(slots_.size() - 1);
    }
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
}

VirtualRequests::Made VirtualRequests::make(const OpBlock& b, size_t i) {
    const auto& own = plan_.tasks[b.task].requests.rings;
    size_t& cursor = cursors_[b.task];
    while (cursor + 1 < own.size() && own[cursor + 1].first <= b.first + i) {
        ++cursor;
    }
    if (cursor >= own.size() || own[cursor].second >= rings_.size()) {
        return {};
    }
    const uint32_t slot = new_slot();
    Request& made = slots_[slot];
    made = {};
    made.asked = async_request(b, i);
    made.handle = b.handle[i];
    made.task = b.task;
    made.number = b.request[i];
    made.ring = own[cursor].second;
    const int64_t order = static_cast<OpKind>(b.kind[i]) == OpKind::uring_submit ? b.flags[i] : 0;
    made.posts = (order & kSilent) == 0;
    flying_[made.number] = slot;

    Ring& ring = rings_[made.ring];
    const uint32_t before = std::exchange(ring.linked, (order & kLinks) != 0 ? slot : kNone);
    drains_[slot] = (order & kDrain) != 0 ? 1 : 0;
    if (before != kNone) {
        slots_[before].next = slot;
        ++ring.in_flight;
    } else if (!ring.deferred.empty() || (drains_[slot] != 0 && ring.in_flight != 0)) {
        ring.deferred.push_back(slot);
    } else {
        ++ring.in_flight;
        return {slot, true};
    }
    return {slot, false};
}

bool VirtualRequests::deferred_may_begin(const Ring& ring) const {
    return !ring.deferred.empty() && (drains_[ring.deferred.front()] == 0 || ring.in_flight == 0);
}

VirtualRequests::Released VirtualRequests::complete(uint32_t slot, int64_t now) {
    Released out;
    Request& request = slots_[slot];
    Ring& ring = rings_[request.ring];
    --ring.in_flight;
    ring.done += request.posts ? 1 : 0;
    if (ring.linked == slot) {
        ring.linked = kNone;
    }
    if (request.next != kNone) {
        out.slots.push_back(request.next);
    }
    while (deferred_may_begin(ring)) {
        out.slots.push_back(ring.deferred.front());
        ring.deferred.pop_front();
        ++ring.in_flight;
    }
    flying_.erase(request.number);
    done_[request.number] = now;
    release(request.ring, out);
    free_.push_back(slot);
    return out;
}

void VirtualRequests::release(uint32_t ring, Released& out) {
    const auto found = waiters_.find(ring);
    if (found == waiters_.end()) {
        return;
    }
    std::erase_if(found->second, [&](const Waiter& waiter) {
        const bool goes_on = met(waiter.need);
        if (goes_on) {
            out.tasks.push_back(waiter.task);
        }
        return goes_on;
    });
}

std::optional<std::pair<TaskId, RequestNeed>> VirtualRequests::drop_waiter() {
    for (auto& [ring, waiters] : waiters_) {
        if (!waiters.empty()) {
            const Waiter dropped = waiters.back();
            waiters.pop_back();
            return std::pair(dropped.task, dropped.need);
        }
    }
    return std::nullopt;
}

bool VirtualRequests::met(const RequestNeed& need) const {
    return need.request != 0 ? !flying_.contains(need.request) : rings_[need.ring].done >= need.count;
}

std::optional<uint32_t> VirtualRequests::in_flight(uint32_t number) const {
    const auto found = flying_.find(number);
    return found == flying_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<int64_t> VirtualRequests::take_done(uint32_t number) {
    const auto found = done_.find(number);
    if (found == done_.end()) {
        return std::nullopt;
    }
    const int64_t when = found->second;
    done_.erase(found);
    return when;
}

}  // namespace reprise

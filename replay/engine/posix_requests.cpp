// SPDX-License-Identifier: MIT
// Asynchronous requests: a recorded ring is a ring here, and libaio's context a context. What waits for what is in the
// plan (replay/plan/requests.h).
#include <algorithm>
#include <utility>

#include "formats/oplog/async_request.h"
#include "replay/engine/posix.h"

namespace reprise {
namespace {

constexpr int64_t kSlice = 50'000'000;      // ns, after which a wait looks whether the run was stopped
constexpr std::ptrdiff_t kNeedsAhead = 16;  // of the plan's, brought into the processor's caches

/// What it does counts as the time of a call of the op at hand.
template <class Do>
auto as_call(const Do& what) {
    if (!sys::call_ticks.wanted) {
        return what();
    }
    const uint64_t entered = ticks_now();
    const auto result = what();
    sys::call_ticks.left = ticks_now();
    if (sys::call_ticks.entered == 0) {
        sys::call_ticks.entered = entered;
    }
    return result;
}

/// As keeps(), of a request or its completion: a column that the kind does not have is 0, which is kept.
bool keeps_request(const Plan& plan, const OpBlock& b, size_t i) {
    if (!plan.selector->keeps_request(b.request[i])) {
        return false;
    }
    const HandleId handle = b.handle[i];
    const bool handle_kept = handle >= plan.handle_flags.size() || (plan.handle_flags[handle] & kHandleLeftOut) == 0;
    return handle_kept && plan.keeps_file(b.file[i]);
}

}  // namespace

int64_t PosixEngine::submit_async(const OpBlock& b, size_t i, OpKind kind) {
    switch (kind) {
        case OpKind::uring_submit:
        case OpKind::aio_submit: return request(b, i);
        case OpKind::uring_complete:
        case OpKind::aio_complete: return result_of(b, i);
        default: return enter(b, i);
    }
}

ReplayedRing* PosixEngine::next_ring_at(uint64_t op) {
    const auto& rings = task_.requests.rings;
    for (; next_ring_ < rings.size() && rings[next_ring_].first <= op; ++next_ring_) {
        ring_number_ = rings[next_ring_].second;
        ring_ = &worker_.ring(rings[next_ring_].second);
    }
    next_ring_op_ = next_ring_ < rings.size() ? rings[next_ring_].first : UINT64_MAX;
    return ring_;
}

void PosixEngine::hand_over() {
    in_line_ = false;
    if (ring_ != nullptr) {
        ring_->submit();
    }
}

// Whether somebody else may still make the requests that a shared ring waits for.
bool PosixEngine::others_live() const {
    for (TaskId task = 1; task < worker_.plan.tasks.size(); ++task) {
        const TaskPlan& other = worker_.plan.tasks[task];
        if (&other != &task_ && other.process == task_.process && other.requests.any() && !worker_.run.ended(task)) {
            return true;
        }
    }
    return false;
}

bool PosixEngine::await(const RequestNeed& need) {
    ReplayedRing& ring = ring_of(need);
    if (has(ring, need)) {
        return true;
    }
    look(ring);
    if (has(ring, need)) {
        return true;
    }
    uint64_t count = need.request == 0 ? need.count : 0;
    const ReplayedRing::Until until{need.count, need.request};
    if (in_line_ && !at_once_ && !need.looks && &ring == ring_) {
        in_line_ = false;
        ring.submit_and_wait(kSlice, std::exchange(count, 0), until);
    } else if (in_line_) {
        hand_over();
    }
    const auto self = static_cast<TaskId>(&task_ - worker_.plan.tasks.data());
    bool told = false;
    for (uint64_t seen = ring.done(); !has(ring, need); seen = ring.done()) {
        if (worker_.run.stopped()) {
            return false;
        }
        if (at_once_) {
            // What was made is done: whoever shares the ring may make more.
            if (!ring.shared() || !others_live()) {
                return true;
            }
            ring.wait_for_skips(seen);
            continue;
        }
        if (need.looks && looks_ && ring.in_flight() != 0) {
            look_on(ring, need);
        } else {
            ring.wait(kSlice, std::exchange(count, 0), until);
        }
        make_put_off();
        if (has(ring, need) || ring.in_flight() != 0) {
            if (std::exchange(told, false)) {
                worker_.run.needs_none(self);
            }
            continue;
        }
        // A log may ask for more than its requests can give.
        if (!others_live()) {
            break;
        }
        told = true;
        if (worker_.run.needs_in_vain(self)) {
            break;
        }
    }
    if (told) {
        worker_.run.needs_none(self);
    }
    return true;
}

/// As a job that looks for results in memory and keeps its processor: waking up would take longer than many requests.
void PosixEngine::look_on(ReplayedRing& ring, const RequestNeed& need) {
    while (!has(ring, need) && ring.in_flight() != 0 && !worker_.run.stopped()) {
        spin_pause();
        look(ring);
    }
}

void PosixEngine::passed_needs(const RequestNeed* next) {
    next_need_ = next;
    next_need_op_ = next < no_need_ ? next->op : UINT64_MAX;
}

// What is there already takes no time.
bool PosixEngine::await_needs(uint64_t op) {
    const RequestNeed* need = next_need_;
    __builtin_prefetch(need + std::min<std::ptrdiff_t>(kNeedsAhead, no_need_ - need));
    while (need->op < op || has(ring_of(*need), *need)) {
        ++need;
        if (need == no_need_ || need->op > op) {
            passed_needs(need);
            return true;
        }
    }
    next_need_ = need;
    return wait_for_needs(op);
}

bool PosixEngine::wait_for_needs(uint64_t op) {
    return as_call([&] {
        bool goes_on = true;
        const RequestNeed* need = next_need_;
        for (; need < no_need_ && need->op <= op; ++need) {
            goes_on = goes_on && await(*need);
        }
        passed_needs(need);
        return goes_on;
    });
}

ReplayedRing& PosixEngine::ring_of(const RequestNeed& need) {
    return ring_ != nullptr && need.ring == ring_number_ ? *ring_ : worker_.ring(need.ring);
}

/// What follows from the op and the descriptor. `buffer`: of a read.
void PosixEngine::fill(RequestCall& call, const OpBlock& b, size_t i, std::byte* buffer) {
    const AsyncRequest& asked = call.asked;
    call.handle = b.handle[i];
    call.id = b.request[i];
    call.order = b.kind[i] == static_cast<uint8_t>(OpKind::uring_submit) ? b.flags[i] & kOrderFlags : 0;
    const bool writes = asked.writes();
    call.buffer = writes ? outgoing(b.handle[i], write_size(asked.size)) : buffer;
    call.bytes = writes ? write_size(asked.size) : read_size(asked.size);
    if (asked.vectored) {
        const size_t most = writes ? worker_.pattern.size() : buffer_bytes_;
        const int count = pieces(b.list_of(i), asked.size, call.buffer, most);
        call.pieces = {iov_.data(), static_cast<size_t>(count)};
    }
}

int64_t PosixEngine::request(const OpBlock& b, size_t i) {
    if (drops_requests_ && !keeps_request(worker_.plan, b, i)) {
        return not_performed(LeftOut::filter);
    }
    const uint64_t op = b.first + i;
    RequestCall call{.asked = async_request(b, i)};  // no copy: vectors loaded from what was just stored in parts stall
    const AsyncRequest& asked = call.asked;
    if (asked.is_call()) {
        return ring_call(b, i);
    }
    const bool known = makes_request(b, i, asked);
    ReplayedRing* const ring = known && !at_once_ ? ring_at(op) : nullptr;
    int64_t refusal = known ? 0 : not_performed(LeftOut::unsupported);
    if (ring != nullptr && !await(op)) {
        return not_performed(LeftOut::stopped);
    }
    if (!opening_.empty() && ring != nullptr && asked.reads() && !asked.vectored && !is_direct(b.handle[i]) &&
        put_off(b, i, b.handle[i], asked, *ring)) {
        return b.result[i];
    }
    call.fd = refusal == 0 ? descriptor(b.handle[i], &refusal) : -1;
    if (ring == nullptr) {
        return refusal != 0 ? made_at_once(b, i, refusal, false) : make_at_once(b, i, call);
    }
    if (refusal != 0) {
        ring->skip(1);
        return refusal;
    }
    return make(b, i, *ring, call);
}

/// A request that a run which changes nothing does not make: who waits for its ring must not wait for it.
void PosixEngine::leave_request(const OpBlock& b, size_t i) {
    if (!info(static_cast<OpKind>(b.kind[i])).is(Trait::submits) || !makes_request(b, i)) {
        return;
    }
    if (ring_at(b.first + i) == nullptr || await(b.first + i)) {
        made_at_once(b, i, not_performed(LeftOut::read_only), true);
    }
}

// Only what may be part of one is asked about: a request of whole blocks of 4 KiB is made as it is.
int64_t PosixEngine::part_of_direct(HandleId handle, const AsyncRequest& asked, int fd) {
    const BlockRange range{asked.offset, asked.size};
    const bool moves_data = asked.reads() || asked.writes();
    if (!moves_data || asked.offset < 0 || fd < 0 || !range.is_part(kUsualBlock)) {
        return 0;
    }
    if (asked_handle_ != handle) {
        asked_handle_ = handle;
        asked_block_ = direct_block(fd);
    }
    return range.is_part(asked_block_) ? asked_block_ : 0;
}

int64_t PosixEngine::make_in_blocks(const OpBlock& b, size_t i, const RequestCall& call, int64_t block) {
    const BlockRange asked{call.asked.offset, static_cast<int64_t>(call.bytes)};
    const int64_t result = as_call([&] {
        if (call.asked.reads()) {
            return read_part(call.fd, asked, asked.size, block);
        }
        const int64_t written = write_around_direct(call.fd, call.buffer, asked.offset, asked.size);
        count_part(asked, written, -1);
        return written;
    });
    return made_at_once(b, i, result, true);
}

int64_t PosixEngine::make(const OpBlock& b, size_t i, ReplayedRing& ring, RequestCall& call) {
    const AsyncRequest& asked = call.asked;
    const int64_t block = part_of_block(b.handle[i], asked, call.fd);
    const auto wanted = [&] { return BlockRange{asked.offset, static_cast<int64_t>(read_size(asked.size))}; };
    if (block != 0) {
        const bool fits = static_cast<uint64_t>(wanted().around(block).size) <= ring.buffer_bytes();
        if (!asked.reads() || !fits) {
            fill(call, b, i, buffer_);
            return make_in_blocks(b, i, call, block);
        }
    }
    fill(call, b, i, asked.writes() ? nullptr : ring.buffer());
    if (block != 0) {
        const BlockRange part = wanted(), whole = part.around(block);
        call.head = static_cast<uint32_t>(part.offset - whole.offset);
        call.wanted = part.size;
        call.asked.offset = whole.offset;
        call.asked.vectored = false;
        call.bytes = static_cast<size_t>(whole.size);
        count_part(part, part.size, whole.size);
    }
    keep_order(call.order);
    if (!ring.add(call)) {
        ring.skip(1);
        return not_performed(LeftOut::unsupported);
    }
    in_line_ = true;
    const bool aio = b.kind[i] == static_cast<uint8_t>(OpKind::aio_submit);
    // The requests of one call of io_submit follow one another, and the first one has its time.
    const bool more = aio && i + 1 < b.count() && b.kind[i + 1] == b.kind[i] && b.duration[i + 1] == 0;
    if ((aio && !more) || (b.flags[i] & kUringPolled) != 0) {
        as_call([&] {
            hand_over();
            return 0;
        });
    }
    return b.result[i];
}

int64_t PosixEngine::make_at_once(const OpBlock& b, size_t i, RequestCall& call) {
    fill(call, b, i, buffer_);
    if (const int64_t block = part_of_block(b.handle[i], call.asked, call.fd); block != 0) {
        return make_in_blocks(b, i, call, block);
    }
    return made_at_once(b, i, as_call([&] { return perform_at_once(call); }), true);
}

int64_t PosixEngine::made_at_once(const OpBlock& b, size_t i, int64_t result, bool told) {
    if (told) {
        const std::lock_guard guard(worker_.lock);
        worker_.requests[b.request[i]] = result;
    }
    if (ReplayedRing* const ring = makes_request(b, i) ? ring_at(b.first + i) : nullptr) {
        ring->skip(1);
    }
    return told ? b.result[i] : result;
}

/// What made_at_once() kept for the completion.
int64_t PosixEngine::take_kept(uint32_t request) {
    const std::lock_guard guard(worker_.lock);
    const auto found = worker_.requests.find(request);
    if (found == worker_.requests.end()) {
        return not_performed(LeftOut::unsupported);
    }
    const int64_t result = found->second;
    worker_.requests.erase(found);
    return result;
}

int64_t PosixEngine::enter(const OpBlock& b, size_t i) {
    const bool goes_on = await(b.first + i);  // hands over where it has to wait, in the same system call
    if (in_line_) {
        as_call([&] {
            hand_over();
            return 0;
        });
        glance();  // memory is done with a request when the call returns
    }
    return goes_on ? b.result[i] : not_performed(LeftOut::stopped);
}

int64_t PosixEngine::result_of(const OpBlock& b, size_t i) {
    if (drops_requests_ && !keeps_request(worker_.plan, b, i)) {
        return not_performed(LeftOut::filter);
    }
    const uint32_t request = b.request[i];
    int64_t result = 0;
    const auto is_told = [&] {
        const auto known = told_.empty() ? told_.end() : told_.find(request);
        if (known == told_.end()) {
            return false;
        }
        result = known->second.result;
        sys::call_ticks.left = known->second.tick;
        told_.erase(known);
        return true;
    };
    if (is_told()) {
        return result;
    }
    if (at_once_) {
        return take_kept(request);
    }
    if (in_line_) {
        hand_over();
    }
    if (!await(b.first + i)) {
        return not_performed(LeftOut::stopped);
    }
    if (is_told()) {  // meanwhile
        return result;
    }
    if (is_put_off(request)) {
        untold_.push_back({b.first + i, request, ring_});
        return kInFlight;
    }
    const auto look_in = [&](ReplayedRing& ring) {
        bool known = false;
        uint64_t tick = 0;
        ring.look();
        if (ring.claim(request, &result, &tick, &known)) {
            sys::call_ticks.left = tick;
            result = named_done(request, result);
            return true;
        }
        if (known) {
            untold_.push_back({b.first + i, request, &ring});
            result = kInFlight;
        }
        return known;
    };
    if (ring_ != nullptr && look_in(*ring_)) {
        return result;
    }
    for (size_t number = 0; number < worker_.ring_count(); ++number) {
        ReplayedRing* const ring = worker_.known_ring(number);
        if (ring != nullptr && ring != ring_ && look_in(*ring)) {
            return result;
        }
    }
    return take_kept(request);
}

void PosixEngine::watch(int64_t until_ns, bool sleeps) {
    constexpr int64_t kBefore = 200'000;  // ns: a wait in the kernel may end later than asked for
    if (ring_ == nullptr || (sleeps && !ring_->tells())) {
        return;
    }
    if (in_line_) {
        hand_over();
    }
    for (uint64_t seen = ring_->done(); ring_->in_flight() != 0 && !worker_.run.stopped(); seen = ring_->done()) {
        const int64_t left = until_ns - kBefore - monotonic_ns();
        if (left <= 0) {
            return;
        }
        ring_->wait(std::min(left, kSlice), 0, {seen + 1, 0});
        make_put_off();
    }
}

size_t PosixEngine::complete(std::span<Completion> out, bool wait) {
    for (;;) {
        make_put_off();
        const uint64_t seen = untold_.empty() ? 0 : untold_.front().ring->done();
        size_t count = 0;
        ReplayedRing* looked = nullptr;
        for (auto at = untold_.begin(); at != untold_.end() && count < out.size();) {
            if (const auto told = told_.find(at->request); told != told_.end()) {
                out[count++] = {at->op, told->second.result, told->second.tick};
                told_.erase(told);
                at = untold_.erase(at);
                continue;
            }
            ReplayedRing& ring = *at->ring;
            if (looked == nullptr || looked != &ring) {
                looked = &ring;
                ring.look();
            }
            if (is_put_off(at->request)) {
                ++at;
                continue;
            }
            // With nothing in flight a result that is not there never comes: a log may ask twice for one.
            if (!ring.has_claimed() && ring.in_flight() != 0) {
                ++at;
                continue;
            }
            bool known = false;
            int64_t result = 0;
            uint64_t tick = 0;
            const bool done = ring.claim(at->request, &result, &tick, &known);
            if (done || !known) {
                result = done ? named_done(at->request, result) : result;
                out[count++] = {at->op, done ? result : not_performed(LeftOut::unsupported), tick};
                at = untold_.erase(at);
            } else {
                ++at;
            }
        }
        if (count != 0 || !wait || untold_.empty() || worker_.run.stopped()) {
            return count;
        }
        if (in_line_) {
            hand_over();
        }
        // An open that was done just now has what was put off go on.
        if (std::all_of(put_off_.begin(), put_off_.end(),
                        [&](const PutOff& later) { return open_in_flight(later.handle); })) {
            untold_.front().ring->wait(kSlice, 0, {seen + 1, 0});
        }
    }
}

}  // namespace reprise

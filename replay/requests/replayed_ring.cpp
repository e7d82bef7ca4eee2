// SPDX-License-Identifier: MIT
#include "replay/requests/replayed_ring.h"

#include <linux/io_uring.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "calibrate/clock.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

constexpr size_t kMostArea = size_t{1} << 30;
constexpr size_t kPage = 4096;
constexpr uint32_t kMostBuffers = 4096;
constexpr int64_t kMoment = 1'000'000;  // ns

}  // namespace

/// Holds a lock where the ring has several users.
class ReplayedRing::Guard {
public:
    Guard(bool shared, std::mutex& lock) {
        if (shared) {
            held_.emplace(lock);
        }
    }

private:
    std::optional<std::lock_guard<std::mutex>> held_;
};

ReplayedRing::ReplayedRing(const RingOptions& options) : shared_(options.shared), aio_(options.aio) {
    buffer_bytes_ = (std::max<size_t>(options.buffer_bytes, 1) + kPage - 1) / kPage * kPage;
    const size_t most = std::max<size_t>(kMostArea / buffer_bytes_, 1);
    buffers_ = static_cast<uint32_t>(std::clamp<size_t>(options.queue.depth, 1, std::min<size_t>(kMostBuffers, most)));
    area_bytes_ = buffer_bytes_ * buffers_;
    void* const at =
        mmap(nullptr, area_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        throw machine_error("no memory for the buffers of " + std::to_string(buffers_) + " requests of " +
                                std::to_string(buffer_bytes_) + " bytes",
                            "free memory, or raise its limit (ulimit -v)");
    }
    madvise(at, area_bytes_, MADV_DONTFORK);
    area_ = static_cast<std::byte*>(at);
    QueueOptions queue = options.queue;
    queue.area = {area_, area_bytes_};
    queue.one_task = !options.shared;
    MadeQueue made = options.aio ? make_aio(queue) : make_uring(queue);
    refused_ = made.error;
    queue_ = made.queue ? std::move(made.queue) : make_threads(queue);
    free_buffers_.reserve(buffers_);
    for (uint32_t number = buffers_; number-- > 0;) {
        free_buffers_.push_back(number);
    }
    slots_.resize(std::bit_ceil<size_t>(std::max<size_t>(64, size_t{4} * options.queue.depth)));
    slot_mask_ = static_cast<uint32_t>(slots_.size() - 1);
    mark_ = queue_->done_mark();
}

ReplayedRing::~ReplayedRing() {
    queue_.reset();
    munmap(area_, area_bytes_);
}

ReplayedRing::Slot* ReplayedRing::find_further(uint32_t id) {
    const auto found = further_.find(id);
    return found == further_.end() ? nullptr : &found->second;
}

std::byte* ReplayedRing::buffer() {
    const Guard table(shared_, table_);
    uint32_t number = 0;
    if (free_buffers_.empty()) {
        number = next_buffer_++ % buffers_;
    } else {
        number = free_buffers_.back();
        free_buffers_.pop_back();
    }
    given_ = number;
    return area_ + number * buffer_bytes_;
}

uint32_t ReplayedRing::find_buffer(const std::byte* buffer) const {
    const bool own = !std::less<>()(buffer, area_) && std::less<>()(buffer, area_ + area_bytes_);
    return own ? static_cast<uint32_t>(static_cast<size_t>(buffer - area_) / buffer_bytes_) : kNoBuffer;
}

/// False: one with its number is in flight.
bool ReplayedRing::flew(const RequestCall& call) {
    Slot& slot = slots_[call.id & slot_mask_];
    if (slot.state != State::free || !further_.empty()) {
        return flew_further(call);
    }
    add_to(flying_, 1);
    slot = flying(call);
    return true;
}

bool ReplayedRing::flew_further(const RequestCall& call) {
    const Slot* const known = find(call.id);
    if (known != nullptr && known->state == State::flying) {
        return false;
    }
    add_to(flying_, 1);
    Slot& slot = slots_[call.id & slot_mask_];
    (slot.state == State::free || slot.id == call.id ? slot : further_[call.id]) = flying(call);
    return true;
}

bool ReplayedRing::add(RequestCall& call) {
    const Guard submitting(shared_, submitting_);
    call.serial = ++serial_;
    if ((call.order & IOSQE_CQE_SKIP_SUCCESS) == 0) {  // else nothing will tell that it is done
        const Guard table(shared_, table_);
        if (!flew(call)) {
            return false;
        }
    }
    while (!queue_->prepare(call)) {
        hand_over();
    }
    ++line_;
    return true;
}

void ReplayedRing::submit() {
    const Guard submitting(shared_, submitting_);
    while (line_ != 0) {
        hand_over();
    }
}

void ReplayedRing::hand_over() {
    const size_t taken = queue_->submit();
    line_ -= static_cast<uint32_t>(std::min<size_t>(taken, line_));
    if (taken == 0) {
        // The kernel has no room: what is done has to be taken first.
        wait(kMoment, 1, {done() + 1, 0});
    }
}

void ReplayedRing::put(std::span<const RequestDone> done) {
    if (done.empty()) {
        return;
    }
    const uint64_t now = ticks_now();
    for (const RequestDone& each : done) {
        if (Slot* const slot = find(each.id); slot != nullptr && slot->serial == each.serial) {
            if (slot->state == State::flying) {
                add_to(flying_, -1);
                if (slot->buffer != kNoBuffer) {
                    free_buffers_.push_back(slot->buffer);
                }
            }
            slot->state = State::done;
            slot->result = each.result;
            slot->tick = now;
            if (slot->claimed) {
                add_to(claimed_, 1);
            }
        }
    }
    add_to(done_, done.size());
}

bool ReplayedRing::has_request(uint32_t id) {
    const Guard table(shared_, table_);
    return is_done(id);
}

void ReplayedRing::take_done() {
    if (!shared_) {
        put({came_.data(), queue_->take(came_, 0, 1)});
        return;
    }
    const std::lock_guard table(table_);
    take_beside_others();
}

/// How many have to be done until `count` are; not more than can be.
uint32_t ReplayedRing::missing(uint64_t count) const {
    const uint64_t done = done_.load(std::memory_order_relaxed), flying = flying_.load(std::memory_order_relaxed);
    const uint64_t missing = count > done ? count - done : 1;
    return static_cast<uint32_t>(std::clamp<uint64_t>(std::min(missing, flying), 1, came_.size()));
}

/// How long to wait for `least`. What libaio returns at a time is done at a time, in the recording, too.
int64_t ReplayedRing::for_several(int64_t ns, uint32_t least) const {
    return least > 1 && !aio_ ? std::min(ns, kTogether) : ns;
}

void ReplayedRing::submit_and_wait(int64_t ns, uint64_t together, const Until& until) {
    if (shared_ || line_ == 0) {
        submit();
        wait(ns, together, until);
        return;
    }
    size_t submitted = 0;
    const uint32_t least = missing(together);
    const size_t done = queue_->submit_and_take(came_, for_several(ns, least), least, &submitted);
    line_ -= static_cast<uint32_t>(std::min<size_t>(submitted, line_));
    put({came_.data(), done});
    submit();
}

bool ReplayedRing::wait(int64_t ns, uint64_t together, const Until& until) {
    if (!shared_) {
        const uint32_t least = missing(together);
        put({came_.data(), queue_->take(came_, for_several(ns, least), least)});
        return is_there(until);
    }
    return wait_beside_others(ns, until);
}

// With table_. What another thread waits for in the kernel stays there for it.
void ReplayedRing::take_beside_others() {
    put({came_.data(), led_ ? queue_->look_beside(came_) : queue_->take(came_, 0, 1)});
    wake_where_there();
}

// One thread waits in the kernel. What is done anybody may see, who then wakes whom it concerns; so a thread whose
// requests are done when the call returns that submitted them does not wait for that one.
bool ReplayedRing::wait_beside_others(int64_t ns, const Until& until) {
    const int64_t end = monotonic_ns() + ns;
    std::array<RequestDone, 64> own{};  // came_ is the others' meanwhile
    std::unique_lock table(table_);
    for (;;) {
        // Whoever came here before may have taken what this thread is about to wait for.
        take_beside_others();
        const int64_t left = end - monotonic_ns();
        if (is_there(until) || left <= 0) {
            break;
        }
        if (led_) {
            sleep(table, left, until, true);
            continue;
        }
        led_ = true;
        const int64_t most = skips_ ? std::min(left, kMoment) : left;  // the kernel does not tell of what is skipped
        table.unlock();
        const size_t count = queue_->wait_beside(own, most);
        table.lock();
        led_ = false;
        put({own.data(), count});
        if (flying_ == 0 && !is_there(until)) {
            break;  // the caller knows whether somebody makes more
        }
    }
    wake_where_there();
    pass_on();
    return is_there(until);
}

void ReplayedRing::sleep(std::unique_lock<std::mutex>& table, int64_t ns, const Until& until, bool leads) {
    if (idle_.empty()) {
        idle_.push_back(&waiters_.emplace_back());
    }
    Waiter& self = *idle_.back();
    idle_.pop_back();
    self.until = until;
    self.leads = leads;
    self.woken = false;
    waiting_.push_back(&self);
    self.told.wait_for(table, std::chrono::nanoseconds(ns), [&] { return self.woken; });
    if (!self.woken) {
        std::erase(waiting_, &self);
    }
    idle_.push_back(&self);
}

void ReplayedRing::wake(Waiter& waiter) {
    waiter.woken = true;
    waiter.told.notify_one();
}

void ReplayedRing::wake_where_there() {
    std::erase_if(waiting_, [&](Waiter* each) {
        const bool there = is_there(each->until);
        if (there) {
            wake(*each);
        }
        return there;
    });
}

/// Somebody else waits in the kernel from now on.
void ReplayedRing::pass_on() {
    const auto next = std::find_if(waiting_.begin(), waiting_.end(), [](const Waiter* each) { return each->leads; });
    if (!led_ && next != waiting_.end()) {
        wake(**next);
        waiting_.erase(next);
    }
}

void ReplayedRing::skip(uint64_t count) {
    const Guard table(shared_, table_);
    add_to(done_, count);
    if (shared_) {
        skips_ = true;
        wake_where_there();
    }
}

void ReplayedRing::wait_for_skips(uint64_t seen) {
    std::unique_lock table(table_);
    if (!is_there({seen + 1, 0})) {
        sleep(table, kMoment, {seen + 1, 0}, false);
    }
}

bool ReplayedRing::claim(uint32_t id, int64_t* result, uint64_t* tick, bool* known) {
    const Guard table(shared_, table_);
    Slot* const slot = find(id);
    *known = slot != nullptr;
    if (slot == nullptr) {
        return false;
    }
    if (slot->state != State::done) {
        slot->claimed = true;
        return false;
    }
    *result = slot->wanted < 0 || slot->result < 0 ? slot->result
                                                   : std::clamp<int64_t>(slot->result - slot->head, 0, slot->wanted);
    *tick = slot->tick;
    if (slot->claimed) {
        add_to(claimed_, -1);
    }
    if (further_.empty() || further_.erase(id) == 0) {
        slot->state = State::free;
    }
    return true;
}

}  // namespace reprise

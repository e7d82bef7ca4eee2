// SPDX-License-Identifier: MIT
#include "replay/requests/replayed_ring.h"

#include <linux/io_uring.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "calibrate/clock.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

constexpr size_t kMostArea = size_t{1} << 30;
constexpr size_t kPage = 4096;
constexpr uint32_t kMostBuffers = 4096;

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
        const Guard taking(shared_, taking_);
        put({came_.data(), queue_->take(came_, 1'000'000, 1)});
    }
}

void ReplayedRing::put(std::span<const RequestDone> done) {
    if (done.empty()) {
        return;
    }
    const uint64_t now = ticks_now();
    {
        const Guard table(shared_, table_);
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
    if (shared_) {
        more_.notify_all();
    }
}

bool ReplayedRing::has_request(uint32_t id) {
    const Guard table(shared_, table_);
    const Slot* const slot = find(id);
    return slot == nullptr || slot->state == State::done;
}

void ReplayedRing::take_done() {
    if (!shared_) {
        put({came_.data(), queue_->take(came_, 0, 1)});
        return;
    }
    if (const std::unique_lock taking(taking_, std::try_to_lock); taking.owns_lock()) {
        put({came_.data(), queue_->take(came_, 0, 1)});
    }
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

void ReplayedRing::submit_and_wait(int64_t ns, uint64_t count) {
    if (shared_ || line_ == 0) {
        submit();
        wait(ns, count);
        return;
    }
    size_t submitted = 0;
    const uint32_t least = missing(count);
    const size_t done = queue_->submit_and_take(came_, for_several(ns, least), least, &submitted);
    line_ -= static_cast<uint32_t>(std::min<size_t>(submitted, line_));
    put({came_.data(), done});
    submit();
}

void ReplayedRing::wait(int64_t ns, uint64_t count) {
    if (!shared_) {
        const uint32_t least = missing(count);
        put({came_.data(), queue_->take(came_, for_several(ns, least), least)});
        return;
    }
    std::unique_lock taking(taking_, std::try_to_lock);
    if (taking.owns_lock()) {
        put({came_.data(), queue_->take(came_, ns, 1)});
        return;
    }
    // Another thread waits in the kernel, and tells.
    std::unique_lock table(table_);
    more_.wait_for(table, std::chrono::nanoseconds(std::min<int64_t>(ns, 1'000'000)));
}

void ReplayedRing::skip(uint64_t count) {
    {
        const Guard table(shared_, table_);
        add_to(done_, count);
    }
    if (shared_) {
        more_.notify_all();
    }
}

void ReplayedRing::wait_for_skips() {
    const uint64_t done = done_.load(std::memory_order_acquire);
    std::unique_lock table(table_);
    more_.wait_for(table, std::chrono::milliseconds(1), [&] { return done_.load(std::memory_order_relaxed) != done; });
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

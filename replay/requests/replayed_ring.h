// SPDX-License-Identifier: MIT
// The requests of one recorded ring in one replayed process: what is in flight, what is done, and who waits for it.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "replay/requests/queue.h"

namespace reprise {

struct RingOptions {
    QueueOptions queue;
    bool aio = false;
    bool shared = false;         // several threads use it
    size_t buffer_bytes = 4096;  // of the largest read
};

/// Safe to use from several threads where it is `shared`.
class ReplayedRing {
public:
    /// Throws Error (machine) where there is no memory.
    explicit ReplayedRing(const RingOptions& options);
    ~ReplayedRing();
    ReplayedRing(const ReplayedRing&) = delete;
    ReplayedRing& operator=(const ReplayedRing&) = delete;

    /// -errno where the kernel made no queue, so that threads perform the requests; 0: it did.
    int refused() const { return refused_; }
    bool makes(uint8_t code) const { return queue_->makes(code); }
    /// Bytes of it.
    size_t buffer_bytes() const { return buffer_bytes_; }
    /// Where the next read goes: what the last one to be done went to, as of programs that keep a list of free buffers.
    /// That is in the processor's caches, which decides a third of what a large read of a fast device takes.
    [[gnu::hot]] std::byte* buffer();

    /// Puts a request in line, after submit() where the line is full. False: one with its number is in flight.
    /// `call.buffer`, where it is of buffer(), is free again when the request is done. Sets `call.serial`.
    [[gnu::hot]] bool add(RequestCall& call);
    bool add(RequestCall&& call) { return add(call); }
    /// The next ones, which do not go through this ring, count as done.
    void skip(uint64_t count);
    bool shared() const { return shared_; }
    /// Whether a recording has when the kernel was done with a request, and not when the job took its result.
    bool tells() const { return !aio_; }
    /// ns. Waking up for each request costs little beside storage that takes longer.
    static constexpr int64_t kTogether = 50'000;
    /// Waits a moment for another thread's skip(), where done() was still `seen`.
    void wait_for_skips(uint64_t seen);
    [[gnu::hot]] void submit();

    /// Whether `count` requests are done, or request `id` is (where it is not 0), as far as was looked.
    bool has(uint64_t count, uint32_t id) {
        return id == 0 ? done_.load(std::memory_order_acquire) >= count : has_request(id);
    }
    /// Takes what is done without waiting.
    void look() {
        if (mark_.head == nullptr || mark_.any()) {
            take_done();
        }
    }
    /// How many are done, as far as was looked.
    uint64_t done() const { return done_.load(std::memory_order_acquire); }
    /// What a thread that shares the ring waits for; see has().
    struct Until {
        uint64_t count = 0;
        uint32_t id = 0;
    };
    /// Waits a while for some more: where nobody else uses the ring, until `together` requests are done (0: one more).
    /// Of io_uring no longer than kTogether for several: the kernel tells nobody when a request was done, and each has
    /// a latency of its own. In a shared one `until` counts: it returns false where that did not come.
    bool wait(int64_t ns, uint64_t together, const Until& until);
    /// submit(), then wait().
    void submit_and_wait(int64_t ns, uint64_t together, const Until& until);

    /// The result of a request, which is forgotten then. False: it is not done, or was never made (`*known`).
    /// `*tick`: when it was seen to be done.
    [[gnu::hot]] bool claim(uint32_t id, int64_t* result, uint64_t* tick, bool* known);
    /// Whether some request is done that claim() was asked for before.
    bool has_claimed() const { return claimed_.load(std::memory_order_acquire) != 0; }
    /// That something will tell of.
    uint64_t in_flight() const { return flying_.load(std::memory_order_relaxed); }

private:
    enum class State : uint8_t { free, flying, done };
    /// A cache line.
    struct alignas(64) Slot {
        uint32_t id = 0;
        State state = State::free;
        bool claimed = false;  // asked for while it was in flight
        int64_t result = 0;
        uint64_t tick = 0;
        uint32_t serial = 0;
        uint32_t buffer = kNoBuffer;
        uint32_t head = 0;  // see RequestCall
        int64_t wanted = -1;
    };
    static constexpr uint32_t kNoBuffer = UINT32_MAX;
    class Guard;
    Slot* find(uint32_t id) {
        Slot& slot = slots_[id & slot_mask_];
        if (__builtin_expect(slot.state != State::free && slot.id == id, 1)) {
            return &slot;
        }
        return further_.empty() ? nullptr : find_further(id);
    }
    Slot* find_further(uint32_t id);
    bool has_request(uint32_t id);
    [[gnu::hot]] void take_done();
    [[gnu::hot]] void put(std::span<const RequestDone> done);
    [[gnu::hot]] bool flew(const RequestCall& call);
    bool flew_further(const RequestCall& call);
    uint32_t number_of(const std::byte* buffer) const {
        const bool last = given_ != kNoBuffer && buffer == area_ + given_ * buffer_bytes_;
        return __builtin_expect(last, 1) ? given_ : find_buffer(buffer);
    }
    uint32_t find_buffer(const std::byte* buffer) const;
    Slot flying(const RequestCall& call) const {
        return {call.id, State::flying, false, 0, 0, call.serial, number_of(call.buffer), call.head, call.wanted};
    }
    [[gnu::hot]] void hand_over();
    struct Waiter {
        Until until;
        bool leads = false;  // it may wait in the kernel
        bool woken = false;
        std::condition_variable told;
    };
    bool wait_beside_others(int64_t ns, const Until& until);
    void take_beside_others();
    bool is_there(const Until& until) { return until.id == 0 ? done_ >= until.count : is_done(until.id); }
    bool is_done(uint32_t id) {
        const Slot* const slot = find(id);
        return slot == nullptr || slot->state == State::done;
    }
    void sleep(std::unique_lock<std::mutex>& table, int64_t ns, const Until& until, bool leads);
    void wake(Waiter& waiter);
    void wake_where_there();
    void pass_on();
    uint32_t missing(uint64_t count) const;
    int64_t for_several(int64_t ns, uint32_t least) const;
    /// Adds; in a ring of one task without a bus lock.
    template <class Count, class More>
    void add_to(std::atomic<Count>& count, More more) const {
        if (shared_) {
            count.fetch_add(static_cast<Count>(more), std::memory_order_release);
        } else {
            count.store(count.load(std::memory_order_relaxed) + static_cast<Count>(more), std::memory_order_release);
        }
    }

    std::unique_ptr<RequestQueue> queue_;
    DoneMark mark_;
    int refused_ = 0;
    const bool shared_, aio_;
    std::byte* area_ = nullptr;
    size_t area_bytes_ = 0, buffer_bytes_ = 0;
    uint32_t buffers_ = 1;
    std::vector<uint32_t> free_buffers_;  // the last to be free at the end; with table_
    uint32_t next_buffer_ = 0;            // where none is free: nothing tells of some requests that they are done
    uint32_t given_ = kNoBuffer;          // the last of buffer()
    uint32_t line_ = 0, serial_ = 0;
    std::atomic<uint64_t> done_{0}, flying_{0};
    std::atomic<uint32_t> claimed_{0};            // done, and asked for before
    std::vector<Slot> slots_;                     // by id, the lowest bits of it
    uint32_t slot_mask_ = 0;                      // those bits
    std::unordered_map<uint32_t, Slot> further_;  // whose place in slots_ is taken
    std::mutex submitting_, table_;
    std::array<RequestDone, 64> came_;
    // Of a shared ring, with table_: one thread waits in the kernel, the others for what anybody takes.
    bool led_ = false, skips_ = false;
    std::deque<Waiter> waiters_;  // all there ever were at a time
    std::vector<Waiter*> idle_, waiting_;
};

}  // namespace reprise

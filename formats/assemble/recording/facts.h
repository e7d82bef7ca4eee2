// SPDX-License-Identifier: MIT
// What a first pass over a raw log finds out: when it began, what was lost, which futex words are locks, and what was
// open before the recording.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/assemble/recording/cufile_calls.h"
#include "formats/assemble/recording/used_again.h"
#include "formats/raw/costs.h"
#include "formats/raw/log.h"

namespace reprise {

/// Locks are not causes (DESIGN 1): waits for them come and go with contention.
class LockWords {
public:
    void see(uint32_t pid, uint32_t tid, const raw_u64 (&args)[6]);  // a futex call's arguments
    /// Once all were seen.
    void settle();
    /// Whether a call that waits does so for a lock.
    bool is_lock(uint32_t pid, const raw_u64 (&args)[6]) const;
    /// Whether it is the condition of Python's interpreter lock: waiters wait for it, and who gives it back signals it.
    bool is_interpreter(uint32_t pid, const raw_u64 (&args)[6]) const;
    /// Whether the word of a call that waits may be a lock other than the interpreter's: a mutex, or some task both
    /// waits for it and wakes others there, as with a semaphore that stands for one (Python's threading.Lock).
    bool may_guard(uint32_t pid, const raw_u64 (&args)[6]) const;
    static bool waits(uint64_t operation);
    static bool wakes(uint64_t operation);
    uint64_t words_dropped() const { return words_dropped_; }

private:
    static bool waits_for_mutex(const raw_u64 (&args)[6]);
    struct Word {
        uint64_t waits = 0, timed = 0, contended = 0;
        std::vector<uint32_t> waiters, wakers;  // a few of them
        /// Most of its waits are for a mutex. Words that count (Rust's Condvar, barriers) have that value once.
        bool mutex() const { return contended * 2 > waits; }
        /// Whether a task that waits for this word wakes others at `other`.
        bool waiters_wake_at(const Word& other) const;
        bool only_timed() const;
    };
    struct Process {
        std::map<uint64_t, Word> words;
        uint64_t gil = 0;  // of Python's interpreter lock; 0: none
        bool near_gil(uint64_t word) const;
    };
    std::unordered_map<uint32_t, Process> processes_;
    size_t words_ = 0;
    uint64_t words_dropped_ = 0;
};

/// The distance between two calls of a task that did nothing else between them. Some of it is the recorder's own. What
/// its program takes after a call the records tell; what it takes before one, and the slower way into the kernel, is
/// the nearly the same everywhere, so that the shorter distances of a recording show it.
class CallGaps {
public:
    void see(const raw_head& head);
    /// ns; 0: not enough calls to tell.
    int64_t before() const;
    /// ns, of what the records tell of themselves: the mean, so that it is right for all calls together.
    int64_t told() const;

private:
    static constexpr uint64_t kStep = 10, kMost = 2'000;  // ns
    static constexpr uint32_t kMostTold = 10'000;
    std::unordered_map<uint32_t, uint64_t> last_;  // by tid: end of its last record, a call; 0: something else
    std::array<uint32_t, kMost / kStep> counts_{};
    uint64_t seen_ = 0, told_ = 0;
};

/// What a call leaves to the kernel's task work: the last reference of a file or mapping drops its pages once the call
/// has returned and before the program goes on. A replay pays for it inside the call, so it belongs there.
class DeferredWork {
public:
    void see(const raw_page_cache& record);
    /// ns from the end of the call until the work was done, less what the recorder took of it; 0: there was none.
    int64_t after(const raw_call& call, const RecorderCosts& costs) const;

private:
    struct Work {
        uint64_t until = 0, folios = 0, runs = 0;
    };
    std::map<std::pair<uint32_t, uint64_t>, Work> works_;  // by tid and end of the call
};

struct RawFacts {
    std::string meta;
    std::string cut;          // why the log is not complete; empty: it is
    uint64_t origin = 0;      // CLOCK_MONOTONIC ns of the first thing that happened: log time 0
    int64_t origin_unix = 0;  // ns; 0: unknown
    uint64_t records = 0;
    int64_t call_gap_ns = 0;   // what the recorder itself takes between two calls, beside ...
    int64_t call_told_ns = 0;  // ... what the records tell of it; this is its mean
    RecorderCosts costs;       // of the other events
    bool dear_memory = false;  // new pages were dear too often for it to be interrupts
    bool has_switches = false, has_faults = false, has_gpu = false;
    raw_loss loss{};
    LockWords locks;
    DeferredWork deferred;
    CufileCalls cufile;
    RawUses uses;
    std::vector<std::vector<uint64_t>> seeds;  // whole records: RAW_SEED_*
};

/// Reads the log to its end. `progress` is told bytes of the file.
RawFacts scan_raw(const std::filesystem::path& path, const std::function<void(uint64_t)>& progress);

}  // namespace reprise

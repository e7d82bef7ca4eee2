// SPDX-License-Identifier: MIT
// The memory that the supervisor and all worker processes of a run share: completion counters, the go and stop
// words, device queues, and the spool of results.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <new>
#include <optional>
#include <span>

#include "calibrate/delay.h"
#include "formats/oplog/op.h"
#include "replay/engine/run_context.h"
#include "replay/plan/guards.h"
#include "replay/plan/speeds.h"

namespace reprise {

static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free,
              "atomics in shared memory must not use locks");

/// An anonymous or file-backed MAP_SHARED mapping, reserved and not committed.
class SharedMemory {
public:
    SharedMemory() = default;
    /// Anonymous where `backing` is empty; else an unlinked file in that directory. Throws Error (machine).
    explicit SharedMemory(size_t bytes, const std::filesystem::path& backing = {});
    ~SharedMemory();
    SharedMemory(SharedMemory&& other) noexcept;
    SharedMemory& operator=(SharedMemory&& other) noexcept;

    /// Takes the memory now, as this process's.
    void populate() const;
    std::byte* data() const { return data_; }
    size_t size() const { return size_; }

private:
    std::byte* data_ = nullptr;
    size_t size_ = 0;
};

enum class TaskState : uint32_t { waiting_for_start, running, waiting_for_edge, ended };

/// One per recorded task. The task's own thread writes, others read.
struct alignas(64) TaskSlot {
    // How many of the task's ops that others wait for are done; UINT32_MAX once the task has ended.
    std::atomic<uint32_t> published{0};
    // 1: the task sleeps for an edge; the futex word. Whoever takes that back has to wake it.
    std::atomic<uint32_t> asleep{0};
    std::atomic<uint64_t> waits_edge{0};  // index + 1 in TaskPlan::waits of what it waits for now; 0: nothing
    std::atomic<uint64_t> let_go{0};      // of the same kind: waits up to this one are given up (Watchdog)
    // The op it is in needs results of a ring that has no request in flight: others have to make some first.
    static constexpr uint32_t kNeedsNone = 0, kNeedsRequests = 1, kGivesUp = 2;
    std::atomic<uint32_t> needs_requests{kNeedsNone};
    alignas(64) std::atomic<uint64_t> done{0};  // ops of the log passed, left out or not
    std::atomic<TaskState> state{TaskState::waiting_for_start};
    std::atomic<int64_t> lag_ns{0};         // timed: how late the latest op was issued
    std::atomic<uint64_t> spawned_tick{0};  // when its spawner's op began; 0: starts with the run
    uint64_t edge_waits = 0;                // edges that really had to be waited for
    bool elsewhere = false;                 // another rank performs it: the bridge writes `published`; set before go
};

enum class ProcessState : uint32_t { none, running, ended };

/// One per recorded process.
struct alignas(64) ProcessSlot {
    alignas(64) std::atomic<uint32_t> lock{0};  // under which its tasks compute (OneLock); see take_lock()
    std::atomic<pid_t> pid{0};
    std::atomic<ProcessState> state{ProcessState::none};
    std::atomic<int32_t> wait_status{0};  // where its parent worker reaped it
    // From /proc/self/io at its end, with all its child processes, which it has reaped; -1: unknown.
    std::atomic<int64_t> device_read_bytes{-1}, device_write_bytes{-1};
    std::atomic<bool> reaped{false};  // or about to be, by the process that forked it, whose account has it then
};

/// One stream of a virtual accelerator: when its queue runs empty.
struct alignas(64) DeviceSlot {
    std::atomic<int64_t> end_ns{0};  // CLOCK_MONOTONIC

    /// Work of `busy_ns` submitted at `now_ns`.
    void submit(int64_t now_ns, int64_t busy_ns);
};

struct alignas(64) RunControl {
    std::atomic<uint32_t> stop{0};                 // not 0: leave at the next op
    alignas(64) std::atomic<uint32_t> ready{0};    // tasks that wait at the start line
    std::atomic<uint32_t> go{0};                   // futex word
    int64_t start_ns = 0;                          // CLOCK_MONOTONIC of log time `first_begin`; set before go
    double tick_ns = 1.0;                          // length of a tick; set before go
    bool in_step = false;                          // tasks leave the start line at start_ns sharp; set before go
    std::atomic<int64_t> left_line_ns{INT64_MAX};  // when the first of them did, where in_step
    // What connects the ranks: awake, asleep, or asleep in a way that hears other ranks.
    static constexpr uint32_t kAwake = 0, kAsleep = 1, kHears = 2;
    alignas(64) std::atomic<uint32_t> bridge{kAwake};
    int bell = -1;                             // eventfd that wakes it; set before go
    std::atomic<uint32_t> waits_elsewhere{0};  // tasks that wait for one of another rank now
    alignas(64) SpinTokens tokens;
    std::array<std::atomic<uint64_t>, kAccessCounts> access{};  // by AccessCount
    std::array<std::atomic<int>, 2> no_queue{};                 // errno of io_uring_setup, io_setup; 0: none
    struct alignas(64) LockWord {
        std::atomic<uint32_t> word{0};
    };
    std::array<LockWord, kMostGuards + 1> guards;  // locks held during calls on files; see take_lock()
    // First message wins; 0: none, 1: being written, 2: there.
    std::atomic<uint32_t> failure_state{0};
    char failure[512] = {};

    bool stopped() const { return stop.load(std::memory_order_relaxed) != 0; }
    /// By Plan::lock_of().
    std::atomic<uint32_t>& guard(uint32_t number) { return guards[number % guards.size()].word; }
    /// Records why the run cannot go on, and stops it.
    void fail(const char* message);
    /// There is something to tell other ranks.
    void tell_bridge();
    /// Something is to be heard from them soon.
    void call_bridge();
};

/// What one op did. 24 bytes, written by the hot loop, read by the collector.
struct SpoolRow {
    /// Ticks and flags: kNotPerformed, where `end` holds the LeftOut reason, kReleasedEarly, kWaitedForLock.
    /// kNotPerformed without ticks: left out by the filter.
    uint64_t begin = 0;
    uint64_t end = 0;
    int64_t result = 0;
};
inline constexpr uint64_t kNotPerformed = uint64_t{1} << 63;
/// Who waited for the op went on when it was issued, not when it was done.
inline constexpr uint64_t kReleasedEarly = uint64_t{1} << 62;
/// The task waited for its process's lock before the op was issued.
inline constexpr uint64_t kWaitedForLock = uint64_t{1} << 61;
inline constexpr uint64_t kSpoolTicks = kWaitedForLock - 1;
/// The tick at which an op that is done let others go on; none: it was not performed.
inline std::optional<uint64_t> let_go(const SpoolRow& row) {
    if ((row.begin & kNotPerformed) != 0) {
        return std::nullopt;
    }
    return (row.begin & kReleasedEarly) != 0 ? row.begin & kSpoolTicks : row.end;
}

/// All shared memory of one run.
class SharedRun final : public RunContext {
public:
    /// `spool_rows` over all tasks. Spools beyond `memory_limit` bytes go to an unlinked file in `spool_dir`.
    SharedRun(size_t tasks, size_t processes, size_t devices, size_t passes, uint64_t spool_rows, size_t memory_limit,
              const std::filesystem::path& spool_dir);

    /// So that no worker is charged for it. Nothing for what is in a file.
    void populate() const;

    RunControl& control() { return *control_; }
    TaskSlot& task(TaskId id) { return tasks_[id]; }
    ProcessSlot& process(ProcessId id) { return processes_[id]; }
    DeviceSlot& device(size_t index) { return devices_[index]; }
    PassSlot& pass(size_t index) override { return passes_[index]; }
    bool stopped() const override { return control_->stopped(); }
    void add(const AccessCounts& counts) override;
    AccessCounts access_counts() const;
    void requests_by_threads(bool aio, int error) override { control_->no_queue[aio ? 1 : 0].store(error); }
    /// Why the kernel made no queue for requests, an errno; 0: it made all.
    int no_queue(bool aio) const { return control_->no_queue[aio ? 1 : 0].load(); }
    bool ended(TaskId id) const override { return tasks_[id].state.load() == TaskState::ended; }
    bool needs_in_vain(TaskId id) override;
    void needs_none(TaskId id) override { tasks_[id].needs_requests.store(TaskSlot::kNeedsNone); }
    SpoolRow* spool(uint64_t first) { return spool_rows_ + first; }

private:
    SharedMemory state_, spool_;
    RunControl* control_ = nullptr;
    TaskSlot* tasks_ = nullptr;
    ProcessSlot* processes_ = nullptr;
    DeviceSlot* devices_ = nullptr;
    PassSlot* passes_ = nullptr;
    SpoolRow* spool_rows_ = nullptr;
};

/// Sleeps while `word` is `seen`, at most `timeout_ns`. Spurious returns happen.
void futex_wait(const std::atomic<uint32_t>& word, uint32_t seen, int64_t timeout_ns);
void futex_wake_all(const std::atomic<uint32_t>& word);

/// Wakes the task if it sleeps. It looks again, and may sleep again.
void rouse(TaskSlot& task);
/// Wakes the task if it sleeps in its wait number `wait` (TaskSlot::waits_edge).
inline void wake_from(TaskSlot& task, uint64_t wait) {
    if (task.asleep.load(std::memory_order_seq_cst) != 0 && task.waits_edge.load(std::memory_order_relaxed) == wait) {
        rouse(task);
    }
}

/// Takes a lock, a futex word: 0: free, 1: held, 2: held, and others wait. Whoever comes first has it, as with mutexes
/// and the interpreter lock. `free`: it did not have to wait. False in `had` where the run was stopped.
struct LockTaken {
    bool had = true, free = true;
};
LockTaken take_lock(std::atomic<uint32_t>& word, const RunControl& control);
void give_lock(std::atomic<uint32_t>& word);

/// Waits on behalf of `waiter`, whose waits_edge is set, until `source` has published `count` or the wait is given up;
/// spins up to `spin` turns first. False where the run was stopped.
bool wait_published(const TaskSlot& source, uint32_t count, TaskSlot& waiter, const RunControl& control, int spin);

}  // namespace reprise

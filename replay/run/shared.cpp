// SPDX-License-Identifier: MIT
#include "replay/run/shared.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/one_line.h"
#include "replay/engine/mappings.h"

namespace reprise {
namespace {

int unlinked_file(const std::filesystem::path& directory) {
    const int fd = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) {
        return fd;
    }
    std::string name = (directory / "reprise-spool-XXXXXX").string();
    const int named = mkostemp(name.data(), O_CLOEXEC);
    if (named >= 0) {
        unlink(name.c_str());
    }
    return named;
}

}  // namespace

SharedMemory::SharedMemory(size_t bytes, const std::filesystem::path& backing) : size_(std::max<size_t>(bytes, 1)) {
    int fd = -1;
    if (!backing.empty()) {
        fd = unlinked_file(backing);
        if (fd < 0 || ftruncate(fd, static_cast<off_t>(size_)) != 0) {
            const int error = errno;
            if (fd >= 0) {
                close(fd);
            }
            throw machine_error("cannot make a file of " + std::to_string(size_) + " bytes for results in " +
                                    escape_line(backing.string()) + ": " + reason(error),
                                remedy(error, "write the result (-o) to a file system with space"));
        }
    }
    const int flags = MAP_SHARED | MAP_NORESERVE | (fd < 0 ? MAP_ANONYMOUS : 0);
    void* const at = mmap(nullptr, size_, PROT_READ | PROT_WRITE, flags, fd, 0);
    const int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (at == MAP_FAILED) {
        throw machine_error("cannot map " + std::to_string(size_) + " bytes of shared memory: " + std::strerror(error),
                            "free memory, or raise its limit (ulimit -v)");
    }
    data_ = static_cast<std::byte*>(at);
}

void SharedMemory::populate() const {
    for (size_t at = 0; data_ != nullptr && at < size_; at += 4096) {
        rewrite_byte(data_ + at);  // zeros may be there already, or more
    }
}

SharedMemory::~SharedMemory() {
    if (data_ != nullptr) {
        munmap(data_, size_);
    }
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

void DeviceSlot::submit(int64_t now_ns, int64_t busy_ns) {
    int64_t end = end_ns.load(std::memory_order_relaxed);
    int64_t next = 0;
    do {
        if (__builtin_add_overflow(std::max(end, now_ns), std::max<int64_t>(busy_ns, 0), &next)) {
            next = INT64_MAX;
        }
    } while (!end_ns.compare_exchange_weak(end, next, std::memory_order_relaxed));
}

void RunControl::fail(const char* message) {
    uint32_t none = 0;
    if (failure_state.compare_exchange_strong(none, 1)) {
        std::strncpy(failure, in_one_line(message).c_str(), sizeof failure - 1);
        failure_state.store(2, std::memory_order_release);
    }
    stop.store(1);
}

void RunControl::tell_bridge() {
    if (bridge.load(std::memory_order_seq_cst) != kAwake &&
        bridge.exchange(kAwake, std::memory_order_seq_cst) != kAwake) {
        eventfd_write(bell, 1);
    }
}

void RunControl::call_bridge() {
    if (bridge.load(std::memory_order_seq_cst) == kAsleep) {
        tell_bridge();
    }
}

void SharedRun::populate() const {
    state_.populate();
    spool_.populate();
}

SharedRun::SharedRun(size_t tasks, size_t processes, size_t devices, size_t passes, uint64_t spool_rows,
                     size_t memory_limit, const std::filesystem::path& spool_dir) {
    const auto aligned = [](size_t bytes) { return (bytes + 63) & ~size_t{63}; };
    const size_t bytes = aligned(sizeof(RunControl)) + aligned(sizeof(TaskSlot) * tasks) +
                         aligned(sizeof(ProcessSlot) * processes) + aligned(sizeof(DeviceSlot) * devices) +
                         aligned(sizeof(PassSlot) * passes);
    state_ = SharedMemory(bytes);
    std::byte* at = state_.data();
    control_ = new (at) RunControl;
    at += aligned(sizeof(RunControl));
    tasks_ = reinterpret_cast<TaskSlot*>(at);
    for (size_t i = 0; i < tasks; ++i) {
        new (tasks_ + i) TaskSlot;
    }
    at += aligned(sizeof(TaskSlot) * tasks);
    processes_ = reinterpret_cast<ProcessSlot*>(at);
    for (size_t i = 0; i < processes; ++i) {
        new (processes_ + i) ProcessSlot;
    }
    at += aligned(sizeof(ProcessSlot) * processes);
    devices_ = reinterpret_cast<DeviceSlot*>(at);
    for (size_t i = 0; i < devices; ++i) {
        new (devices_ + i) DeviceSlot;
    }
    at += aligned(sizeof(DeviceSlot) * devices);
    passes_ = reinterpret_cast<PassSlot*>(at);
    for (size_t i = 0; i < passes; ++i) {
        new (passes_ + i) PassSlot;
    }
    if (spool_rows > SIZE_MAX / 2 / sizeof(SpoolRow)) {
        throw machine_error("the log has more ops than this machine can address", "replay a part of it");
    }
    const size_t spool_bytes = spool_rows * sizeof(SpoolRow);
    const bool to_file = spool_bytes > memory_limit;
    spool_ = SharedMemory(spool_bytes, to_file ? (spool_dir.empty() ? "." : spool_dir) : std::filesystem::path{});
    spool_rows_ = reinterpret_cast<SpoolRow*>(spool_.data());
}

bool SharedRun::needs_in_vain(TaskId id) {
    uint32_t needs = TaskSlot::kNeedsNone;
    tasks_[id].needs_requests.compare_exchange_strong(needs, TaskSlot::kNeedsRequests);
    return needs == TaskSlot::kGivesUp;
}

void SharedRun::add(const AccessCounts& counts) {
    for (size_t i = 0; i < kAccessCounts; ++i) {
        control_->access[i].fetch_add(counts.values[i], std::memory_order_relaxed);
    }
}

AccessCounts SharedRun::access_counts() const {
    AccessCounts counts;
    for (size_t i = 0; i < kAccessCounts; ++i) {
        counts.values[i] = control_->access[i].load(std::memory_order_relaxed);
    }
    return counts;
}

void futex_wait(const std::atomic<uint32_t>& word, uint32_t seen, int64_t timeout_ns) {
    const timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
    syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

LockTaken take_lock(std::atomic<uint32_t>& word, const RunControl& control) {
    constexpr int64_t kLook = 50'000'000;  // ns, whether the run was stopped
    uint32_t seen = 0;
    if (word.compare_exchange_strong(seen, 1)) {
        return {};
    }
    while (word.exchange(2) != 0) {
        futex_wait(word, 2, kLook);
        if (control.stopped()) {
            return {false, false};
        }
    }
    return {true, false};
}

void give_lock(std::atomic<uint32_t>& word) {
    if (word.exchange(0) == 2) {
        syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
}

void futex_wake_all(const std::atomic<uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void rouse(TaskSlot& task) {
    if (task.asleep.exchange(0, std::memory_order_seq_cst) != 0) {
        futex_wake_all(task.asleep);
    }
}

bool wait_published(const TaskSlot& source, uint32_t count, TaskSlot& waiter, const RunControl& control, int spin) {
    for (int turn = 0; turn < spin; ++turn) {
        if (source.published.load(std::memory_order_acquire) >= count) {
            return true;
        }
        spin_pause();
    }
    bool arrived = false;
    while (!control.stopped()) {
        // In this order: either the source sees that this task sleeps, or this task what the source has published. The
        // same holds of edges given up; of a stop the supervisor tells again until it is seen.
        waiter.asleep.store(1, std::memory_order_seq_cst);
        if (source.published.load(std::memory_order_seq_cst) >= count ||
            waiter.let_go.load() >= waiter.waits_edge.load(std::memory_order_relaxed)) {
            arrived = true;
            break;
        }
        // Without a timer, which costs more than the wait where the machine is virtual.
        syscall(SYS_futex, &waiter.asleep, FUTEX_WAIT, 1, nullptr, nullptr, 0);
    }
    waiter.asleep.store(0, std::memory_order_relaxed);
    return arrived;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Memory that stands in for the job's own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "replay/limit/control_group.h"

namespace reprise {

/// A process in the group that holds as many anonymous bytes as it is told, locked in memory where that is allowed. It
/// ends with this, with the thread that made it, and is the first to go where memory runs out.
class Ballast {
public:
    /// Forks: before this process has threads that hold locks. `most`: address space, bytes. Throws Error (machine).
    Ballast(const ControlGroup& group, uint64_t most);
    ~Ballast();
    Ballast(const Ballast&) = delete;
    Ballast& operator=(const Ballast&) = delete;

    /// It gets there within milliseconds, or as fast as the kernel frees memory.
    void want(uint64_t bytes);
    uint64_t held() const { return shared_->held.load(); }
    /// In memory for sure; else it may be swapped where the machine has swap.
    bool locked() const { return shared_->locked.load() != 0; }
    /// The kernel killed it.
    bool died();

private:
    struct Shared {
        std::atomic<uint32_t> turn{0};  // futex word
        std::atomic<uint32_t> locked{0};
        std::atomic<uint64_t> wanted{0}, held{0};
    };
    [[noreturn]] static void run(Shared& shared, std::byte* memory, uint64_t most);

    Shared* shared_ = nullptr;
    uint64_t most_ = 0;
    pid_t pid_ = -1;
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Mapped pages that processes used again (RAW_USES): samples tell which, and between when; where in that time a task
// worked, they are placed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "formats/raw/record.h"

namespace reprise {

/// Of a process, between two samples; times of the recording's clock.
struct SampledUses {
    uint64_t from = 0, until = 0;
    std::vector<int64_t> runs;  // as in RAW_USES
};

/// All of a recording.
class RawUses {
public:
    void see(const raw_uses& record);
    const std::map<uint32_t, std::vector<SampledUses>>& by_pid() const { return by_pid_; }
    /// Samples that found huge pages, of which they do not tell what was used.
    uint64_t huge() const { return huge_; }

private:
    std::map<uint32_t, std::vector<SampledUses>> by_pid_;
    uint64_t huge_ = 0;
};

/// Gives them out as the tasks' time passes. A sample's pages go to what those tasks computed that have had faults on
/// such pages (else to the first thread), in proportion: how much they will compute until the sample ends is taken from
/// the one before.
class UsedAgain {
public:
    /// Keeps a reference.
    explicit UsedAgain(const RawUses& uses) : uses_(uses) {}

    void faulted(uint32_t pid, uint32_t tid, uint64_t address);
    /// The runs that a task used in `ns` of computing from `begin` on; `begin`: of the recording's clock.
    std::vector<int64_t> take(uint32_t pid, uint32_t tid, uint64_t begin, uint64_t ns);
    /// Pages that no computing was found for.
    uint64_t left() const;

    static uint64_t pages_of(int64_t run) { return (static_cast<uint64_t>(run) & kMorePages) + 1; }
    static uint64_t address_of(int64_t run) { return static_cast<uint64_t>(run) & ~kMorePages; }

private:
    static constexpr uint64_t kMorePages = 0xfff;
    struct Process {
        const std::vector<SampledUses>* samples = nullptr;
        std::set<uint64_t> regions;  // with such pages
        std::set<uint32_t> takers;   // tasks
        size_t next = 0;             // sample
        std::vector<int64_t> pending;
        size_t given = 0;                                  // of pending
        uint64_t faults = 0, forward = 0, last_fault = 0;  // forward: not far behind the one before
        uint64_t pages = 0, until = 0, expected = 0, computed = 0;
    };
    Process* process_of(uint32_t pid);
    static void order(Process& process);
    static void begin_sample(Process& process, const SampledUses& sample, std::vector<int64_t>& out);
    static void give(Process& process, uint64_t pages, std::vector<int64_t>& out);

    const RawUses& uses_;
    std::map<uint32_t, Process> processes_;
};

}  // namespace reprise

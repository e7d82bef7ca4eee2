// SPDX-License-Identifier: MIT
// What memory besides files the recorded processes hold, sampled.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "capture/loader.h"
#include "formats/raw/log.h"

namespace reprise {

/// The kernel counts resident pages of a process cheaply, but a page that several share counts for each. Shares
/// (smaps_rollup) cost a walk over all pages, 10 to 30 ms of a Python process with PyTorch: they are read where several
/// processes are large and their counts changed, for at most one percent of the time, once of each new process for at
/// most five, and hold as a ratio until the next reading. A process as large as another one when it is seen first is
/// taken for its fork, that has nothing alone, until it is read.
class MemorySamples {
public:
    /// RAW_MEMORY of each process whose memory changed by a percent.
    void sample(BpfPrograms& bpf, RawWriter& to);

private:
    struct Process {
        uint64_t anonymous = 0, shared = 0;            // bytes, as told last
        uint64_t read_anonymous = 0, read_shared = 0;  // the kernel's counts when shares were read
        double anonymous_part = 1.0, shared_part = 1.0;
        uint64_t forked = 0;   // bytes taken for another's until it is read
        uint64_t read_at = 0;  // ns; 0: never
        uint64_t seen = 0;     // sample
    };
    void read_shares(const process_memory& now, Process& process);
    static uint64_t like_another(const process_memory& now, const std::vector<process_memory>& all);
    bool is_due(const process_memory& now, const Process& process, uint64_t time, bool changed) const;

    std::map<uint32_t, Process> processes_;
    uint64_t begin_ = 0, spent_ns_ = 0, samples_ = 0;
};

}  // namespace reprise

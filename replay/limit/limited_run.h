// SPDX-License-Identifier: MIT
// A run under limits: its group, the job's own memory stood in for, and the proof from the group's counters.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/oplog/held_memory.h"
#include "formats/oplog/recorded_progress.h"
#include "replay/limit/ballast.h"
#include "replay/limit/control_group.h"

namespace reprise {

struct RunLimits {
    std::optional<uint64_t> memory = {};  // bytes
    std::optional<double> ratio = {};     // instead: of the data that are read, to the memory
    bool ballast = true;                  // stand in for the job's own memory
    IoLimits io = {};

    bool memory_limited() const { return memory || ratio; }
    bool any() const { return memory_limited() || io.any(); }
};

/// What a limited run was like. Bytes.
struct LimitedMemory {
    uint64_t limit = 0, data = 0;          // `data`: that are read, each once
    int version = 0;                       // of the control group
    GroupMemory group;                     // when the run was over
    bool job_known = false;                // the recording says what memory the job held
    bool stood_in = false;                 // and it was asked for
    uint64_t job_peak = 0, held_peak = 0;  // recorded; here, of workers and ballast together
    double held_error = 0.0;               // mean, of the recorded: what was held here beside it
    uint64_t cut = 0;                      // most of what was recorded and did not fit
    bool ballast_died = false, may_swap = false;
};

/// Of memory, bytes; none: there is none. `data`: bytes that are read; `job_peak`: most that the recorded job held;
/// `least`: what is needed besides. Throws Error (machine) where that or the job would not fit.
std::optional<uint64_t> checked_limit(const RunLimits& limits, uint64_t data, uint64_t job_peak, uint64_t least);

/// Bytes that the limit has to leave to the page cache and the workers, so that nothing is killed.
uint64_t least_reserve(uint64_t limit);

/// A group, made with its limits; ends with this.
class LimitedRun {
public:
    /// `data`: bytes that are read. `job`: the recorded job's memory over time; none: not known. Throws Error (machine)
    /// where the limit cannot be made, or the recorded job would not fit in it.
    LimitedRun(const RunLimits& limits, uint64_t data, const std::optional<std::vector<HeldTotal>>& job,
               uint64_t processes);

    const ControlGroup& group() const { return group_; }
    void limit_io(const IoLimits& limits, dev_t device) { group_.limit_io(limits, device); }
    void count_io() { group_.count_io(); }
    /// Before workers are forked, after the page cache is as wanted. `log`: that is replayed.
    void start(const LogReader& log);
    /// About twenty times a second. `done`: ops, of all tasks.
    void tick(uint64_t done, int64_t now_ns);
    /// After the run. What was limited, and how.
    std::optional<LimitedMemory> finish();

private:
    const RunLimits limits_;
    const std::vector<HeldTotal> job_;
    LimitedMemory memory_;
    ControlGroup group_;
    std::optional<RecordedProgress> progress_;
    std::unique_ptr<Ballast> ballast_;
    uint64_t done_ = 0;
    int64_t since_ns_ = 0;
    double errors_ = 0.0;
    uint64_t samples_ = 0;
};

}  // namespace reprise

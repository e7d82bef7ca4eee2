// SPDX-License-Identifier: MIT
// Puts the accelerator work of a profile into a recording of the same job's I/O.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "formats/oplog/oplog.h"

namespace reprise {

enum class GraftBy : uint8_t {
    automatic,
    clock,  // both were recorded in one run: by the wall clock
    step,   // the profile is of another run of the job: each step where that step is in the recording
};

struct GraftOptions {
    std::function<void(Header&)> amend = {};  // has the last word on the header
    WriterOptions writer = {};
    std::string profile_name = {};  // for messages, where the profile's log is a scratch file; empty: that log's
};

struct GraftResult {
    GraftBy by = GraftBy::clock;
    int64_t offset_ns = 0;                 // clock: log time less profile time
    std::optional<int64_t> residual_ns;    // median distance of the two sources' steps; none: no steps to compare
    uint64_t submissions = 0, waits = 0;   // grafted
    uint64_t steps = 0, steps_of_log = 0;  // found in both; in the recording
};

/// Writes `output`: the ops of `job` with gpu_submit and gpu_wait of `profile`, which is a log made of a profile
/// (import_kineto, import_nsys). Computing and waiting that the recording shows while the host waited for the device
/// give way; computing is split where work was submitted. The header's `accelerator.*` and counters say what was done.
/// Throws Error (bad_input) with the numbers where the
/// two are not of the same job.
GraftResult graft(const LogReader& job, const LogReader& profile, GraftBy by, const std::filesystem::path& output,
                  const GraftOptions& options = {});

}  // namespace reprise

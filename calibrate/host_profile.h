// SPDX-License-Identifier: MIT
// This machine as a replay sees it: wake-up latency, cost of spinning and of calls, CPU speed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/wait_cost.h"

namespace reprise {

/// Units of work per second and thread, medians. Units mean nothing by themselves; the ratio between two machines does.
/// Compute-bound kinds scale between machines by nearly one factor, memory-bound ones do not, hence a vector.
struct WorkRates {
    double integer = 0;  // dependent 64-bit multiplications and shifts
    double inflate = 0;  // DEFLATE decompression of text, 64 KiB
    double memcpy = 0;   // copies of 8 MiB, beyond the inner caches
    bool operator==(const WorkRates&) const = default;
};

/// `count` delays of `target_ns` one after the other, each due when the one before it was.
struct DelayError {
    int64_t target_ns = 0;
    uint64_t count = 0;
    double total = 0;                // total overshoot, as a share
    int64_t p50_ns = 0, p99_ns = 0;  // overshoot of one
    bool operator==(const DelayError&) const = default;
};

struct HostProfile {
    static constexpr int kVersion = 1;
    std::string host, cpu, kernel;
    int64_t measured_unix_s = 0;
    int cpus = 0;                                   // that this process may use
    int64_t sleep_p50_ns = 0, sleep_p99_ns = 0;     // lateness of a plain sleep of 1 ms
    int64_t slack_p50_ns = 0, slack_p99_ns = 0;     // the same with timer slack 1 ns
    std::vector<DelayError> delays;                 // of calibrate/delay.h
    double clock_ns = 0, spin_ns = 0;               // reading the clock; one turn of a spinning wait
    double call_ns = 0, pread_ns = 0, open_ns = 0;  // getppid; cached 4 KiB pread; open and close of a small file
    double wake_ns = 0;                             // futex wake to running, between two threads
    WorkRates one, all;                             // one thread; on every processor at once, per thread
    WaitCost waits;                                 // not measured in old profiles
};

struct HostOptions {
    int repeats = 120;  // of each unit of work; medians are taken, so at least 100 are wanted
    std::filesystem::path scratch = std::filesystem::temp_directory_path();  // for a small file
    std::function<void(const char* step, int done, int total)> progress;     // may be empty
    const std::atomic<bool>* stop = nullptr;                                 // ends it early: an Error (machine)
};

/// Measures for about ten seconds. Throws Error (machine) where the machine refuses.
HostProfile measure_host(const HostOptions& options = {});

/// As JSON, in host.json. Reading throws Error (bad_input) that names the file and the field.
std::string to_json(const HostProfile& profile);
HostProfile read_host_profile(const std::filesystem::path& path);

/// How fast `here` computes in comparison with `there`: the geometric mean over the kinds of work, and by how much the
/// kinds disagree (half the spread, as a share): what a replay that scales compute by it cannot know.
struct SpeedRatio {
    double ratio = 1.0;
    double uncertainty = 0.0;
};
SpeedRatio compare_speed(const WorkRates& here, const WorkRates& there);

}  // namespace reprise

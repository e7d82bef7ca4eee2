// SPDX-License-Identifier: MIT
// Owns `reprise capture` as the rest of the tool sees it: what to record, how it went, what this machine grants. Works
// (by refusing with the reason) also where it was built without libbpf.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// What is recorded besides the calls themselves, each to be left out at will.
struct CaptureGroup {
    const char* name;
    const char* meaning;
};
const std::vector<CaptureGroup>& capture_groups();

struct CaptureProgress {
    uint64_t records = 0, bytes = 0, lost = 0, tasks = 0;
};

struct CaptureOptions {
    /// Exactly one of these three.
    std::vector<std::string> command;
    pid_t pid = 0;
    std::filesystem::path cgroup;

    std::filesystem::path raw;  ///< raw log to write
    std::string user;           ///< the command runs as this one; empty: SUDO_UID, else who we are
    std::vector<std::string> without;
    uint64_t ring_bytes = uint64_t{32} << 20;
    bool wait_all = false;  ///< go on after the command until every followed task has ended
    std::string version;    ///< of the tool, for the log
    std::string profile;    ///< JSON: how fast this machine computes, for the log; empty: unknown
    std::function<void(const CaptureProgress&)> progress;
};

struct CaptureResult {
    int status = 0;              ///< of the command, as waitpid tells it
    bool command_ended = false;  ///< there was a command and its status is known
    uint64_t records = 0, calls = 0, tasks = 0, bytes = 0;
    uint64_t lost = 0, recursion_misses = 0, untracked = 0;
    uint64_t still_running = 0;  ///< followed tasks that outlived the recording
    int64_t most_lag_ns = 0, elapsed_ns = 0;
    std::vector<std::string> absent;  ///< hooks asked for that the machine did not grant
    std::string failure;              ///< why the recording ended before the job did; empty: it did not
};

/// Records until the job has ended or a signal says so. Throws Error where it cannot begin.
CaptureResult capture(const CaptureOptions& options);

struct CaptureHook {
    std::string name, group;
    bool granted = false;
    std::string follows;  ///< what it means where it is not granted
};
struct CaptureCheck {
    std::string refusal;      ///< why nothing can be recorded, one sentence; empty: it can
    std::string raw_because;  ///< why by raw tracepoints, which cost more, and not by tp_btf; empty: by tp_btf
    std::vector<CaptureHook> hooks;
};
/// Tries each hook for real, briefly. Never throws for what the machine refuses.
CaptureCheck check_capture();

/// What to do instead, spelled out.
std::string capture_fallback();

}  // namespace reprise

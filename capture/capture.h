// SPDX-License-Identifier: MIT
// Owns `reprise capture` as the rest of the tool sees it: what to record, how it went, what this machine grants. Works
// (by refusing with the reason) also where it was built without libbpf.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/support/unique_fd.h"

namespace reprise {

/// What is recorded besides the calls themselves, each to be left out at will.
struct CaptureGroup {
    const char* name;
    const char* meaning;
};
const std::vector<CaptureGroup>& capture_groups();

struct CaptureProgress {
    uint64_t records = 0, bytes = 0, lost = 0, tasks = 0;
    std::array<uint64_t, 32> by_type{};       ///< of `records`, by enum raw_type
    uint64_t live = 0;                        ///< tasks followed now
    uint64_t ring_used = 0, ring_bytes = 0;   ///< of the ring buffer, bytes
    int64_t elapsed_ns = 0, most_lag_ns = 0;  ///< as CaptureResult
    int64_t own_cpu_ns = 0;                   ///< as CaptureResult
};

struct CaptureOptions {
    /// Exactly one of these three.
    std::vector<std::string> command;
    pid_t pid = 0;
    std::filesystem::path cgroup;

    std::filesystem::path raw;     ///< raw log to write
    std::filesystem::path output;  ///< op log that will be made of it; empty: none
    std::string user;              ///< the command runs as this one; empty: SUDO_UID, else who we are
    std::vector<std::string> without;
    uint64_t ring_bytes = uint64_t{32} << 20;
    bool mapped_uses = false;  ///< sample which mapped pages are used again
    bool wait_all = false;     ///< go on after the command until every followed task has ended
    /// libcufile, where it is not found by itself, and CUDA's libraries.
    std::vector<std::filesystem::path> cufile;
    std::string version;  ///< of the tool, for the log
    std::string profile;  ///< JSON: how fast this machine computes, for the log; empty: unknown
    std::function<void(const CaptureProgress&)> progress;  ///< ten times a second, and when the recording is over

    /// Files of the recording itself: the job may come upon them.
    std::vector<std::filesystem::path> own_files() const {
        std::vector<std::filesystem::path> out{raw};
        if (!output.empty()) {
            out.push_back(output);
            out.push_back(output.native() + ".partial");
        }
        return out;
    }
};

struct CaptureResult {
    int status = 0;              ///< of the command, as waitpid tells it
    bool command_ended = false;  ///< there was a command and its status is known
    uint64_t records = 0, calls = 0, tasks = 0, bytes = 0;
    uint64_t lost = 0, recursion_misses = 0, untracked = 0;
    uint64_t still_running = 0;  ///< followed tasks that outlived the recording
    int64_t most_lag_ns = 0, elapsed_ns = 0;
    int64_t before_ns = 0;                        ///< from the call of capture() until the job began, or was followed
    std::chrono::steady_clock::time_point ended;  ///< of the recording: when it began to detach
    int64_t own_cpu_ns =
        0;  ///< that the recorder's process used meanwhile; what its programs took, the job's tasks had
    std::vector<std::string> absent;  ///< hooks asked for that the machine did not grant
    /// While it lives no other recording takes the raw log.
    std::shared_ptr<const UniqueFd> raw_lock = {};
    std::string failure;  ///< why the recording ended before the job did; empty: it did not
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

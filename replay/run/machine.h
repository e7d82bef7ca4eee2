// SPDX-License-Identifier: MIT
// Facts about this machine and the replay root, part of every result.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "calibrate/mounted.h"
#include "replay/limit/io_limits.h"

namespace reprise {

struct MachineFacts {
    std::string host, kernel, cpu;  // cpu: model name, empty where unknown
    int cpus = 0;                   // that this process may use
    uint64_t memory_bytes = 0;
    /// Of the root; empty without one.
    std::string file_system;  // type, e.g. "ext4"
    std::string device;       // as mounted, e.g. "/dev/nvme0n1p1"
    std::string mount_options;
    uint64_t free_bytes = 0;
    std::optional<int64_t> read_ahead;  // largest window of reads of files there, bytes; none: unknown
    /// "/dev/loop3": a loop device that reads its file through the page cache; empty: it is on none.
    std::string cached_loop;
    std::string compresses;  // what says that files there are compressed, e.g. "compress=zstd:3"; empty: nothing
    IoLimits io_limits;      // of its disk, for processes of the control group that this one is in

    bool is_fuse() const { return file_system == "fuse" || file_system.starts_with("fuse."); }
};

/// See MachineFacts::compresses. `marked`: new files of the root are marked to be compressed (chattr +c).
std::string compression_of(const Mounted& mounted, bool marked);

MachineFacts machine_facts(const std::filesystem::path& root);

/// What to do where the machine refuses a thread or a process: the limits to raise, and their values.
std::string raise_task_limits();

}  // namespace reprise

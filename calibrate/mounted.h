// SPDX-License-Identifier: MIT
// What a directory lies on: its file system, and what the block device below it has moved.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace reprise {

/// Of proc(5), mountinfo; empty where unknown.
struct Mounted {
    std::string file_system;  // type, e.g. "ext4"
    std::string device;       // as mounted, e.g. "/dev/nvme0n1p1"
    std::string options;
};
Mounted mounted_at(const std::filesystem::path& path);

/// The whole disk that a directory's file system lies on; none where it is on no one block device.
std::optional<dev_t> disk_of(const std::filesystem::path& path);

/// Directories below `path`, an absolute path without links, on which something else is mounted; relative to it.
std::vector<std::string> mounts_below(const std::filesystem::path& path);

/// Block devices that the file system of a directory spreads over, beyond the one that is mounted: btrfs tells.
size_t further_devices(const std::filesystem::path& path);

/// What the block device below a file or directory has moved since it was set up, for whomever.
struct DeviceCounter {
    uint64_t read_bytes = 0, write_bytes = 0;
};
/// By the device's own counters (/sys/dev/block/MAJOR:MINOR/stat). None where the file system has no one device.
std::optional<DeviceCounter> read_device_counter(const std::filesystem::path& path);
/// The same of the whole disk that it lies on.
std::optional<DeviceCounter> read_disk_counter(const std::filesystem::path& path);
/// What this process, and its children that it has reaped, made devices move, from /proc/self/io. None: not known.
std::optional<DeviceCounter> read_own_counter();

/// Writes what the file system has to write, and makes the kernel forget the names that it has cached (of the whole
/// machine: there is no other way) and the blocks of the file system's device that hold them. False where this user may
/// not.
bool drop_names(const std::filesystem::path& path);

/// How the kernel cuts reads of files there, bytes. 0 where unknown.
struct ReadSizes {
    int64_t read_ahead = 0;  // largest window
    int64_t request = 0;     // largest that it asks for at once
    std::string setting;     // file that sets read_ahead, KiB; empty: there is none
};
ReadSizes read_sizes(const std::filesystem::path& path);

/// When the kernel writes dirty data back here and now: the thresholds follow the memory that is free. 0 where unknown.
struct WriteBackLimits {
    int64_t background_bytes = 0, most_bytes = 0;
    int64_t expire_ns = 0;
};
WriteBackLimits write_back_limits();

}  // namespace reprise

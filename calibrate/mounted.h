// SPDX-License-Identifier: MIT
// What a directory lies on: its file system, and what the block device below it has moved.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace reprise {

/// Of proc(5), mountinfo; empty where unknown.
struct Mounted {
    std::string file_system;  // type, e.g. "ext4"
    std::string device;       // as mounted, e.g. "/dev/nvme0n1p1"
    std::string options;
};
Mounted mounted_at(const std::filesystem::path& path);

/// What the block device below a file or directory has moved since it was set up, for whomever.
struct DeviceCounter {
    uint64_t read_bytes = 0, write_bytes = 0;
};
/// By the device's own counters (/sys/dev/block/MAJOR:MINOR/stat). None where the file system has no one device.
std::optional<DeviceCounter> read_device_counter(const std::filesystem::path& path);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Which disks stand on which others: dm, md and bcache on their slaves, a loop device on the disk of its file.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/mounted.h"

namespace reprise {

/// By "MAJOR:MINOR", those of whole disks also for what stands on partitions. Left out: loop devices whose file is on
/// no disk (tmpfs, overlayfs, a network), or in no directory that can be reached.
using StackedDisks = std::map<std::string, std::vector<std::string>>;

/// `device_of`: the disk that a path lies on; none where it is on no one.
StackedDisks stacked_disks(
    const std::filesystem::path& sys = "/sys",
    const std::function<std::optional<dev_t>(const std::filesystem::path&)>& device_of = disk_of);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// The control groups that this process is in: where they lie, and the numbers in their files (cgroups(7)).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

struct OwnGroup {
    int version = 0;               // 1 or 2
    std::filesystem::path mount;   // of the hierarchy
    std::filesystem::path folder;  // of the group; the mount where a container does not show it
    bool shown = true;

    bool operator==(const OwnGroup&) const = default;
};

/// What /proc/self says of mounts and groups.
struct GroupTexts {
    std::string mounts, own;  // mountinfo, cgroup
};
GroupTexts read_group_texts();

/// In the hierarchy of version 1 that has a controller ("memory"). None: no such one is mounted.
std::optional<OwnGroup> own_group_of(std::string_view controller, const GroupTexts& texts);
/// In that of version 2.
std::optional<OwnGroup> own_unified_group(const GroupTexts& texts);

/// The first number in a file, or the one behind `word` ("total_rss", "8:0 Read", "8:0 rbytes=") at the beginning of a
/// line. None where it is not there, as where the file says "max".
std::optional<uint64_t> number_in(const std::filesystem::path& path, std::string_view word = {});

}  // namespace reprise

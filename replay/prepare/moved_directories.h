// SPDX-License-Identifier: MIT
// The answer to "where are the directories now that were there at first and that replays have renamed?".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "replay/prepare/layout.h"

namespace reprise {

struct MovedDirectories {
    std::unordered_map<uint32_t, std::string> places;  ///< by entry, where it lies now
    std::unordered_map<std::string, uint32_t> taken;   ///< the same places: what has that name itself lies elsewhere
    std::vector<DirectoryRename> renames_back;         ///< from these places
};

/// `root`: a directory descriptor. Looks only for directories that the log renames, and only where their name is free
/// or another's. Reads only.
MovedDirectories find_moved(const Layout& layout, int root);

/// Where a directory waits during a reset until its old name is free: beside the name it has, under a name that tells
/// which one it is to get.
std::string waiting_name(std::string_view from, std::string_view to);
/// Whether it is such a name.
bool is_waiting(std::string_view path);

}  // namespace reprise

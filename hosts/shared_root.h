// SPDX-License-Identifier: MIT
// Which ranks see the same directory as their root: one on storage that hosts share, or on one host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "hosts/conversation.h"

namespace reprise {

struct RootGroup {
    uint32_t place = 0;             // of this rank among them
    std::vector<uint32_t> members;  // ranks, ascending
    bool leads() const { return place == 0; }
};

/// Asks the directory itself: each rank leaves a file in it for a moment, and looks for the others' files. Where it may
/// not write, ranks of a host that name the same directory are together. All ranks call it.
RootGroup group_by_root(Conversation& ranks, const std::filesystem::path& root);

}  // namespace reprise

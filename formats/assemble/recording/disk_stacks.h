// SPDX-License-Identifier: MIT
// Disks that stand on others (loop, dm, md): what went through several of them counts once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace reprise {

/// Those each disk stands on; disks by number, as raw_block has it.
using DiskStacks = std::map<uint32_t, std::vector<uint32_t>>;

/// The member "stacked_disks" of a RAW_META text, {"7:0": ["254:0"]}; empty where it has none that can be read.
DiskStacks stacks_of_meta(const std::string& meta);

/// Disks without any below them that a stack joins, and what stands on these.
struct DiskGroup {
    std::vector<uint32_t> disks;
    std::vector<DiskGroup> above;
};

/// All of `disks` and of `stacks`, each in one group.
std::vector<DiskGroup> disk_groups(const std::vector<uint32_t>& disks, const DiskStacks& stacks);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// The answer to "how many files that the log does not name lay between those that it names?", from recorded inode
// numbers. File systems number the files of a directory in the order in which they are made, and read inodes by the
// block: what a job that opens few files of many has to read depends on the others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

namespace reprise {

/// A file that was there before the recording began.
struct RecordedInode {
    uint64_t device = 0, inode = 0;
    uint32_t directory = 0, entry = 0;  ///< of a layout
};

/// The files of a directory in the order of their inodes.
struct InodeScatter {
    std::vector<uint32_t> entries;
    std::vector<uint64_t> others;  ///< before each of the entries, and after the last
    uint64_t all_others = 0;       ///< their sum
    /// Whether the numbers are dense enough to say where the others lay.
    bool dense = false;

    /// Whether there are enough files to say how many others there were.
    bool tells_count() const { return dense && entries.size() >= kFewest && all_others > 0; }
    /// Where so many others lay, by the proportions known.
    std::vector<uint64_t> spread(uint64_t count) const;

    static constexpr size_t kFewest = 8;
    static constexpr uint64_t kMostGap = 4096;  ///< further apart: not made one after the other
    static constexpr uint64_t kMostPerFile = 256;
};

/// By directory. `type` is the file system of a device, "ext4"; empty: unknown.
///
/// Where numbers run on (ext4, btrfs, tmpfs), they are taken at their word. XFS makes inodes in chunks of 64 and
/// numbers them by their place on the device, with data in between: how many chunks there were follows from how many
/// different ones the files lie in. Others may do as either, or number files arbitrarily: they count by the chunk as
/// well, and only where files share chunks.
std::map<uint32_t, InodeScatter> find_scatter(std::vector<RecordedInode> files,
                                              const std::function<std::string_view(uint64_t device)>& type);

}  // namespace reprise

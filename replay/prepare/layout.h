// SPDX-License-Identifier: MIT
// The answer to "what lay there before the recording began, and what does the recording do to it?", from the log
// alone; nothing here looks at a file system.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "formats/support/range_set.h"
#include "replay/plan/paths.h"
#include "replay/prepare/attributes.h"

namespace reprise {

/// One path below the root that the log names or that leads to one it names.
struct LayoutEntry {
    static constexpr uint32_t kRoot = std::numeric_limits<uint32_t>::max();

    std::string path;                   ///< relative, clean, never "."
    uint32_t parent = kRoot;            ///< index of the directory's entry
    FileType type = FileType::unknown;  ///< regular, directory, symlink or fifo once laid out
    bool initial = false;               ///< there before the recording: `prepare` makes it
    bool made = false;                  ///< an op of the log makes this path
    bool gone = false;                  ///< an op removes or renames it
    bool attributes = false;            ///< an op sets its permission bits or extended attributes
    bool listing = false;               ///< stands for a file that lay there and that no op names
    bool runnable = false;              ///< an access check of the log found that it could be executed
    uint32_t mode = 0;                  ///< permission bits, 0: unknown
    uint64_t size = 0;                  ///< bytes, regular files
    std::string target;                 ///< of a symbolic link, rewritten to stay beneath the root
    /// Bytes that ops may have changed: [changed_from, changed_to), none where empty.
    uint64_t changed_from = std::numeric_limits<uint64_t>::max();
    uint64_t changed_to = 0;

    bool data_changed() const { return changed_to > changed_from; }
    /// Whether a replay alters it.
    bool changed() const { return data_changed() || gone || attributes; }
    std::string_view name() const { return std::string_view(path).substr(path.rfind('/') + 1); }
};

/// A directory that the log renames; relative paths.
struct DirectoryRename {
    std::string from, to;
};

/// An op of the log makes a file take more or less of its disk.
struct Growth {
    uint32_t entry = 0;
    int64_t bytes = 0;
};

struct Layout {
    std::deque<LayoutEntry> entries;
    std::vector<Growth> growth;                      ///< in the order of the log
    std::vector<DirectoryRename> directory_renames;  ///< in the order of the log
    std::vector<Counter> counters;                   ///< what was left out or guessed
    std::map<uint32_t, RangeSet> holes;              ///< by entry: bytes that no block of the device held
    std::map<uint32_t, uint32_t> hard_links;         ///< further names of a file, to the entry of its first one
    std::map<uint32_t, Attributes> attributes;       ///< by entry, files and directories: what they had at first
    uint64_t files_left_out = 0;                     ///< by the filter
    uint64_t unnamed_files = 0;  ///< of the entries with `listing`, those that recorded inode numbers tell of
    /// Directories whose files, and the empty ones between them, are to be made in the order of `children`.
    std::set<uint32_t> in_order;

    /// Indices of the entries directly in a directory (LayoutEntry::kRoot: the root), in the order of their recorded
    /// inodes, as offsets into `children`:
    /// those of directory d are children[first[d + 1] .. first[d + 2]), those of the root children[first[0] ..
    /// first[1]).
    std::vector<uint32_t> children;
    std::vector<uint64_t> first;
    /// What of [from, to) of a file has data.
    RangeSet data_of(uint32_t entry, uint64_t from, uint64_t to) const;
    std::pair<const uint32_t*, const uint32_t*> children_of(uint32_t directory) const {
        const size_t at = directory == LayoutEntry::kRoot ? 0 : size_t{directory} + 1;
        return {children.data() + first[at], children.data() + first[at + 1]};
    }
};

/// Empty files: in a directory that the log lists, as many as make a listing return as many bytes as the recorded one;
/// in others, as many as lay between the files that the log names.
enum class ListingEntries : uint8_t {
    none,
    add,     ///< there at first
    remove,  ///< a reset removes them
};

/// Reads all ops of the log once. A path that both is a file and holds files, lies outside the root, or is of a type
/// that cannot be made (device, socket) is left out and counted.
Layout make_layout(const LogReader& log, const OpFilter& filter, const PathMap& maps,
                   ListingEntries listing = ListingEntries::add);

}  // namespace reprise

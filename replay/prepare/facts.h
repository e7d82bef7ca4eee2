// SPDX-License-Identifier: MIT
// What the ops of a log say about each file: made, used, removed, changed where.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "formats/oplog/oplog.h"
#include "replay/prepare/attributes.h"

namespace reprise {

/// About one row of the file table. Times are ns of the log.
struct FileFacts {
    static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
    static constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();

    int64_t made = kNever;                         ///< first op that succeeded and may have made the name
    int64_t used = kNever;                         ///< first op that succeeded and found the name
    int64_t blocked = kNever;                      ///< first op that found a part of the path to be no directory
    uint64_t changed_from = kEnd, changed_to = 0;  ///< bytes that ops may have changed
    int64_t removed = kNever;                      ///< first op that removed or renamed it
    uint64_t listed = 0;                           ///< most bytes of entries that one listing of it returned
    int64_t listed_at = kNever;                    ///< when that listing began
    uint64_t reach = 0;                            ///< furthest byte read or written, plus one
    int64_t looped = kNever;                       ///< first op that found a loop of links at its end, or a link there
                                                   ///< that it refused (O_NOFOLLOW)
    int64_t looped_above = kNever;                 ///< likewise, before its end
    bool is_loop = false;                          ///< certainly the former
    bool missing = false;                          ///< not found, so no part of the path was a file
    bool opened = false;                           ///< opened, following links
    bool directory = false;                        ///< used as only a directory can be
    bool gone = false;                             ///< removed or renamed
    bool not_empty = false;                        ///< a directory that an op found to hold something
    int64_t runnable = kNever;                     ///< first access check that allowed to execute it
    int64_t attributes_at = kNever;                ///< first op that set permission bits or extended attributes
    bool nameless = false;                         ///< made by O_TMPFILE: the path is its directory

    bool attributes() const { return attributes_at != kNever; }
    /// Could be executed before the log said so.
    bool was_runnable() const { return runnable < attributes_at; }
    void change(uint64_t from, uint64_t to) {
        changed_from = from < changed_from ? from : changed_from;
        changed_to = to > changed_to ? to : changed_to;
    }
};

struct RenameFact {
    int64_t time = 0;
    FileId from = 0, to = 0;
    bool exchanged = false;  ///< with each other
};

/// An op changed how much of a disk a file takes. Of growth in a row, the last one.
struct SizeFact {
    enum class Kind : uint8_t {
        grown,  ///< to `size` bytes that were written; holes take nothing
        cut,    ///< to at most `size` bytes, or removed
        moved,  ///< to the name of `to`, whose file is gone
    } kind = Kind::grown;
    FileId file = 0, to = 0;
    int64_t time = 0;
    uint64_t size = 0;
};

struct LogFacts {
    std::vector<FileFacts> files;     ///< by FileId
    std::vector<RenameFact> renames;  ///< by time
    std::vector<SizeFact> sizes;      ///< by time
    AttributeFacts attributes;
};

/// One pass over all ops; blocks are decoded one at a time.
LogFacts gather_facts(const LogReader& log);

}  // namespace reprise

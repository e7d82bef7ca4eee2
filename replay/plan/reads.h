// SPDX-License-Identifier: MIT
// Which bytes of which files the ops of a log read through the page cache.
#pragma once

#include <functional>
#include <vector>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/oplog.h"
#include "formats/support/range_set.h"

namespace reprise {

/// Ranges by FileId. Takes nothing before the first.
class FileRanges {
public:
    explicit FileRanges(size_t files = 0) : files_(files) {}
    const RangeSet& operator[](FileId file) const {
        static const RangeSet none;
        return sets_.empty() ? none : sets_[file];
    }
    RangeSet& of(FileId file) {
        sets_.resize(files_);
        return sets_[file];
    }

private:
    size_t files_;
    std::vector<RangeSet> sets_;
};

/// By FileId.
struct FileReads {
    /// What ops that succeeded read or, of a mapping, touch or populate, and the pages of which writes replace a part.
    /// Direct I/O passes the page cache by and does not count, and neither does what the job had made before.
    FileRanges reads;
    /// What ops wrote into the page cache, cut off, or punched: whole pages.
    FileRanges made;
    /// What the kernel was advised to read (readahead, WILLNEED). It reads less of it where its limit for one call is
    /// lower, or memory is short.
    FileRanges advised;
    /// Of `reads`, what page faults touched.
    FileRanges touched;
    /// What lies elsewhere since a part before it was taken out or put in.
    FileRanges shifted;
    /// Renames and hard links: the names before and after; of an exchange, both before.
    struct Rename {
        FileId from = 0, to = 0;
        bool exchange = false;
    };
    std::vector<Rename> renames;
    /// What a device may serve besides: direct reads, and the pages of which writes replace a part.
    uint64_t beside_bytes = 0;
    /// Whether some of what was read or written was dropped again, so that it may be read from the device more than
    /// once.
    bool drops = false;
};

/// The holes that files had when the recording began. Where that was asked after the job, what it wrote, cut off or
/// punched says nothing of before, and is taken for data.
Holes holes_at_first(const LogReader& log, const FileReads& reads);
/// The same, by a pass over the log where it is needed.
Holes holes_at_first(const LogReader& log);

/// Files that `wanted` refuses have nothing. Up to two passes over the log.
FileReads gather_reads(const LogReader& log, const std::function<bool(FileId)>& wanted);

}  // namespace reprise

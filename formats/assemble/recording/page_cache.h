// SPDX-License-Identifier: MIT
// Which pages of each file had to be fetched: they were not in memory when the recording began. The first event of a
// page says it: that it came, and not for a write; for a write of a part of it, it was read as well. And how many pages
// of a file were there when it was first opened.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/oplog.h"
#include "formats/raw/record.h"
#include "formats/support/range_set.h"

namespace reprise {

class RawPageCache {
public:
    using Inode = std::pair<uint64_t, uint64_t>;  // device, as user space sees it, and number
    /// Pages that came for a write.
    struct Written {
        Inode inode;
        RangeSet pages, first;  // `first`: those of which nothing was seen before
    };
    /// In the order of time.
    std::optional<Written> see(const raw_page_cache& record);
    /// A call wrote [from, to) by way of these pages. Those of which it is a part and that had data before were read.
    void wrote(const raw_fd& fd, uint64_t from, uint64_t to, const std::vector<Written>& pages);
    void see(const raw_fd& fd);
    void see(const raw_backing& record);
    void see(const raw_holes& record);
    /// The job may have made holes in it.
    void see_cut(const raw_fd& fd);
    bool empty() const { return files_.empty(); }
    // Of the files that were there before the recording.
    FetchedPages of(const Tables& tables) const;
    CachedPages when_opened(const Tables& tables) const;
    /// Of files that were sparse when they were opened, and looked at before the job could make holes.
    Holes holes_before(const Tables& tables) const;
    /// Of any file, also of those that the job made: what was fetched after it had been in memory.
    RefetchedPages refetched(const Tables& tables) const;
    /// Bytes of these that are of data: not of programs, the system's files or /dev/shm.
    static uint64_t data_bytes(const RefetchedPages& pages, const Tables& tables);
    /// Devices of files that lie in memory, as user space sees them.
    const std::set<uint64_t>& in_memory() const { return in_memory_; }
    /// Files that have their pages in another one, which the recorder did not find.
    uint64_t unknown(const Tables& tables) const;

private:
    struct Pages {
        RangeSet fetched;
        RangeSet others;     // whose first event was another one: they were in memory, or the job wrote them
        uint64_t again = 0;  // bytes that came after their first event, and not for a write
    };
    struct Look {
        uint64_t time = 0, size = 0;  // 0: not yet
        bool cut = false;             // before it
        RangeSet holes;
    };
    struct Opened {
        uint64_t pages = 0;  // when it was first seen open
        uint64_t size = 0;   // bytes, by now
    };
    std::set<uint64_t> in_memory_;
    std::map<Inode, Pages> files_;
    std::map<Inode, Opened> opened_;
    std::map<Inode, Look> sparse_;
    std::map<Inode, std::vector<Inode>> backings_;  // overlayfs: those that have the pages; none: not found
};

/// Whether the recorder was asked for the page cache, and the kernel had the hook. `groups`, `absent`: JSON lists of
/// the header (formats/oplog/header_facts.def), empty where they are not there.
bool records_page_cache(std::string_view groups, std::string_view absent);

}  // namespace reprise

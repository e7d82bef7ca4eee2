// SPDX-License-Identifier: MIT
// Which pages of each file had to be fetched: they were not in memory when the recording began. The first event of a
// page says it: that it came, and not for a write.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "formats/oplog/fetched.h"
#include "formats/oplog/oplog.h"
#include "formats/raw/record.h"
#include "formats/support/range_set.h"

namespace reprise {

class RawPageCache {
public:
    /// In the order of time.
    void see(const raw_page_cache& record);
    bool empty() const { return files_.empty(); }
    /// Of the files that were there before the recording.
    FetchedPages of(const Tables& tables) const;

private:
    struct Pages {
        RangeSet fetched;
        RangeSet others;  // whose first event was another one: they were in memory, or the job wrote them
    };
    std::map<std::pair<uint64_t, uint64_t>, Pages> files_;  // by device, as user space sees it, and inode
};

/// Whether the recorder was asked for the page cache, and the kernel had the hook. `groups`, `absent`: JSON lists of
/// the header (formats/oplog/header_facts.def), empty where they are not there.
bool records_page_cache(std::string_view groups, std::string_view absent);

}  // namespace reprise

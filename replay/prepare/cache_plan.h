// SPDX-License-Identifier: MIT
// Which files a replay reads, which parts of them, and what of these the recording found in the page cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/oplog/oplog.h"
#include "formats/support/range_set.h"
#include "replay/plan/plan.h"

namespace reprise {

/// What a recording says of its page cache.
struct RecordedCache {
    uint64_t read_bytes = 0;                ///< each byte once
    std::optional<uint64_t> fetched_bytes;  ///< of these not in memory when they were first needed; none: unknown
    /// Which pages these are. Else fetched_bytes is estimated from counters of the whole machine, and read_bytes is of
    /// all files, the program's among them.
    bool pages_known = false;
};

/// One file below the root that the replay reads.
struct CacheTarget {
    std::string path;   ///< relative to the root
    RangeSet reads;     ///< what the replay reads of it
    RangeSet resident;  ///< what the recording read of it and found in memory
};

struct CachePlan {
    std::vector<CacheTarget> targets;  ///< one per path
    RecordedCache recorded;
};

/// `recording`: the log that the plan's log was made from, or the same one. Reads both.
CachePlan plan_cache(const Plan& plan, const LogReader& recording);

}  // namespace reprise

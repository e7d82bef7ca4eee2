// SPDX-License-Identifier: MIT
// Which files a replay reads, which parts of them, and what of these the recording found in the page cache.
#pragma once

#include <cstdint>
#include <optional>
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
    /// Files of which only is known how much was in memory: taken to be their beginnings.
    uint64_t guessed_files = 0;
    /// Read besides, and on no device: holes that the recording knows and `prepare` makes.
    uint64_t hole_bytes = 0;
    /// Of fetched_bytes, what no device of the recording's machine read: sparse or compressed then, and nobody knows
    /// where, as the job filled, removed or replaced the files.
    uint64_t unserved_bytes = 0;
    /// Of read_bytes, what page faults touched, and what of that was in memory.
    uint64_t touched_bytes = 0, touched_in_memory = 0;
    /// Besides read_bytes: what was fetched around these pages and mapped with them, so that no fault shows whether it
    /// was used.
    uint64_t around_bytes = 0;
    /// How far around such a page fault the recording's device was read, bytes, as far as a fault maps: by its
    /// read-ahead, or, where the log does not say that, by how much was fetched for each fault. 0: unknown.
    int64_t fault_reach = 0;

    /// Whether mapped files were in memory: a fault then maps the pages around it, too, up to 2 MiB, and the log cannot
    /// know which of these were used.
    bool hides_touches() const;
};

/// One file below the root that the replay reads.
struct CacheTarget {
    const char* path;   ///< relative to the root; the plan's
    RangeSet reads;     ///< what the replay reads of it, and what the recording fetched around its page faults
    RangeSet resident;  ///< what the recording read of it and found in memory
};

struct CachePlan {
    std::vector<CacheTarget> targets;  ///< one per path
    RecordedCache recorded;
    uint64_t around_bytes = 0;  ///< RecordedCache's, of what a scaled log has more than the recording
    uint64_t beside_bytes = 0;  ///< what a device may serve besides: FileReads
    bool drops = false;         ///< data may be read from the device more than once: FileReads
};

/// `recording`: the log that the plan's log was made from, or the same one. Reads both. `plan` and its log outlive what
/// is returned. Per file: 64 bytes, and about as much while it is made.
CachePlan plan_cache(const Plan& plan, const LogReader& recording);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// What a what-if changes about how a job gets at its files: reads past the page cache, writes that wait for the device,
// mapped files read and read files mapped, files asked for ahead. Decided once, from the log; engine and prediction
// follow it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "replay/plan/plan.h"

namespace reprise {

struct AccessChange {
    bool direct = false;        // reads with O_DIRECT
    bool sync_writes = false;   // writes with O_DSYNC
    bool read_as_mmap = false;  // reads become touches of a mapping
    bool prefetch = false;      // files are asked for as a whole where they are opened
    int64_t mmap_as_read = 0;   // touches of mappings become reads of so many bytes; 0: they stay
    int64_t read_ahead = 0;     // bytes, of the storage, not of the job; 0: as it is

    bool any() const { return direct || sync_writes || read_as_mmap || prefetch || mmap_as_read != 0; }
};

/// Bits of AccessPlan::handles.
enum AccessFlag : uint8_t {
    kReadsDirect = 1,
    kWritesSync = 2,
    kReadsMapped = 4,
    kPrefetched = 8,
};

/// What one task touches of a mapping, one page fault after the other, with what each of them mapped by itself: what a
/// program that reads would read one piece after the other. Bytes of the mapping.
struct TouchRun {
    int64_t from = 0, to = 0;
    int64_t last = 0;  // where its last touch ends; what lies behind came with that
};

struct AccessPlan {
    AccessChange change;
    std::vector<uint8_t> handles;                              // by HandleId: AccessFlag
    std::vector<uint8_t> maps;                                 // by mapping: not 0 where its touches become reads
    std::unordered_map<uint64_t, std::vector<TouchRun>> runs;  // by key(), in the order in which they are touched
    uint64_t also_written = 0;  // instances whose reads stay in the page cache, as they are written through, too

    static uint64_t key(TaskId task, uint32_t map) { return uint64_t{task} << 32 | map; }
    uint8_t handle(HandleId id) const { return id < handles.size() ? handles[id] : uint8_t{0}; }
    bool reads_map(uint32_t map) const { return map < maps.size() && maps[map] != 0; }
    /// Null where there are none.
    const std::vector<TouchRun>* runs_of(TaskId task, uint32_t map) const;
};

/// Files are asked for in pieces of this: the kernel takes no more of one request than the device's read-ahead.
inline constexpr int64_t kPrefetchPiece = int64_t{128} << 10;

/// Reads the whole log once. Throws Error (usage) where an option would change nothing.
AccessPlan plan_access(const Plan& plan, const AccessChange& change);

/// Follows the touches of one mapping by one task through its runs.
class RunCursor {
public:
    /// Calls read(offset in the mapping, bytes) for each piece that has to be read so that [at, at + bytes) is there,
    /// until one returns false.
    template <class Read>
    void bring(const std::vector<TouchRun>& runs, int64_t at, int64_t bytes, int64_t piece, Read&& read) {
        size_t run = run_;
        while (run < runs.size() && (at < runs[run].from || at + bytes > runs[run].last)) {
            ++run;
        }
        if (run == runs.size()) {
            return;  // not in the log
        }
        if (run != run_ || done_ < 0) {
            run_ = run;
            done_ = runs[run].from;
        }
        const int64_t needed = at + bytes == runs[run].last ? runs[run].to : at + bytes;
        while (done_ < needed) {
            const int64_t from = done_, size = std::min(piece, runs[run].to - done_);
            done_ += size;
            if (!read(from, size)) {
                return;
            }
        }
    }

private:
    size_t run_ = 0;
    int64_t done_ = -1;
};

/// What the changes came to.
enum class AccessCount : uint8_t {
    direct_reads,    // that were made with O_DIRECT
    direct_asked,    // bytes that they returned
    direct_fetched,  // bytes that they asked for, in whole blocks
    direct_refused,  // instances whose file system refused
    buffered_reads,  // reads through those
    sync_writes,
    sync_bytes,
    touched_bytes,  // pages that the job touched and that were read in place
    map_reads,      // made in place of touches
    map_read_bytes,
    mapped_reads,  // made as touches
    mapped_bytes,
    unmappable,  // instances that could not be mapped
    prefetched_files,
    prefetched_bytes,
    // Of recorded O_DIRECT, where this storage refuses parts of a block: reads of whole ones, bytes that were asked for
    // and fetched; writes through the page cache.
    part_reads,
    part_asked,
    part_fetched,
    part_writes,
    part_written,
    waited,  // calls that were not to wait (RWF_NOWAIT), and had to here
};
inline constexpr size_t kAccessCounts = 21;
/// Of --json.
inline constexpr std::array<std::string_view, kAccessCounts> kAccessNames{"direct_reads",
                                                                          "direct_asked_bytes",
                                                                          "direct_fetched_bytes",
                                                                          "direct_refused_opens",
                                                                          "buffered_reads",
                                                                          "sync_writes",
                                                                          "sync_write_bytes",
                                                                          "touched_bytes",
                                                                          "mmap_as_reads",
                                                                          "mmap_as_read_bytes",
                                                                          "read_as_mmap_reads",
                                                                          "read_as_mmap_bytes",
                                                                          "unmapped_opens",
                                                                          "prefetched_files",
                                                                          "prefetched_bytes",
                                                                          "part_block_reads",
                                                                          "part_block_asked_bytes",
                                                                          "part_block_fetched_bytes",
                                                                          "part_block_writes",
                                                                          "part_block_written_bytes",
                                                                          "nowait_calls_that_waited"};

struct AccessCounts {
    std::array<uint64_t, kAccessCounts> values{};
    uint64_t& operator[](AccessCount what) { return values[static_cast<size_t>(what)]; }
    uint64_t operator[](AccessCount what) const { return values[static_cast<size_t>(what)]; }
};

/// "this storage refuses O_DIRECT on parts of a block: 1,200 reads took whole ones (4.69 MiB for 600 KiB)"; else empty.
std::string part_blocks_sentence(const AccessCounts& counts);
/// "12 calls that were not to wait (RWF_NOWAIT) had to here"; else empty.
std::string waited_sentence(const AccessCounts& counts);
/// Both, after what the plan changes (null: nothing): "1,200 reads with O_DIRECT, 1.2 GiB fetched for 1.1 GiB asked
/// (1.09 times); ..."
std::string access_sentence(const AccessPlan* plan, const AccessCounts& counts);

}  // namespace reprise

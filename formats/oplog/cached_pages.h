// SPDX-License-Identifier: MIT
// What a recording found in the page cache, what it had to bring there, and what of files is on no device. Kept in the
// log as derived data (formats/FORMAT.md).
#pragma once

#include <map>
#include <optional>

#include "formats/oplog/oplog.h"
#include "formats/support/bytes.h"
#include "formats/support/range_set.h"

namespace reprise {

/// Of each file, the pages that were not in memory when the recording began. Files without a row were in memory as far
/// as they were used.
using FetchedPages = std::map<FileId, RangeSet>;

Derived encode_fetched(const FetchedPages& fetched);
/// Throws Corrupt. `files`: rows of the file table, with row 0.
FetchedPages decode_fetched(ByteView bytes, size_t files);

/// None where the log does not say: an import, or a recording without the page cache. Throws Error (bad_input) where it
/// holds something that cannot be that.
std::optional<FetchedPages> fetched_pages(const LogReader& log);

/// Of each file, how many pages came from its device after they had been in memory: dropped, or evicted, and read
/// again. A page counts as often as it came. Files without a row had none.
using RefetchedPages = std::map<FileId, uint64_t>;

Derived encode_refetched(const RefetchedPages& pages);
/// Throws Corrupt.
RefetchedPages decode_refetched(ByteView bytes, size_t files);

/// None where the log does not say. Throws Error (bad_input) as above.
std::optional<RefetchedPages> refetched_pages(const LogReader& log);

/// Of each file, how many of its pages were in memory when it was first seen open. Files without a row were never seen
/// so.
using CachedPages = std::map<FileId, uint64_t>;

Derived encode_cached(const CachedPages& cached);
/// Throws Corrupt.
CachedPages decode_cached(ByteView bytes, size_t files);

/// None where the log does not say. Throws Error (bad_input) as above.
std::optional<CachedPages> cached_pages(const LogReader& log);

/// Whether a file's data passes the page cache by, as its file system has none (DAX, 9p, ZFS): it was seen open with no
/// page in memory, and none came. What the job reads of it, and did not write, its storage was asked for.
bool passes_page_cache(const FetchedPages& fetched, const std::optional<CachedPages>& cached, FileId file);

/// Of each file, the pages that are holes: no block of the device holds them, or only preallocated ones. Files without
/// a row have none, or it is not known. As the job left them.
using Holes = std::map<FileId, RangeSet>;

Derived encode_holes(const Holes& holes);
/// Throws Corrupt.
Holes decode_holes(ByteView bytes, size_t files);

/// Empty where the log does not say. Throws Error (bad_input) as above.
Holes recorded_holes(const LogReader& log);

/// The same as it was when the job began to use them: of files that had holes then, and that the recorder could look at
/// before the job changed that. Those need not have any any more.
Derived encode_holes_before(const Holes& holes);
/// Empty where the log does not say. Throws Error (bad_input) as above.
Holes holes_before(const LogReader& log);

/// Whether holes of a file are kept: of those that `prepare` makes as large as they were, and not of small ones, whose
/// holes cost little.
bool keeps_holes(const FileRow& row);
constexpr uint64_t kLeastHoles = 64 << 10;  // bytes

/// All of these, for logs made from others with the same files.
void copy_page_cache(const LogReader& from, LogWriter& to);

}  // namespace reprise

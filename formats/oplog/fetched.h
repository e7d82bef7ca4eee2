// SPDX-License-Identifier: MIT
// What a recording had to bring into the page cache: of each file, the pages that were not in memory when the recording
// began. Kept in the log as derived data (formats/FORMAT.md). Files without a row were in memory as far as they were
// used.
#pragma once

#include <map>
#include <optional>

#include "formats/oplog/oplog.h"
#include "formats/support/bytes.h"
#include "formats/support/range_set.h"

namespace reprise {

using FetchedPages = std::map<FileId, RangeSet>;

Derived encode_fetched(const FetchedPages& fetched);
/// Throws Corrupt. `files`: rows of the file table, with row 0.
FetchedPages decode_fetched(ByteView bytes, size_t files);

/// None where the log does not say: an import, or a recording without the page cache. Throws Error (bad_input) where it
/// holds something that cannot be that.
std::optional<FetchedPages> fetched_pages(const LogReader& log);
/// For logs made from others with the same files.
void copy_fetched(const LogReader& from, LogWriter& to);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// What a merged log says of itself, and what it keeps besides ops and tables.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "formats/oplog/oplog.h"
#include "transform/merge_tables.h"

namespace reprise {

/// Throws Error (bad_input) where the logs, sorted by rank, are not those of one job: not of one rank each, of
/// different jobs or versions, a rank twice, or, without `allow_missing`, one that is missing.
void check_merged_ranks(const std::vector<const LogReader*>& logs, bool allow_missing);

/// The first log's header with what is said of all; `offset_ns` is added to its times.
Header merged_header(const std::vector<const LogReader*>& logs, int64_t offset_ns);

/// Connections, memory, page cache, holes and contents of all logs.
void keep_merged_derived(const std::vector<const LogReader*>& logs, const std::vector<MergedRows>& rows,
                         const std::function<int64_t(size_t)>& offset_ns, LogWriter& to);

}  // namespace reprise

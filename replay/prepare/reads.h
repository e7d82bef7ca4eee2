// SPDX-License-Identifier: MIT
// Which bytes of which files the ops of a log read through the page cache.
#pragma once

#include <functional>
#include <vector>

#include "formats/oplog/oplog.h"
#include "formats/support/range_set.h"

namespace reprise {

/// By FileId: what ops that succeeded read or, of a mapping, touch. Files that `wanted` refuses have nothing. Direct
/// I/O passes the page cache by and does not count. Up to two passes over the log.
std::vector<RangeSet> gather_reads(const LogReader& log, const std::function<bool(FileId)>& wanted);

}  // namespace reprise

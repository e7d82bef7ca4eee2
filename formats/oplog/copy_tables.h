// SPDX-License-Identifier: MIT
// The tables of one log in another, for logs that are made from one.
#pragma once

#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

/// Copies the tables into a writer that has none yet, with equal ids; returns the new id of each string, which differ
/// only where a log holds one twice.
std::vector<StringId> copy_tables(const Tables& from, LogWriter& to);

}  // namespace reprise

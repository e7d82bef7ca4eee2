// SPDX-License-Identifier: MIT
// A job that trains and reads no data has loader workers that Darshan does not see.
#pragma once

#include "formats/import/darshan/lines.h"
#include "formats/oplog/oplog.h"

namespace reprise::darshan {

/// Counts the log's reads where none of them is of a data set. Call once the roles of the files are settled.
void count_unread(const Lines& lines, LogWriter& writer);

}  // namespace reprise::darshan

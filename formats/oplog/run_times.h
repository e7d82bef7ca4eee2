// SPDX-License-Identifier: MIT
// Logs of runs in the place of recordings.
#pragma once

#include "formats/oplog/oplog.h"

namespace reprise {

/// Throws Error (bad input) where the log is of a run that computed nothing (pace afap): no job can be made of its
/// times.
void refuse_without_times(const LogReader& log);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// The epochs of a log, from which samples are read how often.
#pragma once

#include <vector>

#include "formats/oplog/epochs.h"
#include "formats/oplog/oplog.h"

namespace reprise {

/// None where the log's accesses do not look like epochs: nothing that could be samples, or read again before all of it
/// was read once. Reads the log twice; memory: about ten bytes per op.
std::vector<LogEpoch> find_epochs(const LogReader& log);

}  // namespace reprise

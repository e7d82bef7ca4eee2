// SPDX-License-Identifier: MIT
// What was inferred of queues that left no trace, as info and replay show it.
#pragma once

#include <string>
#include <vector>

#include "cli/table.h"
#include "replay/plan/queues.h"

namespace reprise::cli {

Table queues_table(const QueueInference& queues);
/// What of the recording may mislead a replay by causes: plain sentences with the error it may cause.
std::vector<std::string> queue_doubts(const QueueInference& queues);

}  // namespace reprise::cli

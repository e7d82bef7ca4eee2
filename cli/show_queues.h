// SPDX-License-Identifier: MIT
// Inferred queues, as info and replay show them.
#pragma once

#include <string>
#include <vector>

#include "cli/table.h"
#include "replay/plan/queues.h"

namespace reprise::cli {

Table queues_table(const QueueInference& queues);
/// Properties of the recording that may mislead a causal replay: sentences with the possible error.
std::vector<std::string> queue_doubts(const QueueInference& queues);

}  // namespace reprise::cli

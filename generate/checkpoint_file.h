// SPDX-License-Identifier: MIT
// How a checkpoint, or a rank's part of one, is written.
#pragma once

#include <cstdint>
#include <string>

#include "generate/job.h"
#include "generate/task_writer.h"

namespace reprise {

/// Written beside its name, synced and renamed.
void save_checkpoint(LogWriter& log, const TrainingJob& job, TaskWriter& task, const std::string& path, int64_t bytes);

}  // namespace reprise

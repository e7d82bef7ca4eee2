// SPDX-License-Identifier: MIT
// What a training job did otherwise than its words say.
#pragma once

#include <string>

#include "generate/job.h"

namespace reprise {

/// The epochs end before steps= does: they are given, or the data set was shrunk. Empty: they do not.
std::string fewer_steps(const TrainingJob& job, uint64_t steps);
/// Of a job that wrote none; empty where it asks for none.
std::string no_checkpoint(const TrainingJob& job, uint64_t steps);

}  // namespace reprise

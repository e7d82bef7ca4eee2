// SPDX-License-Identifier: MIT
// A picture of a job: what reads what, who waits for whom.
#pragma once

#include <string>

#include "generate/job.h"

namespace reprise {

/// SVG: one row for each section, from its files over its readers and their queue to the accelerators and checkpoints.
std::string diagram_of(const Job& job);

}  // namespace reprise

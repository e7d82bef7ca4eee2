// SPDX-License-Identifier: MIT
// Holes of the files that a recording names.
#pragma once

#include "formats/oplog/oplog.h"

namespace reprise {

/// Asks for the holes of the job's files, while they are as the job left them, the largest first and for at most two
/// seconds; keeps where they are, and in the header how many files have fewer blocks even so, and how much fewer. Files
/// that are gone, or others now, do not count.
void note_holes(LogWriter& writer);

}  // namespace reprise

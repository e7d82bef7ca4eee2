// SPDX-License-Identifier: MIT
// How far the files of a recording compress.
#pragma once

#include "formats/oplog/oplog.h"

namespace reprise {

/// Reads samples of the files that were there before the job, a few of each class and for at most two seconds, and
/// keeps how far they compress. Files that are gone, or others now, do not count.
void note_contents(LogWriter& writer);

}  // namespace reprise

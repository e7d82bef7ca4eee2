// SPDX-License-Identifier: MIT
// Links and files of the machine that a recording is made on.
#pragma once

#include "formats/assemble/recording/recording.h"

namespace reprise {

/// Lets the assembly ask this machine for links, and at its end for files, of which no call of the job told.
void ask_for_links(RawAssembleOptions& how);

}  // namespace reprise

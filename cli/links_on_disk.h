// SPDX-License-Identifier: MIT
// Symbolic links of the machine that a recording is made on.
#pragma once

#include "formats/assemble/recording/recording.h"

namespace reprise {

/// Lets the assembly ask this machine for links that no call of the job told of.
void ask_for_links(RawAssembleOptions& how);

}  // namespace reprise

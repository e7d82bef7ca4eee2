// SPDX-License-Identifier: MIT
// Which renamed names were directories, where no op asked what they are: mv renames without a look.
#pragma once

#include "replay/prepare/facts.h"

namespace reprise {

/// Sets FileFacts::directory of what was renamed and had something below it, by either name, between the renames before
/// and after. `renames` by time.
void find_renamed_directories(const Tables& tables, LogFacts& facts);

}  // namespace reprise

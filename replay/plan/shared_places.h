// SPDX-License-Identifier: MIT
// Refuses path rules that would make one file of several.
#pragma once

#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "replay/plan/paths.h"

namespace reprise {

/// Throws Error (usage) where the rules give two recorded files one place. Directories may share a place, and so may
/// the names of one inode.
void refuse_shared_places(const Tables& tables, const OpFilter& filter, const PathMap& maps);

}  // namespace reprise

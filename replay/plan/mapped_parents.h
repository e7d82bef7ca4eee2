// SPDX-License-Identifier: MIT
// Folders above one that --map puts elsewhere.
#pragma once

#include "replay/plan/plan.h"

namespace reprise {

/// A program that resolves a path looks at each of its parents. Of a folder that --map puts elsewhere they are in the
/// root only where something else of the log lies below them: the others get no place in Plan::paths.
void drop_parents_of_mapped(Plan& plan, const PathMap& maps);

}  // namespace reprise

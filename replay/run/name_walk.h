// SPDX-License-Identifier: MIT
// What the names of directories cost on the way to a file, where the file system asks for each of them every time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "replay/plan/plan.h"
#include "replay/plan/recorded_doubts.h"

namespace reprise {

/// Time of one directory's name on the way to `file` below the root, ns, in the median of some looks from the root
/// against looks from the file's directory. None where the file is not there, or no two directories down.
std::optional<int64_t> name_walk_ns(const Plan& plan, FileId file, int root);

/// "each name takes 2.10 ms here (FUSE and network file systems ask their server): ...", where the directories that
/// the replay keeps open would take more than a share of the run; else empty. `walk_ns`: of name_walk_ns().
std::string names_asked_for(const RecordedDoubts& doubts, int64_t walk_ns, int64_t elapsed_ns, double share);

}  // namespace reprise

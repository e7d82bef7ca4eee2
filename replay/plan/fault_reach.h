// SPDX-License-Identifier: MIT
// What a recorded page fault brought in besides its page.
#pragma once

#include <cstdint>

#include "replay/plan/plan.h"

namespace reprise {

/// Whether all between two page faults on a file, of which the first ended at byte `last` and the second is at `at`,
/// came with the first: it can have, and the recording fetched it. `if_unknown`: where the recording does not say what
/// it fetched, or the file was in memory.
bool came_with_fault(const Plan& plan, FileId file, int64_t last, int64_t at, bool if_unknown);

}  // namespace reprise

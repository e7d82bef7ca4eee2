// SPDX-License-Identifier: MIT
// Sleeps between which a task takes the same look at files, until another task has changed what it sees: one wait for
// that task.
#pragma once

#include <cstdint>

namespace reprise {

struct Plan;

/// Once the edges are known: sleeps before a look that has one are over at once. Returns how long the others sleep, ns,
/// where there are three or more one after the other: what those wait for is not known.
int64_t join_looks(Plan& plan);

}  // namespace reprise

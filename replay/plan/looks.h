// SPDX-License-Identifier: MIT
// Sleeps between which a task takes the same look at files, until another task has changed what it sees: one wait for
// that task.
#pragma once

#include <cstdint>

namespace reprise {

struct Plan;

/// Once the edges are known: sleeps before a look that has one are over at once.
void join_looks(Plan& plan);

/// How long those sleep that nothing has explained, three or more one after the other, ns: what they wait for is not
/// known.
int64_t unexplained_looks(const Plan& plan);

}  // namespace reprise

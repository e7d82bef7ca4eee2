// SPDX-License-Identifier: MIT
// Edges that a run or a prediction gives up so that it never hangs, and in which order.
#pragma once

#include <cstdint>
#include <string>

#include "formats/oplog/op.h"

namespace reprise {

/// An edge that was given up, because with it the run would have waited for ever.
struct BrokenEdge {
    TaskId task = 0;
    uint64_t op = 0;  // of `task`, which waited
    OpKind kind = OpKind::wait;
    TaskId source = 0;  // 0: requests of a ring, that others make
    uint64_t source_op = 0;
    EdgeKind evidence = EdgeKind::resource;
};

/// "op 17 (read) of task 3 waited for op 4 of task 2 (edge: message)".
std::string to_string(const BrokenEdge& edge);

/// How well founded an edge is; the greater the better.
int evidence_rank(EdgeKind kind);

}  // namespace reprise

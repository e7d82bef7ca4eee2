// SPDX-License-Identifier: MIT
#include "replay/plan/broken_edge.h"

namespace reprise {

int evidence_rank(EdgeKind kind) {
    switch (kind) {
        case EdgeKind::queue: return 0;
        case EdgeKind::reaped:
        case EdgeKind::resource: return 1;
        case EdgeKind::lifecycle: return 2;
        case EdgeKind::wake: return 3;
        case EdgeKind::message: return 4;
        case EdgeKind::marker: return 5;
    }
    return 0;
}

std::string to_string(const BrokenEdge& edge) {
    if (edge.source == 0) {
        return "op " + std::to_string(edge.op) + " (" + std::string(info(edge.kind).name) + ") of task " +
               std::to_string(edge.task) + " waited for results of requests that nobody made";
    }
    return "op " + std::to_string(edge.op) + " (" + std::string(info(edge.kind).name) + ") of task " +
           std::to_string(edge.task) + " waited for op " + std::to_string(edge.source_op) + " of task " +
           std::to_string(edge.source) + " (edge: " + std::string(edge_name(edge.evidence)) + ")";
}

}  // namespace reprise

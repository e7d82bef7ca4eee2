// SPDX-License-Identifier: MIT
// The edges of a log as a timeline draws them: which ops are sources, and when those were.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"

namespace reprise {

class TimelineEdges {
public:
    /// What leaves `op` of `task` by edges of one kind.
    struct Source {
        TaskId task = 0;
        EdgeKind kind = EdgeKind::marker;
        uint64_t op = 0;
        int64_t begin = 0, end = 0;  // ns
        bool drawn = false;          // in the log, and not left out

        int64_t id() const { return id_; }  // from 1

    private:
        friend class TimelineEdges;
        int64_t id_ = 0;
    };

    /// Reads the ops of `tasks` (empty: all), and those of the sources' tasks again. Memory grows with the sources.
    TimelineEdges(const LogReader& log, std::span<const TaskId> tasks, const OpSelector& selector);

    /// The sources that an op is.
    std::span<const Source> from(TaskId task, uint64_t op) const;
    /// The source of an edge; null for one that is not drawn.
    const Source* source(const Edge& edge) const;

private:
    std::vector<Source> sources_;  // by task, op, kind
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "formats/export/perfetto/timeline_edges.h"

#include <algorithm>
#include <tuple>

#include "formats/oplog/op_fields.h"

namespace reprise {
namespace {

using Source = TimelineEdges::Source;

bool before(const Source& a, const Source& b) {
    return std::tie(a.task, a.op, a.kind) < std::tie(b.task, b.op, b.kind);
}
bool same(const Source& a, const Source& b) { return !before(a, b) && !before(b, a); }

}  // namespace

TimelineEdges::TimelineEdges(const LogReader& log, std::span<const TaskId> tasks, const OpSelector& selector) {
    const auto wanted = [&](TaskId task) {
        return tasks.empty() || std::find(tasks.begin(), tasks.end(), task) != tasks.end();
    };
    OpBlock block;
    for (const BlockInfo& where : log.blocks()) {
        if (!wanted(where.task)) {
            continue;
        }
        log.decode(where, block);
        if (!block.has_edges()) {
            continue;
        }
        for (size_t i = 0; i < block.count(); ++i) {
            const std::span<const Edge> edges = block.edges_of(i);
            if (edges.empty() || !selector.keeps(block.row(i))) {
                continue;
            }
            for (const Edge& edge : edges) {
                if (!wanted(edge.task)) {
                    continue;
                }
                Source source;
                source.task = edge.task;
                source.op = edge.op;
                source.kind = edge.kind;
                sources_.push_back(source);
            }
        }
    }
    std::sort(sources_.begin(), sources_.end(), before);
    sources_.erase(std::unique(sources_.begin(), sources_.end(), same), sources_.end());
    for (size_t i = 0; i < sources_.size(); ++i) {
        sources_[i].id_ = static_cast<int64_t>(i) + 1;
    }

    for (const BlockInfo& where : log.blocks()) {
        Source first;
        first.task = where.task;
        first.op = where.first;
        auto at = std::lower_bound(sources_.begin(), sources_.end(), first, before);
        const auto inside = [&] {
            return at != sources_.end() && at->task == where.task && at->op < where.first + where.ops;
        };
        if (!inside()) {
            continue;
        }
        log.decode(where, block);
        for (; inside(); ++at) {
            const Op op = block.row(static_cast<size_t>(at->op - where.first));
            at->begin = op.begin;
            at->end = std::max(op.begin, end_of(op));
            at->drawn = selector.keeps(op);
        }
    }
}

std::span<const Source> TimelineEdges::from(TaskId task, uint64_t op) const {
    Source key;
    key.task = task;
    key.op = op;
    key.kind = EdgeKind{};
    const auto first = std::lower_bound(sources_.begin(), sources_.end(), key, before);
    auto last = first;
    while (last != sources_.end() && last->task == task && last->op == op) {
        ++last;
    }
    return {first, last};
}

const Source* TimelineEdges::source(const Edge& edge) const {
    Source key;
    key.task = edge.task;
    key.op = edge.op;
    key.kind = edge.kind;
    const auto found = std::lower_bound(sources_.begin(), sources_.end(), key, before);
    return found != sources_.end() && same(*found, key) && found->drawn ? &*found : nullptr;
}

}  // namespace reprise

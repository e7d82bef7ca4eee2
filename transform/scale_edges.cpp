// SPDX-License-Identifier: MIT
#include "transform/scale_edges.h"

#include <algorithm>

#include "formats/oplog/op_fields.h"

namespace reprise {

ScaledEdges::ScaledEdges(const ScaleRecording& recording) : recording_(recording), numbers_(recording.tasks().size()) {
    for (const RecordedTask& task : recording.tasks()) {
        for (const InEdge& edge : task.edges) {
            is_source_[recording.tasks()[edge.task].kind[edge.source]] = true;
        }
    }
}

uint8_t ScaledEdges::key_of(const Op& op) {
    return static_cast<uint8_t>(op.kind == OpKind::wait ? 128 + wait_class(op.arg) : static_cast<int64_t>(op.kind));
}

void ScaledEdges::number(const PieceOp& op, size_t index) {
    Numbers& of = numbers_[op.task];
    if (of.now.empty()) {
        of.first = op.number;
    }
    of.now.push_back(static_cast<int64_t>(index));
}

void ScaledEdges::left_out(const PieceOp& op, size_t index) {
    number(op, index);
    numbers_[op.task].now.back() = static_cast<int64_t>(index) - 1;
}

void ScaledEdges::next_passage() {
    for (Numbers& of : numbers_) {
        of.now.clear();
    }
}

const std::vector<uint32_t>& ScaledEdges::places(TaskId task, uint8_t kind) {
    const auto [known, fresh] = places_.try_emplace({task, kind});
    if (fresh) {
        const auto& kinds = recording_.tasks()[task].kind;
        for (uint32_t op = 0; op < kinds.size(); ++op) {
            if (kinds[op] == kind) {
                known->second.push_back(op);
            }
        }
    }
    return known->second;
}

std::optional<ScaledEdges::Source> ScaledEdges::source(const Edge& edge, int64_t until, const Cut& from, const Cut& to,
                                                       const std::function<TaskId(TaskId)>& bind) {
    if (edge.task == 0 || edge.task >= numbers_.size()) {
        return std::nullopt;
    }
    const TaskId task = bind(edge.task);
    const auto op = static_cast<uint32_t>(edge.op);
    Source out{edge};
    out.edge.task = task;
    if (task != UINT32_MAX && task < base_.size() && op < to[edge.task]) {
        if (op >= from[edge.task]) {
            const Numbers& of = numbers_[edge.task];
            if (op >= of.first && op - of.first < of.now.size()) {
                const int64_t now = static_cast<int64_t>(base_[task]) + of.now[op - of.first];
                if (now >= 0) {
                    out.edge.op = static_cast<uint64_t>(now);
                    out.after = out.edge.op < base_[task] ? last_[task] : INT64_MIN;
                    return out;
                }
            }
        } else {
            const uint8_t kind = recording_.tasks()[edge.task].kind[op];
            const auto& recorded = places(edge.task, kind);
            const auto back = std::lower_bound(recorded.begin(), recorded.end(), from[edge.task]) -
                              std::lower_bound(recorded.begin(), recorded.end(), op);
            const auto& now = emitted_[{task, kind}];
            if (back > 0 && static_cast<size_t>(back) <= now.size()) {
                const Emitted& stands = now[now.size() - static_cast<size_t>(back)];
                // What waits need not have waited for all of it, but for as much.
                const int64_t into = distance_ns(recording_.tasks()[edge.task].begin[op], until);
                out.edge.op = stands.op;
                out.after = std::min(stands.end, end_of(stands.begin, std::max<int64_t>(into, 0)));
                return out;
            }
        }
    }
    ++dropped_;
    return std::nullopt;
}

void ScaledEdges::emitted(TaskId task, const std::vector<PieceOp>& ops) {
    for (size_t i = 0; i < ops.size(); ++i) {
        const uint8_t kind = key_of(ops[i].op);
        if (is_source_[kind] && ops[i].number != PieceOp::kInserted) {
            emitted_[{task, kind}].push_back({base_[task] + i, ops[i].op.begin, end_of(ops[i].op)});
        }
        last_[task] = std::max(last_[task], end_of(ops[i].op));
    }
}

uint32_t ScaledEdges::unit_at(TaskId task, uint32_t op, FileId file) const {
    const auto& of = recording_.tasks()[task].units;
    const auto& units = recording_.units();
    auto at = std::upper_bound(of.begin(), of.end(), op,
                               [&](uint32_t number, uint32_t unit) { return number < units[unit].first; });
    // Several files may be open at once.
    constexpr int kMostOpen = 64;
    for (int i = 0; i < kMostOpen && at != of.begin(); ++i) {
        --at;
        if (units[*at].file == file && units[*at].last >= op) {
            return *at;
        }
    }
    return ScaleRecording::kNoUnit;
}

uint32_t ScaledEdges::unit_ending(TaskId task, uint32_t op) const {
    const auto& of = recording_.tasks()[task].units;
    const auto& units = recording_.units();
    const auto at = std::upper_bound(of.begin(), of.end(), op,
                                     [&](uint32_t number, uint32_t unit) { return number < units[unit].first; });
    return at != of.begin() && units[*(at - 1)].last == op ? *(at - 1) : ScaleRecording::kNoUnit;
}

uint32_t ScaledEdges::epoch_at(TaskId task, uint32_t op) const {
    const auto& of = recording_.tasks()[task].units;
    const auto& units = recording_.units();
    const auto at = std::upper_bound(of.begin(), of.end(), op,
                                     [&](uint32_t number, uint32_t unit) { return number < units[unit].first; });
    return at != of.begin() ? units[*(at - 1)].epoch : of.empty() ? 0 : units[of.front()].epoch;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/run/run_edges.h"

#include <algorithm>

#include "replay/plan/edges_rules.h"
#include "replay/plan/left_out.h"

namespace reprise {

RunEdges::RunEdges(const Plan& plan, SharedRun& run) : plan_(plan), tasks_(plan.tasks.size()) {
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        const TaskPlan& of = plan.tasks[task];
        if (!plan.performs(of.process)) {
            number_elsewhere(task);
            continue;
        }
        const SpoolRow* const rows = run.spool(of.spool_first);
        Numbers& numbers = tasks_[task];
        numbers.ops = run.task(task).done.load(std::memory_order_acquire);
        for (uint64_t op = 0; op < numbers.ops; ++op) {
            if ((rows[op].begin & kNotPerformed) != 0 && rows[op].end == static_cast<uint64_t>(LeftOut::filter)) {
                leave_out(numbers, op);
            }
        }
    }
}

void RunEdges::leave_out(Numbers& numbers, uint64_t op) {
    auto& all = numbers.left_out;
    if (!all.empty() && all.back().op + all.back().count == op) {
        ++all.back().count;
    } else {
        all.push_back({op, 1, all.empty() ? 0 : all.back().before + all.back().count});
    }
}

// As far as this rank knows, the others perform all that the filter keeps.
void RunEdges::number_elsewhere(TaskId task) {
    Numbers& numbers = tasks_[task];
    numbers.ops = plan_.tasks[task].ops;
    if (plan_.selector->keeps_everything()) {
        return;
    }
    OpBlock block;
    for (const BlockInfo& where : plan_.tasks[task].blocks) {
        plan_.log->decode(where, block);
        for (size_t i = 0; i < block.count(); ++i) {
            if (!keeps(plan_, block, i)) {
                leave_out(numbers, block.first + i);
            }
        }
        plan_.log->forget(where);
    }
}

uint64_t RunEdges::in_log(TaskId task, uint64_t ops) const {
    const auto& all = tasks_[task].left_out;
    const auto after =
        std::lower_bound(all.begin(), all.end(), ops, [](const Gap& gap, uint64_t at) { return gap.op < at; });
    if (after == all.begin()) {
        return ops;
    }
    const Gap& last = *(after - 1);
    return ops - last.before - std::min(last.count, ops - last.op);
}

bool RunEdges::source(TaskId task, uint64_t& op) const {
    if (task == 0 || task >= tasks_.size() || op >= tasks_[task].ops) {
        return false;
    }
    const uint64_t ops = in_log(task, op + 1);
    op = ops - 1;
    return ops != 0;
}

std::span<const Edge> RunEdges::of(TaskId task, const OpBlock& block, size_t i, bool written) {
    if (task != last_) {
        last_ = task;
        carried_.clear();
    }
    const bool own = block.has_edges();
    if (!own && carried_.empty()) {
        return {};
    }
    const std::span<const Edge> edges = own ? block.edges_of(i) : std::span<const Edge>{};
    if (edges.empty() && carried_.empty()) {
        return {};
    }
    out_ = edges.empty() && blocks_until_edge(static_cast<OpKind>(block.kind[i])) ? std::vector<Edge>()
                                                                                  : std::exchange(carried_, {});
    for (Edge edge : edges) {
        const uint64_t recorded = edge.op;
        const bool known = source(edge.task, edge.op);
        // Within a task an edge names a request, for which no other can stand in.
        if (known && (edge.task != task || in_log(task, recorded) == edge.op)) {
            out_.push_back(edge);
        }
    }
    if (!written) {
        carried_.insert(carried_.end(), out_.begin(), out_.end());
        return {};
    }
    return out_;
}

QueueInference RunEdges::queues() const {
    QueueInference queues = plan_.queues;
    for (auto& [consumer, edges] : queues.edges) {
        // What ends with left-out ops has nobody to wait.
        const uint64_t ops = in_log(consumer, tasks_[consumer].ops);
        std::vector<std::pair<uint64_t, Edge>> kept;
        for (auto [op, edge] : edges) {
            const uint64_t here = in_log(consumer, op);
            if (op < tasks_[consumer].ops && here < ops && source(edge.task, edge.op)) {
                kept.emplace_back(here, edge);
            }
        }
        edges = std::move(kept);
    }
    return queues;
}

}  // namespace reprise

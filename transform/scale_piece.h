// SPDX-License-Identifier: MIT
// One piece of a recording: the ops of all tasks between two cuts, in the order of time.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "transform/scale_cuts.h"

namespace reprise {

/// An op with a copy of what its spans would show; `op.list` and `op.edges` are not to be used.
struct PieceOp {
    static constexpr uint32_t kInserted = std::numeric_limits<uint32_t>::max();
    TaskId task = 0;
    uint32_t number = kInserted;  // of the recorded task
    Op op;
    std::vector<int64_t> list;
    std::vector<Edge> edges;
    int64_t recorded = 0;       // ns, its begin in the recording
    int64_t later = 0;          // ns, by which its end is later than there
    int64_t after = INT64_MIN;  // ns, when what it waits for from earlier pieces is done
};

/// The ops of a passage as they are this time, by task of the new log.
class MadeOps {
public:
    void start(size_t tasks) { ops_.assign(tasks, {}); }
    size_t tasks() const { return ops_.size(); }
    std::vector<PieceOp>& of(TaskId task) {
        if (task >= ops_.size()) {
            ops_.resize(task + 1);
        }
        return ops_[task];
    }
    void add(const PieceOp& op, TaskId task) {
        of(task).push_back(op);
        of(task).back().recorded = op.op.begin;
        of(task).back().op.begin += moved;
    }
    /// One that the recording does not have; all after it are later by as long as it lasts.
    void insert(const PieceOp& op, TaskId task) {
        add(op, task);
        of(task).back().number = PieceOp::kInserted;
        moved += op.op.duration;
    }
    int64_t moved = 0;  // ns by which ops are later than recorded

private:
    std::vector<std::vector<PieceOp>> ops_;
};

class PieceReader {
public:
    explicit PieceReader(const LogReader& log);
    /// Valid until the next call.
    std::vector<PieceOp>& load(const Cut& from, const Cut& to);
    /// Ops [first, last] of a task.
    std::vector<PieceOp> recorded(TaskId task, uint32_t first, uint32_t last);

private:
    void read(TaskId task, uint32_t from, uint32_t to, std::vector<PieceOp>& into);

    const LogReader& log_;
    std::vector<std::vector<BlockInfo>> blocks_;  // by task
    OpBlock block_;
    BlockInfo decoded_;
    std::vector<PieceOp> ops_;
};

}  // namespace reprise

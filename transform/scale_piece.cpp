// SPDX-License-Identifier: MIT
#include "transform/scale_piece.h"

#include <algorithm>
#include <tuple>

namespace reprise {

PieceReader::PieceReader(const LogReader& log) : log_(log), blocks_(log.tables().tasks.size()) {
    for (const BlockInfo& block : log.blocks()) {
        if (block.task < blocks_.size()) {
            blocks_[block.task].push_back(block);
        }
    }
}

std::vector<PieceOp>& PieceReader::load(const Cut& from, const Cut& to) {
    ops_.clear();
    for (TaskId task = 1; task < from.size(); ++task) {
        read(task, from[task], to[task], ops_);
    }
    std::sort(ops_.begin(), ops_.end(), [](const PieceOp& a, const PieceOp& b) {
        return std::tuple(a.op.begin, a.task, a.number) < std::tuple(b.op.begin, b.task, b.number);
    });
    return ops_;
}

std::vector<PieceOp> PieceReader::recorded(TaskId task, uint32_t first, uint32_t last) {
    std::vector<PieceOp> ops;
    read(task, first, last + 1, ops);
    return ops;
}

void PieceReader::read(TaskId task, uint32_t from, uint32_t to, std::vector<PieceOp>& into) {
    const auto& blocks = blocks_[task];
    auto at = std::partition_point(blocks.begin(), blocks.end(),
                                   [&](const BlockInfo& block) { return block.first + block.ops <= from; });
    for (; from < to && at != blocks.end() && at->first < to; ++at) {
        if (decoded_.task != task || decoded_.first != at->first) {
            log_.decode(*at, block_);
            log_.forget(*at);
            decoded_ = *at;
        }
        for (uint64_t number = std::max<uint64_t>(at->first, from);
             number < std::min<uint64_t>(at->first + at->ops, to); ++number) {
            PieceOp& op = into.emplace_back();
            op.task = task;
            op.number = static_cast<uint32_t>(number);
            op.op = block_.row(number - at->first);
            op.list.assign(op.op.list.begin(), op.op.list.end());
            op.edges.assign(op.op.edges.begin(), op.op.edges.end());
            op.op.list = {};
            op.op.edges = {};
        }
    }
}

}  // namespace reprise

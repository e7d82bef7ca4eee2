// SPDX-License-Identifier: MIT
#include "formats/oplog/recorded_progress.h"

#include <algorithm>
#include <cstddef>

namespace reprise {
namespace {

constexpr int64_t kMostSteps = 1'000'000;

}  // namespace

RecordedProgress::RecordedProgress(const LogReader& log) {
    int64_t end = 0;
    bool any = false;
    for (const BlockInfo& block : log.blocks()) {
        begin_ = any ? std::min(begin_, block.begin) : block.begin;
        end = std::max(end, block.end);
        any = true;
    }
    step_ = std::max(step_, (end - begin_) / kMostSteps);
    done_.resize(static_cast<size_t>((end - begin_) / step_) + 1);
    OpBlock ops;
    for (const BlockInfo& block : log.blocks()) {
        log.decode(block, ops);
        for (size_t i = 0; i < ops.count(); ++i) {
            const int64_t at = std::clamp(ops.begin[i] + ops.duration[i], begin_, end);
            ++done_[static_cast<size_t>((at - begin_) / step_)];
        }
    }
    for (size_t i = 1; i < done_.size(); ++i) {
        done_[i] += done_[i - 1];
    }
}

int64_t RecordedProgress::time_at(uint64_t done, int64_t for_ns) const {
    const auto step = std::lower_bound(done_.begin(), done_.end(), std::min(done, done_.back()));
    const uint64_t before = step == done_.begin() ? 0 : *std::prev(step), in_step = *step - before;
    const double part = in_step == 0 ? 0.0 : static_cast<double>(done - before) / static_cast<double>(in_step);
    const auto at = [&](auto each) { return begin_ + (each - done_.begin()) * step_; };
    const int64_t there = at(step) + static_cast<int64_t>(std::min(part, 1.0) * static_cast<double>(step_));
    const auto next = std::upper_bound(step, done_.end(), done);  // where there is one more
    const int64_t most = next == step || next == done_.end() ? at(step) + step_ : at(next);
    return std::min(there + std::max<int64_t>(for_ns, 0), std::max(most, there));
}

}  // namespace reprise

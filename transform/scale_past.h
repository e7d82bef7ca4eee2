// SPDX-License-Identifier: MIT
// What must have happened before a task gets to one of its ops: the recording up to there, as its causes have it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "transform/scale_recording.h"

namespace reprise {

/// Grows op by op; never forgets.
class CausalPast {
public:
    explicit CausalPast(const ScaleRecording& recording)
        : recording_(recording),
          upto_(recording.tasks().size()),
          edge_(recording.tasks().size()),
          order_(recording.tasks().size()),
          unit_(recording.tasks().size()),
          epochs_(recording.epochs().size()) {}

    /// Everything that ops of `task` before number `end` depend on, and they themselves.
    void extend(TaskId task, uint32_t end) {
        work_.emplace_back(task, end);
        while (!work_.empty()) {
            const auto [of, to] = work_.back();
            work_.pop_back();
            if (to <= upto_[of]) {
                continue;
            }
            upto_[of] = to;
            const RecordedTask& row = recording_.tasks()[of];
            for (size_t& at = edge_[of]; at < row.edges.size() && row.edges[at].op < to; ++at) {
                work_.emplace_back(row.edges[at].task, row.edges[at].source + 1);
            }
            for (size_t& at = order_[of]; at < row.order.size() && row.order[at].op < to; ++at) {
                work_.emplace_back(row.order[at].task, row.order[at].source + 1);
            }
            for (size_t& at = unit_[of]; at < row.units.size(); ++at) {
                const SampleUnit& unit = recording_.units()[row.units[at]];
                if (unit.last >= to) {
                    break;
                }
                if (unit.bytes > 0) {
                    ++units_;
                    ++epochs_[unit.epoch];
                    last_reader_ = of;
                }
            }
        }
    }
    /// What began before `time` in that task, but no part of an access to a sample, and no wait for what came later.
    void extend_to(TaskId task, int64_t time) {
        const RecordedTask& row = recording_.tasks()[task];
        auto end =
            static_cast<uint32_t>(std::lower_bound(row.begin.begin(), row.begin.end(), time) - row.begin.begin());
        if (end > upto_[task] && waits_beyond(row, end - 1, time)) {
            --end;
        }
        for (size_t at = unit_[task]; at < row.units.size(); ++at) {
            const SampleUnit& unit = recording_.units()[row.units[at]];
            if (unit.first >= end) {
                break;
            }
            if (unit.last >= end) {
                end = unit.first;
                break;
            }
        }
        extend(task, end);
    }

    const std::vector<uint32_t>& upto() const { return upto_; }
    uint64_t units() const { return units_; }
    const std::vector<uint64_t>& epochs() const { return epochs_; }
    TaskId last_reader() const { return last_reader_; }  // of the access that came last

private:
    /// As a shell that waits for the job does.
    bool waits_beyond(const RecordedTask& row, uint32_t op, int64_t time) const {
        const auto first = std::lower_bound(row.edges.begin(), row.edges.end(), op,
                                            [](const InEdge& edge, uint32_t of) { return edge.op < of; });
        for (auto edge = first; edge != row.edges.end() && edge->op == op; ++edge) {
            const auto& begin = recording_.tasks()[edge->task].begin;
            if (edge->source < begin.size() && begin[edge->source] >= time) {
                return true;
            }
        }
        return false;
    }

    const ScaleRecording& recording_;
    std::vector<uint32_t> upto_;
    std::vector<size_t> edge_, order_, unit_;
    std::vector<uint64_t> epochs_;
    uint64_t units_ = 0;
    TaskId last_reader_ = 0;
    std::vector<std::pair<TaskId, uint32_t>> work_;
};

}  // namespace reprise

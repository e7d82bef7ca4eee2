// SPDX-License-Identifier: MIT
// The numbers of ops in a scaled log, and so what its edges lead to. Within a piece an edge leads to the op that stands
// for the recorded one. From before the piece it leads to the op that is as many of its kind back as it was then: what
// the piece before left in flight is as much as what the recording had there.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "transform/scale_piece.h"

namespace reprise {

class ScaledEdges {
public:
    explicit ScaledEdges(const ScaleRecording& recording);

    void tasks(size_t count) {
        base_.resize(std::max(base_.size(), count));
        last_.resize(base_.size(), INT64_MIN);
    }
    /// The recorded op is number `index` of its task's in this passage.
    void number(const PieceOp& op, size_t index);
    /// It is not there; who depends on it depends on the one before.
    void left_out(const PieceOp& op, size_t index);
    /// Ops that a task of the new log has from earlier passages.
    void base(TaskId task, uint64_t count) { base_[task] = count; }
    uint64_t base_of(TaskId task) const { return base_[task]; }
    struct Source {
        Edge edge;
        int64_t after = INT64_MIN;  // ns, when it is done as far as need be; INT64_MIN: not of an earlier passage
    };
    /// None where nothing stands for its source. `until`: ns, when what waits for it goes on in the recording. `bind`:
    /// the task that stands for a recorded one.
    std::optional<Source> source(const Edge& edge, int64_t until, const Cut& from, const Cut& to,
                                 const std::function<TaskId(TaskId)>& bind);
    void emitted(TaskId task, const std::vector<PieceOp>& ops);
    void next_passage();
    uint64_t dropped() const { return dropped_; }

    /// The access to a sample that an op is part of, and the one that it ends; ScaleRecording::kNoUnit: none.
    uint32_t unit_at(TaskId task, uint32_t op, FileId file) const;
    uint32_t unit_ending(TaskId task, uint32_t op) const;
    /// The recorded epoch at an op.
    uint32_t epoch_at(TaskId task, uint32_t op) const;

private:
    const std::vector<uint32_t>& places(TaskId task, uint8_t kind);
    static uint8_t key_of(const Op& op);

    struct Numbers {
        uint32_t first = 0;
        std::vector<int64_t> now;  // -1: none
    };
    const ScaleRecording& recording_;
    std::array<bool, 256> is_source_{};
    std::vector<Numbers> numbers_;  // by recorded task
    std::vector<uint64_t> base_;    // by task
    struct Emitted {
        uint64_t op = 0;
        int64_t begin = 0, end = INT64_MIN;  // ns
    };
    std::map<std::pair<TaskId, uint8_t>, std::vector<uint32_t>> places_;  // recorded ops by kind
    std::map<std::pair<TaskId, uint8_t>, std::vector<Emitted>> emitted_;  // likewise, of the new log
    std::vector<int64_t> last_;                                           // ns, the last end by task of the new log
    uint64_t dropped_ = 0;
};

}  // namespace reprise

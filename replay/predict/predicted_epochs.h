// SPDX-License-Identifier: MIT
// What each epoch of a predicted run asks for, and what the storage serves of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/oplog/epochs.h"
#include "replay/predict/predict.h"
#include "replay/predict/virtual_calls.h"

namespace reprise {

class PredictedEpochs {
public:
    PredictedEpochs(const std::vector<LogEpoch>& epochs, size_t tasks);

    /// An op of a task begins: perhaps an epoch does.
    void issued(TaskId task, uint64_t op, int64_t now, const VirtualCalls& calls) {
        if (!begins_.empty() && !begins_[task].empty() && begins_[task].back().op <= op) {
            begin(task, now, calls);
        }
    }
    std::vector<PredictedEpoch> finish(int64_t now, const VirtualCalls& calls);

private:
    struct Begin {
        uint64_t op = 0;
        size_t epoch = 0;
    };
    void begin(TaskId task, int64_t now, const VirtualCalls& calls);
    void end_current(int64_t now, const VirtualCalls& calls);

    std::vector<PredictedEpoch> epochs_;
    std::vector<std::vector<Begin>> begins_;  // of each task, the first one last; empty: no epochs are known
    size_t begun_ = 0;
    uint64_t asked_ = 0, read_ = 0;  // bytes before the current one
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// The op log of a predicted run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/oplog/oplog.h"
#include "replay/predict/predict.h"

namespace reprise {

class PredictedLog {
public:
    /// Throws Error (machine) where it cannot be written.
    PredictedLog(const LogReader& log, const PredictOptions& options);

    void append(TaskId task, Op op);
    void finish(const Prediction& result, const StorageModel& model);

private:
    std::unique_ptr<LogWriter> writer_;
    std::vector<StringId> strings_;
};

}  // namespace reprise

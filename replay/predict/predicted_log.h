// SPDX-License-Identifier: MIT
// The op log of a predicted run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "formats/oplog/oplog.h"
#include "replay/interval/interval.h"
#include "replay/predict/predict.h"

namespace reprise {

class PredictedLog {
public:
    /// Throws Error (machine) where it cannot be written. `so_far`: what is known before the run.
    PredictedLog(const LogReader& log, const PredictOptions& options, const Prediction& so_far);

    void append(TaskId task, Op op);
    void finish(const std::optional<TimeInterval>& interval);

private:
    std::unique_ptr<LogWriter> writer_;
    std::vector<StringId> strings_;
};

}  // namespace reprise

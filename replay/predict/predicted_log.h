// SPDX-License-Identifier: MIT
// The op log of a predicted run.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/oplog/oplog.h"
#include "formats/oplog/side_log.h"
#include "replay/predict/predict.h"

namespace reprise {

class PredictedLog {
public:
    /// Throws Error (machine) where it cannot be begun.
    PredictedLog(const LogReader& log, const PredictOptions& options);

    /// `later`: the op reports a request that is not done yet; its row, and those after it, are written when done()
    /// says.
    void append(TaskId task, Op op, bool later = false);
    void done(uint32_t request, int64_t at);
    void finish(const Prediction& result, const StorageModel& model);
    /// As SideLog::lost().
    const std::string& lost() const { return log_.lost(); }

private:
    struct Row {
        Op op;
        std::vector<int64_t> list;
        bool open = false;
    };
    void write(TaskId task, const Op& op) {
        log_.write([&](LogWriter& writer) { writer.append(task, op); });
    }
    void write_closed(TaskId task);

    SideLog log_;  // the prediction is worth more
    std::vector<StringId> strings_;
    std::unordered_map<TaskId, std::deque<Row>> held_;  // from the first one on that is open
    std::unordered_map<uint32_t, TaskId> open_;         // by request
};

}  // namespace reprise

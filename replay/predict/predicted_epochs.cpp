// SPDX-License-Identifier: MIT
#include "replay/predict/predicted_epochs.h"

#include <algorithm>
#include <utility>

namespace reprise {

PredictedEpochs::PredictedEpochs(const std::vector<LogEpoch>& epochs, size_t tasks)
    : epochs_(epochs.size()), begins_(epochs.empty() ? 0 : tasks) {
    for (size_t epoch = 0; epoch < epochs.size(); ++epoch) {
        epochs_[epoch].accesses = epochs[epoch].accesses;
        for (const LogEpoch::Access& access : epochs[epoch].first) {
            begins_.at(access.task).push_back({access.op, epoch});
        }
    }
    for (std::vector<Begin>& of_task : begins_) {
        std::sort(of_task.begin(), of_task.end(), [](const Begin& a, const Begin& b) { return a.op > b.op; });
    }
}

/// An epoch begins with the earliest of its tasks' accesses.
void PredictedEpochs::begin(TaskId task, int64_t now, const VirtualCalls& calls) {
    const size_t epoch = begins_[task].back().epoch;
    begins_[task].pop_back();
    if (epoch == begun_) {
        end_current(now, calls);
        epochs_[begun_++].begin_ns = now;
    }
}

/// What was asked for and read since the one before it ended is the current epoch's.
void PredictedEpochs::end_current(int64_t now, const VirtualCalls& calls) {
    const uint64_t asked = calls.bytes_read + calls.touched_pages * static_cast<uint64_t>(kPageBytes);
    const uint64_t read = calls.storage().bytes_read;
    if (begun_ > 0) {
        PredictedEpoch& epoch = epochs_[begun_ - 1];
        epoch.elapsed_ns = now - epoch.begin_ns;
        epoch.asked_bytes = asked - asked_;
        epoch.storage_bytes = read - read_;
    }
    asked_ = asked;
    read_ = read;
}

std::vector<PredictedEpoch> PredictedEpochs::finish(int64_t now, const VirtualCalls& calls) {
    end_current(now, calls);
    return std::move(epochs_);
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "transform/epochs.h"

#include <cstddef>

#include "transform/scale_recording.h"

namespace reprise {

std::vector<LogEpoch> find_epochs(const LogReader& log) {
    constexpr uint64_t kPart = 20;
    const ScaleRecording recording(log, {});
    if (recording.late_share() > EpochNumbers::kMostLate) {
        return {};
    }
    // A few samples that were read once more than the others are no pass of their own.
    size_t passes = recording.epochs().size();
    while (passes > 1 && recording.epochs()[passes - 1] * kPart < recording.epochs()[0]) {
        --passes;
    }
    std::vector<LogEpoch> epochs(passes);
    std::vector<std::vector<bool>> seen(epochs.size(), std::vector<bool>(recording.tasks().size()));
    std::vector<uint64_t> so_far(epochs.size());
    for (const SampleUnit& unit : recording.units()) {  // by time
        const size_t at = unit.epoch;
        if (unit.bytes <= 0 || at >= passes) {
            continue;
        }
        ++so_far[at];
        // A sample that was read twice early is no beginning of the next pass.
        const uint64_t before = at == 0 ? 0 : recording.epochs()[at - 1];
        if (at != 0 && so_far[at - 1] < before - before / kPart) {
            continue;
        }
        if (!seen[at][unit.task]) {
            seen[at][unit.task] = true;
            epochs[at].first.push_back({unit.task, unit.first});
        }
    }
    for (size_t at = 0; at < epochs.size(); ++at) {
        epochs[at].accesses = recording.epochs()[at];
        if (epochs[at].first.empty()) {
            return {};
        }
    }
    return epochs;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Where a recording can be cut into pieces of which some are played again: moments of the whole job, all its tasks
// together, at which it stood as at others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "transform/scale_recording.h"

namespace reprise {

/// Ops of each task that lie before, by TaskId. Whatever they depend on lies before, too.
using Cut = std::vector<uint32_t>;

/// One piece of the recording, played at its place or again.
struct Passage {
    uint32_t piece = 0;   // between cuts `piece` and `piece` + 1
    uint32_t again = 0;   // how often it was played before
    uint32_t epochs = 0;  // by which its accesses are later than recorded
};

struct Score {
    std::vector<Cut> cuts;       // ascending; first: nothing, last: everything
    std::vector<int64_t> times;  // ns, of the leader at each cut
    std::vector<Passage> passages;
    TaskId leader = 0;             // that consumes the samples, or reads most of them
    bool by_causes = false;        // cut where the leader took a batch; else at times
    std::vector<uint64_t> wanted;  // accesses of each epoch, of the larger set
    std::vector<uint64_t> played;  // likewise, as the passages have them
    uint64_t moved_on = 0;         // accesses that are made to another shard, as theirs has too few steps alike

    size_t piece_of(TaskId task, uint32_t op) const {
        const auto after =
            std::partition_point(cuts.begin(), cuts.end(), [&](const Cut& cut) { return cut[task] <= op; });
        return static_cast<size_t>(after - cuts.begin()) - 1;
    }
};

/// How `factor` times the data in `epochs` epochs (0: as recorded) is played. Throws Error (bad_input) where the
/// recording's accesses do not look like epochs, or where no two moments are alike.
Score make_score(const ScaleRecording& recording, double factor, uint32_t epochs);

/// Why the recording cannot be scaled; empty: it can.
std::string scaling_obstacle(const ScaleRecording& recording);

}  // namespace reprise

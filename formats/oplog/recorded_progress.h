// SPDX-License-Identifier: MIT
// How far a run is, in the time of its recording.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

/// Tells from how many ops are done at what time the recording had got there. Between two ops the recording's time goes
/// on as the run's does, until the next op is due.
class RecordedProgress {
public:
    /// Reads the whole log once.
    explicit RecordedProgress(const LogReader& log);

    /// ns of the log. `done`: ops of all tasks together; `for_ns`: how long it has been so many.
    int64_t time_at(uint64_t done, int64_t for_ns) const;

private:
    int64_t begin_ = 0, step_ = 10'000'000;
    std::vector<uint64_t> done_;  // ops that had ended by the end of each step
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Whether a log holds a whole job.
#pragma once

#include <cstdint>
#include <string>

#include "formats/oplog/tables.h"

namespace reprise {

/// What is missing, by the log's counters.
struct PartOfJob {
    bool truncated = false;    ///< what is left of a log that was cut
    uint64_t stopped_ops = 0;  ///< ops that the run, whose log it is, did not come to
    uint64_t lost_events = 0;  ///< of a recording or an import
    std::string losses;        ///< which: "3 malformed_lines"

    /// "the log was truncated", "the run it is of stopped early", "the recording lost 3 events"; empty: it is whole.
    std::string why() const;
    /// The same with what that means: "the recording lost 3 events (3 malformed_lines): what they did is missing here,
    /// too".
    std::string sentence() const;
};

PartOfJob part_of_job(const Tables& tables);

}  // namespace reprise

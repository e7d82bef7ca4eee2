// SPDX-License-Identifier: MIT
#include "formats/oplog/part_of_job.h"

#include <algorithm>

#include "formats/support/quantity.h"

namespace reprise {

std::string PartOfJob::why() const {
    return truncated          ? "the log was truncated"
           : stopped_ops != 0 ? "the run it is of stopped early"
           : lost_events != 0 ? "the recording lost " + counted(lost_events, "event")
                              : "";
}

std::string PartOfJob::sentence() const {
    if (truncated) {
        return why() + ": what the job did after its last complete block is missing";
    }
    if (stopped_ops != 0) {
        return "the log is of a run that stopped early: " + counted(stopped_ops, "op") + " that it did not come to " +
               (stopped_ops == 1 ? "is" : "are") + " missing";
    }
    return lost_events == 0 ? "" : why() + " (" + losses + "): what they did is missing here, too";
}

PartOfJob part_of_job(const Tables& tables) {
    PartOfJob out;
    for (const Counter& one : tables.counters) {
        if (one.severity != Severity::loss || one.value == 0) {
            continue;
        }
        if (one.name == info(Count::recovered_log).name) {
            out.truncated = true;
        } else if (one.name == info(Count::left_out_stopped).name) {
            out.stopped_ops = one.value;
        } else {
            out.lost_events += std::min(one.value, UINT64_MAX - out.lost_events);
            out.losses += (out.losses.empty() ? "" : ", ") + format_count(one.value) + " " + one.name;
        }
    }
    return out;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "formats/oplog/run_times.h"

#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"

namespace reprise {

void refuse_without_times(const LogReader& log) {
    if (log.header().source == "replay" && read_fact(log.header(), fact::pace) == "afap") {
        throw bad_input(log.path().string(), "the log is of a run at pace afap, in which nothing was computed",
                        "give the recording, or the log of a causal run");
    }
}

}  // namespace reprise

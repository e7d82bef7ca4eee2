// SPDX-License-Identifier: MIT
#include "analyze/job/not_recorded.h"

#include "analyze/job/analysis.h"

namespace reprise {

std::vector<std::string> not_recorded(const JobAnalysis& job) {
    std::vector<std::string> out;
    const bool captured = job.header.source == "capture";
    if (job.summary.task_times.empty()) {
        out.emplace_back("where tasks computed and waited: the log has calls only");
    } else if (!captured && job.summary.time.compute == 0) {
        out.emplace_back("compute: the source of the log does not tell it from waiting");
    }
    if (job.summary.devices.empty()) {
        out.emplace_back("accelerators: no work of any is in the log (capture --torch or --gpu, markers, graft)");
    }
    if (!job.fetched) {
        out.emplace_back(job.cache_added && *job.cache_added > 0 ? "page cache hits" : "page cache hits and evictions");
    }
    if (job.context.interval_ns == 0) {
        out.emplace_back("device traffic, read amplification, CPU, memory and I/O pressure");
    }
    if (!job.memory) {
        out.emplace_back("memory that the processes held");
    }
    if (!job.run_queue) {
        out.emplace_back("time that tasks waited for a CPU");
    }
    out.emplace_back("context switches as such: what is known is how often tasks blocked");
    return out;
}

}  // namespace reprise

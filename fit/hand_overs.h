// SPDX-License-Identifier: MIT
// Who hands batches to a task: which of the messages and wakes that it gets are batches, and which reads belong to
// each.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "fit/job_trace.h"

namespace reprise {

/// A hand-over to the task from a loader.
struct Take {
    uint64_t op = 0;               // of the task, with which it is taken
    TaskId loader = 0;             // who reads
    uint64_t first = 0, last = 0;  // of the loader's ops; `first` only where `asked`
    bool asked = false;            // a message asked the loader for it: these are all ops until the next one did
    int64_t asked_at = 0;          // ns, when that message was sent
    TaskId source = 0;             // who sent or woke, and with which op
    uint64_t source_op = 0;
    HandleId channel = 0;  // the task's end; 0: not by a message
    int64_t size = 0;      // bytes that the receive asked for
};

class HandOvers {
public:
    explicit HandOvers(const JobTrace& trace);

    /// From those who read, or did not read yet, in order: every edge. Not from `ranks`.
    std::vector<Take> edges(TaskId task, const std::vector<TaskId>& ranks) const;
    /// Of these, where all loaders send through queues, the messages in them, one each: descriptors of shared memory
    /// come by connections of their own, on which both sides talk. Else as they are.
    std::vector<Take> batches(TaskId task, std::vector<Take> edges) const;
    /// Of these, those for which the loader has read something.
    std::vector<Take> fresh(const std::vector<Take>& takes) const;

private:
    /// Who reads for that task: itself, or the one of its process that reads most.
    TaskId reader_of(TaskId task) const;
    /// A channel that the task's process only receives from.
    bool is_queue(TaskId task, HandleId channel) const;
    struct Asked {
        uint64_t op = 0;  // with which the loader got it
        int64_t at = 0;   // ns
    };
    std::vector<Asked> asked_of(TaskId loader, TaskId task) const;
    void find_asked(TaskId task, std::vector<Take>& takes) const;
    bool reads(TaskId loader, uint64_t first, uint64_t last) const;

    const JobTrace& trace_;
    std::map<ProcessId, TaskId> reader_of_process_;
    std::map<ProcessId, std::set<HandleId>> sends_;
};

}  // namespace reprise

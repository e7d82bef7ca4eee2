// SPDX-License-Identifier: MIT
// Hand-overs that left no trace: a bounded queue between threads makes no system call while nobody has to wait, so that
// a recording on fast storage does not say which data a step of its consumer needs. Its back-pressure does say it.
//
// A task that reads no data but wakes tasks that read, again and again, which were waiting for that, is their consumer.
// Where it does so, the queue was full: what the readers have read is ahead of what the consumer has taken by the
// queue's capacity. Where the consumer was woken by a reader, the queue was empty: it had taken all. Between two
// moments of an empty queue the consumer takes data in proportion to its own time. Capacity is the median lead over
// the longest stretch of a full queue.
//
// Nothing is inferred where messages or markers carry the data. Where no queue was ever full either, the steps of an
// accelerator share the data evenly, if the recorded order allows that.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

struct InferredQueue {
    enum class By : uint8_t {
        back_pressure,
        conservation,  // no queue was ever full: step k of K of an accelerator needs the first (k + 1) / K of the data
    };
    By by = By::back_pressure;
    TaskId consumer = 0;
    std::vector<TaskId> readers;
    uint64_t wakes = 0;          // of readers that waited for room; by conservation: steps
    uint64_t waits = 0;          // of the consumer for data
    int64_t bytes = 0;           // that went through
    int64_t capacity_bytes = 0;  // readers are ahead by as much where the queue is full
    double bytes_per_s = 0;      // that the consumer takes while it need not wait
    uint8_t confidence = 0;      // percent
    uint64_t edges = 0;
};

/// Tasks that take work as they get free, or children that are started as others end.
struct SharedWork {
    std::vector<TaskId> tasks;
    uint64_t least = 0, most = 0;  // reads of one of them
    TaskId parent = 0;             // of children; else 0
};

struct QueueInference {
    std::vector<InferredQueue> queues;
    /// By task, ascending: the op that needs the edge. Every source was done in the recording before that op began.
    std::unordered_map<TaskId, std::vector<std::pair<uint64_t, Edge>>> edges;
    /// Tasks that read data which no edge, recorded or inferred, leads away from.
    std::vector<TaskId> feed_nobody;
    /// Tasks that hear of reads by a poll, which decides what they have read next: the recorded order need not be the
    /// program's own.
    std::vector<TaskId> event_loops;
    /// Who reads what was decided by who got free when: on other storage it would be shared otherwise.
    std::vector<SharedWork> shared;

    /// "8 tasks take work as they get free (13 to 84 reads each): on other storage they would share it otherwise";
    /// empty where nobody does.
    std::string shared_work() const;
    /// Whether a time is so far from the recorded one that who is free when is another question.
    static bool shares_otherwise(int64_t elapsed_ns, int64_t recorded_ns);

    /// How little the edges of a task are certain, 0..1: of the queues it is at, the least certain one.
    double doubt(TaskId task) const;

    bool empty() const { return queues.empty() && feed_nobody.empty() && event_loops.empty() && shared.empty(); }
};

/// Reads the log once, and the blocks of the tasks at a queue once more. `progress` gets the number of ops read in the
/// first pass.
QueueInference infer_queues(const LogReader& log, const std::function<void(uint64_t ops)>& progress = {});

}  // namespace reprise

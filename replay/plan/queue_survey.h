// SPDX-License-Identifier: MIT
// What a whole log says of who reads, who computes and who wakes whom: what queues are looked for in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"
#include "replay/plan/queues.h"

namespace reprise {

inline constexpr uint64_t kLeastWakes = 20;  // of readers, by their consumer
inline constexpr double kSomeData = 0.01;    // of all data: less is no reader, and does not stop a consumer being one

/// What the whole log says of who reads and who wakes whom.
struct QueueSurvey {
    struct Pair {
        uint64_t wakes = 0, messages = 0, markers = 0;
        uint64_t all() const { return wakes + messages; }
        uint64_t carried() const { return messages + markers; }
    };
    /// Of the time in which a task reads: whoever waits for its end that long needs it.
    static constexpr double kWaitedFor = 0.9;
    static constexpr double kSoon = 10e6;  // ns, until the shell gets to wait on a busy machine
    struct TaskFacts {
        int64_t bytes = 0;
        uint64_t reads = 0, polls = 0, waits = 0;
        int64_t computing = 0;
        int64_t busy = 0;  // ns, all but waits for others
        uint64_t submits = 0;
        int64_t begin = INT64_MAX, end = INT64_MIN;             // ns, of all that it does
        int64_t first_read = INT64_MAX, last_read = INT64_MIN;  // ns, where data or pages are read
        int64_t joined_from = INT64_MAX;                        // ns: another task waits for its end
        /// A shell and its command: the other one waits while it reads.
        bool is_waited_for() const {
            if (joined_from < end && static_cast<double>(joined_from) - static_cast<double>(first_read) <= kSoon) {
                return true;
            }
            const auto span = static_cast<double>(last_read - first_read);
            return joined_from < last_read &&
                   static_cast<double>(last_read - std::max(joined_from, first_read)) >= kWaitedFor * span;
        }
    };
    std::map<std::pair<TaskId, TaskId>, Pair> pairs;  // from whom, to whom
    std::vector<TaskFacts> tasks;
    std::vector<uint8_t> data_handle;
    std::unordered_map<uint32_t, bool> data_map;
    int64_t bytes = 0;

    const Pair& pair(TaskId from, TaskId to) const {
        static const Pair none;
        const auto found = pairs.find({from, to});
        return found == pairs.end() ? none : found->second;
    }
};

/// Reads the log once. `blocks`: by task. `progress` gets the number of ops read.
QueueSurvey take_queue_survey(const LogReader& log, const std::vector<std::vector<BlockInfo>>& blocks,
                              const std::function<void(uint64_t)>& progress);
/// Bytes of the job's data that an op reads or touches.
int64_t data_read(const QueueSurvey& survey, const OpBlock& b, size_t i);
/// When an op was over, ns.
int64_t end_of(const OpBlock& b, size_t i);
/// Fills `feed_nobody` and `event_loops`, once its queues are known.
void find_doubts(const QueueSurvey& survey, QueueInference& result);
/// Fills `shared`.
void find_shared_work(const Tables& tables, const QueueSurvey& survey, QueueInference& result);

}  // namespace reprise

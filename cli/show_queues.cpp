// SPDX-License-Identifier: MIT
#include "cli/show_queues.h"

#include <algorithm>
#include <cctype>

#include "cli/units.h"

namespace reprise::cli {
namespace {

constexpr size_t kMostNames = 8;

std::string tasks_text(const std::vector<TaskId>& tasks) {
    std::string text;
    for (size_t i = 0; i < std::min(tasks.size(), kMostNames); ++i) {
        text += (i ? ", " : "") + std::to_string(tasks[i]);
    }
    return tasks.size() > kMostNames ? text + " and " + std::to_string(tasks.size() - kMostNames) + " more" : text;
}

std::string named(const std::vector<TaskId>& tasks) {
    return (tasks.size() == 1 ? "Task " : "Tasks ") + tasks_text(tasks);
}

}  // namespace

Table queues_table(const QueueInference& queues) {
    Table table({{"consumer", "consumer", true},
                 {"readers", "readers"},
                 {"bytes", "bytes", true},
                 {"capacity", "capacity_bytes", true},
                 {"max rate", "bytes_per_s", true},
                 {"full", "full", true},
                 {"empty", "empty", true},
                 {"edges", "edges", true},
                 {"confidence", "confidence", true},
                 {"by", "by"}});
    for (const InferredQueue& queue : queues.queues) {
        Json readers = Json::array();
        for (const TaskId reader : queue.readers) {
            readers.push_back(reader);
        }
        table.row(
            {count_cell(queue.consumer), Cell(tasks_text(queue.readers), readers),
             bytes_cell(static_cast<uint64_t>(queue.bytes)), bytes_cell(static_cast<uint64_t>(queue.capacity_bytes)),
             Cell(format_rate(queue.bytes_per_s), queue.bytes_per_s), count_cell(queue.wakes), count_cell(queue.waits),
             count_cell(queue.edges), Cell(std::to_string(queue.confidence) + " %", queue.confidence / 100.0),
             queue.by == InferredQueue::By::conservation ? "conservation" : "back-pressure"});
    }
    return table;
}

std::vector<std::string> queue_doubts(const QueueInference& queues) {
    std::vector<std::string> doubts;
    if (!queues.feed_nobody.empty()) {
        doubts.push_back(
            named(queues.feed_nobody) + (queues.feed_nobody.size() == 1 ? " reads" : " read") +
            " data, but no consumer was found: nothing will wait for these reads, and slower storage may look as fast "
            "as the recorded one.");
    }
    if (!queues.event_loops.empty()) {
        doubts.push_back(named(queues.event_loops) + (queues.event_loops.size() == 1 ? " runs" : " run") +
                         " an event loop: the replay keeps the recorded order, which the program itself might not. "
                         "Such jobs were mispredicted by up to 40 %.");
    }
    if (!queues.shared.empty()) {
        std::string words = queues.shared_work();
        words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
        doubts.push_back(words +
                         "; the replay keeps what the recording did. Such jobs were mispredicted by up to 180 %.");
    }
    return doubts;
}

}  // namespace reprise::cli

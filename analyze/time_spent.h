// SPDX-License-Identifier: MIT
// Where the time of a job's tasks went, in parts that add up.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

/// ns, of all tasks together.
struct TimeSpent {
    int64_t compute = 0;
    int64_t storage = 0;      // in calls on files, and touching pages of mapped files; not those of /dev/shm
    int64_t accelerator = 0;  // waiting for one
    int64_t waits = 0;        // all other waits: for other tasks, asleep, idle, or for what is not known
    int64_t total = 0;        // from the first op of each task to its last
    /// Other calls, waiting for a processor, and time that no op covers.
    int64_t rest() const { return total - compute - storage - accelerator - waits; }
};

/// Keys end in _ns.
nlohmann::ordered_json to_json(const TimeSpent& time);

enum class TimePart : uint8_t { compute, storage, accelerator, waits, rest };

/// Told of every stretch of a task's time that is in a part, rest left out: [begin, end), ns. Where the file of a
/// mapping is not known yet, its touches count as storage.
using SeeTime = std::function<void(TaskId task, TimePart part, int64_t begin, int64_t end)>;

/// Takes the ops of each task in the order of their begins; tasks in any order. Where ops of one task overlap, as
/// asynchronous requests do, the time counts for the first of them only.
class TimeSpentCounter {
public:
    /// `tables`: of the log that the ops are from.
    explicit TimeSpentCounter(const Tables& tables, SeeTime see = {})
        : tables_(tables), see_(std::move(see)), tasks_(tables.tasks.size()) {}
    /// Of the op, kind, times, handle, file, map and arg are read; of a touch, size and list, too.
    void add(TaskId task, const Op& op);
    TimeSpent result() const;
    /// Bytes of the pages of mapped files that were touched; not those of /dev/shm.
    uint64_t bytes_touched() const;
    /// Without those of mappings whose file is not known yet.
    uint64_t touched_so_far() const { return touched_; }
    /// Whether a file is on storage: not in /dev/shm. Files that the tables do not know are.
    bool on_storage(FileId file) const;

private:
    struct Task {
        bool any = false;
        int64_t begin = 0, end = 0;
    };
    TimePart part_named(const int64_t* part) const;
    int64_t* part_of(const Op& op);
    int64_t* part_of_call(const Op& op);
    void touched(const Op& op);
    template <class Take>
    void later(Take take) const;

    const Tables& tables_;
    SeeTime see_;
    std::vector<Task> tasks_;
    std::unordered_map<uint32_t, FileId> maps_;  // the file of each mapping
    struct OfMap {
        int64_t time = 0;
        uint64_t touched = 0;
    };
    std::unordered_map<uint32_t, OfMap> by_map_;  // of mappings whose file came later, if at all
    uint64_t touched_ = 0;
    TimeSpent sum_;
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Requests that arrive whether or not the storage keeps up: how long they took from when they were due. Counted from
// when they were issued, a storage that stalls hides the queue that it makes (coordinated omission).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/oplog/oplog.h"
#include "formats/support/histogram.h"

namespace reprise {

/// The open loops of a command, ns.
struct OpenLoop {
    std::string name;         // the command
    uint64_t requests = 0;    // that were done
    uint64_t late = 0;        // those that a task came to later than kLateStart after they were due
    Histogram late_by;        // of all, from due to begin
    Histogram from_due;       // from due to done
    Histogram from_begin;     // from begin to done
    uint64_t unfinished = 0;  // begun, and not done when the run was over
};

/// A request begins when its task is over with waiting for it (kWaitUntil). It is done when the task reaches the end of
/// a marker `request`, or the next such wait where it has none, and all asynchronous requests are done that it made.
class OpenLoops {
public:
    static constexpr int64_t kLateStart = 1'000'000;  // ns; timers are not exact

    explicit OpenLoops(const Tables& tables);
    /// An op that was performed; those of a task in their order. `due`: of a wait for a request, when that is due, ns.
    void see(TaskId task, const OpBlock& block, size_t i, std::optional<int64_t> due, int64_t begin, int64_t end) {
        if (due || task_at(task) != 0) {
            note(task, block, i, due, begin, end);
        }
    }
    /// The task made an asynchronous request.
    void made(TaskId task, uint32_t request) {
        if (task_at(task) != 0) {
            note_made(task, request);
        }
    }
    /// It is done, ns.
    void done(uint32_t request, int64_t at) {
        if (!flying_.empty()) {
            note_done(request, at);
        }
    }
    /// By name. The object is empty then.
    std::vector<OpenLoop> finish();

private:
    struct Request {
        TaskId task = 0;
        int64_t due = 0, begin = 0, end = 0;
        uint32_t flying = 0;
        bool passed = false;  // its task is
    };
    uint64_t task_at(TaskId task) const { return task < at_.size() ? at_[task] : 0; }
    void note(TaskId task, const OpBlock& block, size_t i, std::optional<int64_t> due, int64_t begin, int64_t end);
    void note_made(TaskId task, uint32_t request);
    void note_done(uint32_t request, int64_t at);
    void pass(TaskId task);
    void close(uint64_t number);
    OpenLoop& loop_of(TaskId task);

    const Tables& tables_;
    StringId request_name_ = 0;
    std::vector<uint64_t> at_;                       // by task: the request that it is at; 0: none
    std::unordered_map<uint64_t, Request> open_;     // by number, from 1 on
    std::unordered_map<uint32_t, uint64_t> flying_;  // asynchronous ones, to the request that made them
    std::map<std::string, OpenLoop, std::less<>> loops_;
    uint64_t last_ = 0;
};

}  // namespace reprise

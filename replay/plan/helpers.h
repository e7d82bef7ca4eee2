// SPDX-License-Identifier: MIT
// Tasks whose work ends when somebody else wants it to, not where it is done: those that sleep and look again, and
// those that a signal ends. A replay does all that they did in the recording.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

struct TaskHelp {
    std::vector<std::pair<uint64_t, uint64_t>> beats;  // first and last sleep of each series, ascending
    bool timer = false;                                // the series is of time-outs
    int64_t cut_from = INT64_MAX;                      // ns: from then on it worked until a signal ended it

    bool beats_at(uint64_t op) const;
};

struct HelperPlan {
    std::vector<TaskHelp> tasks;  // by TaskId
    uint64_t processes = 0;       // that a signal ended while they worked
    int signal = 0;               // of most of them
    int64_t beats_ns = 0;         // sleeps of all series
    int64_t longest_beat = 0;     // ns, the first sleep of a series
    int64_t limited_ns = 0;       // sleeps of tasks that move about as many bytes between each two

    bool is_cut(TaskId task) const { return task < tasks.size() && tasks[task].cut_from != INT64_MAX; }
};

/// Series of three sleeps or more of about one length, with little between them: a heartbeat, a logger, a progress bar.
/// Who moves a part of the job's data between its sleeps is a rate limiter, or stands in for compute by sleeping. Eight
/// sleeps, or time-outs of select(), or more with about as much between each two (`limited_ns`) may be a limiter's:
/// those are shorter where the data takes longer.
///
/// So is a thread some of whose waits for others (of three or more) ran out: a timer that gives work to others, of any
/// lengths and with any pauses.
///
/// Processes that a signal from outside ended, with those they started, from the last time on that another process gave
/// them work: it decided until then how much they do. Who was idle when the signal came had done its work.
class Helpers {
public:
    explicit Helpers(const Tables& tables);
    /// The ops of one task after the other, each in its order.
    void see(TaskId task, const OpBlock& block, size_t i);
    HelperPlan finish();

private:
    struct Series {
        uint64_t first = 0, last = 0, sleeps = 0;
        int64_t length = 0, end = 0;  // ns: of its first sleep, of all so far
        int64_t asleep_ns = 0, io_ns = 0;
        uint64_t bytes = 0;
        int64_t io_before_ns = 0;  // since the last sleep: part of it only if another one follows
        uint64_t bytes_before = 0;
        uint64_t least = UINT64_MAX, most = 0;  // bytes between two, where there were some
    };
    struct Process {
        int64_t last_work = INT64_MIN, end = INT64_MIN;  // ns
        int signal = 0;                                  // that ended it
    };
    /// Series of some waits that time ended.
    struct Track {
        Series now;
        std::vector<std::pair<TaskId, Series>> found;
        void end(TaskId task);
        void sleeps(TaskId task, const OpBlock& block, size_t i);
    };
    void end_task();
    void drives(TaskId task, const OpBlock& block, size_t i, int64_t end);
    void find_cut(HelperPlan& out) const;

    const Tables& tables_;
    TaskId task_ = 0;
    Track beats_, limits_;  // sleeps; those and time-outs, as limiters wait with select()
    Series timeouts_;       // of the task's waits for others
    std::vector<std::pair<TaskId, Series>> timers_;
    std::vector<Process> processes_;
    std::map<std::pair<ProcessId, ProcessId>, int64_t> driven_;  // whom by whom, when last
    uint64_t bytes_ = 0;
    int64_t io_ns_ = 0;
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Threads, or processes, that one task started and that wrote one after another when recorded: whether they do in a
// run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/plan/plan.h"

namespace reprise {

/// Savers in the background that skip their turn while the last one is at work, or that wait for it where the recorder
/// does not see it: the recorded order has each of them start at its time, and on slower storage they pile up.
class SerialWriters {
public:
    explicit SerialWriters(const Plan& plan) : plan_(plan), spans_(plan.tasks.size()) {}
    /// An op that was performed. ns.
    void see(TaskId task, const OpBlock& block, size_t i, int64_t begin, int64_t end);

    struct Findings {
        uint64_t tasks = 0;       ///< of the group that overlapped most
        int64_t together_ns = 0;  ///< in which two or more of them were writing here
    };
    Findings finish() const;

private:
    struct Times {
        int64_t begin = INT64_MAX, end = INT64_MIN;
        void add(int64_t from, int64_t to);
    };
    /// From the first write or sync of a task to the end of its last one.
    struct Span {
        Times recorded, here;
        uint64_t calls = 0;
    };
    const Plan& plan_;
    std::vector<Span> spans_;  // by task
};

/// "12 tasks that wrote one after another when recorded ...", where they write at the same time for more than a tenth
/// of the run; else empty.
std::string write_together(const SerialWriters::Findings& findings, int64_t elapsed_ns);

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/plan/serial_writers.h"

#include <algorithm>
#include <map>
#include <utility>

#include "formats/oplog/async_request.h"
#include "formats/oplog/op_fields.h"
#include "formats/support/quantity.h"
#include "replay/plan/edges_rules.h"
#include "replay/plan/recorded_doubts.h"

namespace reprise {
namespace {

constexpr size_t kLeastTasks = 3;
constexpr uint64_t kLeastCalls = 8;              // of all of a group together
constexpr int64_t kLittleTogether = 10'000'000;  // ns

}  // namespace

void SerialWriters::Times::add(int64_t from, int64_t to) {
    begin = std::min(begin, from);
    end = std::max(end, to);
}

void SerialWriters::see(TaskId task, const OpBlock& block, size_t i, int64_t begin, int64_t end) {
    const OpInfo& row = info(static_cast<OpKind>(block.kind[i]));
    if (!row.is(Trait::io) || task >= spans_.size()) {
        return;
    }
    Span& span = spans_[task];
    const AsyncRequest asked = row.is(Trait::submits) ? async_request(block, i) : AsyncRequest();
    const bool requests = asked.writes() || asked.does == AsyncRequest::Does::sync ||
                          asked.does == AsyncRequest::Does::sync_data || (row.is(Trait::completes) && span.calls != 0);
    if (!row.is(Trait::writes) && !row.is(Trait::syncs) && !requests) {
        return;
    }
    span.recorded.add(block.begin[i], OpRef::end_of(block.begin[i], block.duration[i]));
    span.here.add(begin, end);
    ++span.calls;
}

SerialWriters::Findings SerialWriters::finish() const {
    // Who starts them; a process's first task stands for it. Their program or thread function, by name.
    std::map<std::pair<TaskId, StringId>, std::vector<const Span*>> groups;
    const Tables& tables = plan_.log->tables();
    for (TaskId task = 1; task < spans_.size(); ++task) {
        const TaskPlan& row = plan_.tasks[task];
        const ProcessPlan& process = plan_.processes[row.process];
        const TaskId spawner = process.first_task == task ? process.spawner : row.spawner;
        if (spans_[task].calls != 0 && spawner != 0) {
            groups[{spawner, tables.tasks[task].name}].push_back(&spans_[task]);
        }
    }
    Findings most;
    for (auto& group : groups) {
        std::vector<const Span*>& spans = group.second;  // clang before 16 lets no lambda take a structured binding
        uint64_t calls = 0;
        for (const Span* span : spans) {
            calls += span->calls;
        }
        // ns in which two or more of them are at work
        const auto together = [&](Times Span::*when) {
            std::sort(spans.begin(), spans.end(),
                      [&](const Span* a, const Span* b) { return (a->*when).begin < (b->*when).begin; });
            int64_t latest = INT64_MIN, counted_to = INT64_MIN, ns = 0;
            for (const Span* span : spans) {
                const Times& times = span->*when;
                const int64_t from = std::max(times.begin, counted_to), to = std::min(times.end, latest);
                if (to > from) {
                    ns += distance_ns(from, to);
                    counted_to = to;
                }
                latest = std::max(latest, times.end);
            }
            return ns;
        };
        if (spans.size() < kLeastTasks || calls < kLeastCalls || together(&Span::recorded) != 0) {
            continue;
        }
        if (const int64_t ns = together(&Span::here); ns > most.together_ns) {
            most = {spans.size(), ns};
        }
    }
    return most;
}

std::string write_together(const SerialWriters::Findings& findings, int64_t elapsed_ns) {
    if (findings.together_ns <= kLittleTogether ||
        static_cast<double>(findings.together_ns) <= kSomeShare * static_cast<double>(elapsed_ns)) {
        return {};
    }
    return counted(findings.tasks, "task") + " that wrote one after another when recorded write at the same time for " +
           format_duration(findings.together_ns) + " here: a job that waits for the last one, or skips, does not";
}

}  // namespace reprise

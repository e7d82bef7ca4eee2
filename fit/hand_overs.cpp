// SPDX-License-Identifier: MIT
#include "fit/hand_overs.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>
#include <utility>

namespace reprise {
namespace {

constexpr int64_t kLengthBytes = 8;

/// A message may come as its length, and then itself.
template <class Received>
void join_message(std::vector<Received>& messages, const Received& next) {
    const bool length = !messages.empty() && messages.back().channel == next.channel &&
                        messages.back().source == next.source && messages.back().size <= kLengthBytes &&
                        next.size > kLengthBytes;
    if (length) {
        messages.back() = next;
    } else {
        messages.push_back(next);
    }
}

}  // namespace

HandOvers::HandOvers(const JobTrace& trace) : trace_(trace) {
    for (TaskId task = 1; task < trace.tasks.size(); ++task) {
        TaskId& reader = reader_of_process_[trace.tasks[task].process];
        if (trace.tasks[task].reads > (reader == 0 ? 0 : trace.tasks[reader].reads)) {
            reader = task;
        }
        sends_[trace.tasks[task].process].insert(trace.tasks[task].sends.begin(), trace.tasks[task].sends.end());
    }
}

TaskId HandOvers::reader_of(TaskId task) const {
    if (trace_.tasks[task].reads > 0) {
        return task;
    }
    const auto found = reader_of_process_.find(trace_.tasks[task].process);
    return found == reader_of_process_.end() ? 0 : found->second;
}

std::vector<Take> HandOvers::edges(TaskId task, const std::vector<TaskId>& ranks) const {
    std::vector<Take> out;
    for (const TraceEdge& edge : trace_.tasks[task].edges) {
        if (edge.kind == EdgeKind::lifecycle || std::find(ranks.begin(), ranks.end(), edge.source) != ranks.end()) {
            continue;
        }
        const TaskId reader = reader_of(edge.source);
        if (reader == 0 || reader == task) {
            continue;
        }
        uint64_t last = edge.source_op;
        if (reader != edge.source) {  // a thread that sends for it: as far as the reader is then
            const TraceTask& source = trace_.tasks[edge.source];
            if (source.ops.empty()) {
                continue;
            }
            const size_t at = std::min(source.at(edge.source_op), source.ops.size() - 1);
            const TraceTask& of = trace_.tasks[reader];
            const auto after = std::partition_point(
                of.ops.begin(), of.ops.end(), [&](const TraceOp& each) { return each.end() <= source.ops[at].end(); });
            if (after == of.ops.begin()) {
                continue;
            }
            last = std::prev(after)->op;
        }
        Take& made = out.emplace_back();
        made.op = edge.op;
        made.loader = reader;
        made.last = last;
        made.source = edge.source;
        made.source_op = edge.source_op;
        made.channel = edge.kind == EdgeKind::message ? edge.channel : 0;
        made.size = edge.size;
    }
    return out;
}

bool HandOvers::is_queue(TaskId task, HandleId channel) const {
    return channel != 0 && !sends_.at(trace_.tasks[task].process).contains(channel);
}

bool HandOvers::reads(TaskId loader, uint64_t first, uint64_t last) const {
    const TraceTask& of = trace_.tasks[loader];
    for (size_t at = of.at(first); at < of.ops.size() && of.ops[at].op <= last; ++at) {
        if (of.ops[at].part == OpPart::data) {
            return true;
        }
    }
    return false;
}

std::vector<Take> HandOvers::batches(TaskId task, std::vector<Take> edges) const {
    std::set<TaskId> all, by_queue;
    for (const Take& take : edges) {
        all.insert(take.loader);
        if (is_queue(task, take.channel)) {
            by_queue.insert(take.loader);
        }
    }
    if (all.empty() || by_queue != all) {
        return edges;
    }
    std::vector<Take> out;
    std::set<std::pair<TaskId, uint64_t>> seen;  // sources
    for (const Take& take : edges) {
        if (is_queue(task, take.channel) && seen.emplace(take.source, take.source_op).second) {
            join_message(out, take);
        }
    }
    find_asked(task, out);
    return out;
}

/// Messages to the loader from that task's process.
std::vector<HandOvers::Asked> HandOvers::asked_of(TaskId loader, TaskId task) const {
    std::vector<TraceEdge> out;
    std::set<std::pair<TaskId, uint64_t>> seen;
    for (const TraceEdge& edge : trace_.tasks[loader].edges) {
        if (edge.kind == EdgeKind::message && trace_.tasks[edge.source].process == trace_.tasks[task].process &&
            is_queue(loader, edge.channel) && seen.emplace(edge.source, edge.source_op).second) {
            join_message(out, edge);
        }
    }
    std::vector<Asked> asked;
    asked.reserve(out.size());
    for (const TraceEdge& edge : out) {
        const TraceTask& source = trace_.tasks[edge.source];
        const size_t after = source.at(edge.source_op + 1);
        asked.push_back({edge.op, after > 0 ? source.ops[after - 1].begin : 0});
    }
    return asked;
}

/// A loader that is asked for each batch answers in that order; before the first it may be told what else it needs, and
/// after the last that it may end.
void HandOvers::find_asked(TaskId task, std::vector<Take>& takes) const {
    std::map<TaskId, std::vector<size_t>> of_loader;
    for (size_t i = 0; i < takes.size(); ++i) {
        of_loader[takes[i].loader].push_back(i);
    }
    for (const auto& [loader, own] : of_loader) {
        if (trace_.tasks[loader].process == trace_.tasks[task].process) {
            continue;
        }
        const std::vector<Asked> asked = asked_of(loader, task);
        const auto last_of = [&](size_t i, const Take& take) {
            return i + 1 < asked.size() ? asked[i + 1].op - 1 : take.last;
        };
        size_t best = 0, most = 0;
        for (size_t shift = 0; shift + own.size() <= asked.size(); ++shift) {
            size_t read = 0;
            for (size_t i = 0; i < own.size(); ++i) {
                read += reads(loader, asked[i + shift].op, last_of(i + shift, takes[own[i]])) ? 1 : 0;
            }
            if (read > most) {
                most = read;
                best = shift;
            }
        }
        for (size_t i = 0; most > 0 && i < own.size(); ++i) {
            Take& take = takes[own[i]];
            take.first = asked[i + best].op;
            take.asked_at = asked[i + best].at;
            take.last = last_of(i + best, take);
            take.asked = true;
        }
    }
}

std::vector<Take> HandOvers::fresh(const std::vector<Take>& takes) const {
    std::vector<Take> out;
    std::unordered_map<TaskId, uint64_t> next;  // of its ops
    for (const Take& take : takes) {
        uint64_t& from = next[take.loader];
        if (reads(take.loader, take.asked ? take.first : from, take.last)) {
            out.push_back(take);
        }
        from = std::max(from, take.last + 1);
    }
    return out;
}

}  // namespace reprise

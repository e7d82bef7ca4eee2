// SPDX-License-Identifier: MIT
#include "replay/plan/helpers.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "formats/support/sums.h"
#include "replay/plan/edges_rules.h"

namespace reprise {
namespace {

constexpr uint64_t kLeastSleeps = 3;
constexpr int64_t kShortest = 1'000'000;  // ns; shorter sleeps yield the processor
/// Of a sleep's length: how far others may be from it, and how much may lie between two.
constexpr double kAbout = 0.25;
/// A rate limiter moves so much of the job's data, or spends so much of the job's time in calls on files.
constexpr double kMovesData = 0.1, kMostIo = 0.5;
constexpr uint64_t kLittleData = 1 << 20;
/// A limiter's sleeps: so many, and what it moves between them differs by so much.
constexpr uint64_t kLimiterSleeps = 8;
constexpr double kEven = 1.5;
constexpr size_t kMostPairs = size_t{1} << 20;
constexpr int64_t kLongest = int64_t{1} << 50;  // ns; longer ones are malformed

/// What a program does while it ends, ns.
constexpr int64_t kDying = 100'000;
/// Of the time since it got its last work: a process that was idle for so long had done it.
constexpr double kIdle = 0.1;

constexpr int64_t kSignalled = 128;

/// Of those that end a process at a time, not at what it does itself: a bad access, a closed pipe.
int ending_signal(const OpBlock& block, size_t i) {
    if (static_cast<OpKind>(block.kind[i]) != OpKind::exit || block.result[i] != -EINTR || block.arg[i] < kSignalled) {
        return 0;
    }
    const int64_t signal = block.arg[i] - kSignalled;
    switch (signal) {
        case SIGHUP:
        case SIGINT:
        case SIGQUIT:
        case SIGKILL:
        case SIGUSR1:
        case SIGUSR2:
        case SIGALRM:
        case SIGTERM:
        case SIGXCPU:
        case SIGVTALRM:
        case SIGPROF: return static_cast<int>(signal);
        default: return 0;
    }
}

}  // namespace

bool TaskHelp::beats_at(uint64_t op) const {
    const auto after =
        std::upper_bound(beats.begin(), beats.end(), op, [](uint64_t at, const auto& one) { return at < one.first; });
    return after != beats.begin() && op <= std::prev(after)->second;
}

Helpers::Helpers(const Tables& tables) : tables_(tables), processes_(tables.processes.size()) {}

void Helpers::Track::end(TaskId task) {
    if (now.sleeps >= kLeastSleeps) {
        found.emplace_back(task, now);
    }
    now = {};
}

void Helpers::Track::sleeps(TaskId task, const OpBlock& block, size_t i) {
    const int64_t begin = block.begin[i], length = block.duration[i];
    if (begin < 0 || begin > kLongest || length < kShortest || length > kLongest) {
        return end(task);
    }
    const double about = kAbout * static_cast<double>(now.length);
    const bool goes_on = now.sleeps != 0 && static_cast<double>(std::abs(length - now.length)) <= about &&
                         static_cast<double>(begin - now.end) <= about;
    if (!goes_on) {
        end(task);
        now.first = block.first + i;
        now.length = length;
    } else {
        sum(now.io_ns, now.io_before_ns);
        sum(now.bytes, now.bytes_before);
        if (now.bytes_before != 0) {
            now.least = std::min(now.least, now.bytes_before);
            now.most = std::max(now.most, now.bytes_before);
        }
    }
    now.io_before_ns = 0;
    now.bytes_before = 0;
    ++now.sleeps;
    now.last = block.first + i;
    now.end = begin + length;
    sum(now.asleep_ns, length);
}

void Helpers::end_task() {
    beats_.end(task_);
    limits_.end(task_);
    if (timeouts_.sleeps >= kLeastSleeps) {
        timers_.emplace_back(task_, timeouts_);
    }
    timeouts_ = {};
}

void Helpers::see(TaskId task, const OpBlock& block, size_t i) {
    if (task != task_) {
        end_task();
        task_ = task;
    }
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const OpInfo& row = info(kind);
    const int64_t duration = std::max<int64_t>(block.duration[i], 0);
    const int64_t end = OpRef::end_of(block.begin[i], duration);
    const bool message = kind == OpKind::send || kind == OpKind::receive;
    if (row.is(Trait::io)) {
        sum(io_ns_, duration);
        sum(beats_.now.io_before_ns, duration);
        sum(timeouts_.io_ns, duration);
    }
    if ((message || row.is(Trait::reads) || row.is(Trait::writes)) && block.result[i] > 0) {
        sum(bytes_, static_cast<uint64_t>(block.result[i]));
        sum(beats_.now.bytes_before, static_cast<uint64_t>(block.result[i]));
        sum(limits_.now.bytes_before, static_cast<uint64_t>(block.result[i]));
        sum(timeouts_.bytes, static_cast<uint64_t>(block.result[i]));
    }
    if (kind == OpKind::wait && block.arg[i] == kWaitSleep) {
        beats_.sleeps(task, block, i);
    }
    if (kind == OpKind::wait && ended_by_time(block.arg[i], block.result[i]) &&
        (block.arg[i] == kWaitSleep || block.arg[i] == kWaitPoll)) {
        limits_.sleeps(task, block, i);
    }
    if (kind == OpKind::wait && block.arg[i] == kWaitFutex && block.result[i] == -ETIMEDOUT && duration >= kShortest &&
        duration <= kLongest) {
        timeouts_.first = timeouts_.sleeps++ == 0 ? block.first + i : timeouts_.first;
        timeouts_.last = block.first + i;
    }
    const ProcessId id = tables_.tasks[task].process;
    if (id >= processes_.size()) {
        return;
    }
    Process& process = processes_[id];
    if (row.is(Trait::io) || row.is(Trait::accelerator) || (kind == OpKind::compute && duration >= kDying)) {
        process.last_work = std::max(process.last_work, end);
    }
    if (kind == OpKind::exit) {
        process.end = std::max(process.end, end);
        if (const int signal = ending_signal(block, i); signal != 0) {
            process.signal = signal;
        }
    }
    drives(task, block, i, end);
}

/// What the signal itself ended gave no work.
void Helpers::drives(TaskId task, const OpBlock& block, size_t i, int64_t end) {
    if (!block.has_edges() || block.result[i] == -EINTR) {
        return;
    }
    const ProcessId mine = tables_.tasks[task].process;
    for (const Edge& edge : block.edges_of(i)) {
        const ProcessId by = edge.task < tables_.tasks.size() ? tables_.tasks[edge.task].process : 0;
        if (by == 0 || by == mine || (edge.kind != EdgeKind::message && edge.kind != EdgeKind::wake)) {
            continue;
        }
        const auto at = driven_.find({mine, by});
        if (at != driven_.end()) {
            at->second = std::max(at->second, end);
        } else if (driven_.size() < kMostPairs) {
            driven_.emplace(std::pair{mine, by}, end);
        }
    }
}

void Helpers::find_cut(HelperPlan& out) const {
    // Of each process the topmost one above it, or itself, that a signal ended. Who is started comes after who starts.
    const size_t count = processes_.size();
    std::vector<ProcessId> root(count);
    std::vector<int64_t> from(count, INT64_MIN), work(count, INT64_MIN);
    for (ProcessId id = 1; id < count; ++id) {
        const ProcessId parent = tables_.processes[id].parent;
        root[id] = parent < id && root[parent] != 0 ? root[parent] : processes_[id].signal != 0 ? id : 0;
        work[root[id]] = std::max(work[root[id]], processes_[id].last_work);
    }
    for (const auto& [pair, at] : driven_) {
        const ProcessId top = root[pair.first];
        if (top != 0 && (pair.second >= count || root[pair.second] != top)) {
            from[top] = std::max(from[top], at);
        }
    }
    const auto worked = [&](ProcessId top) {
        const int64_t end = processes_[top].end;
        const double since = static_cast<double>(end) - static_cast<double>(std::max<int64_t>(from[top], 0));
        return work[top] != INT64_MIN && static_cast<double>(end) - static_cast<double>(work[top]) <= kIdle * since;
    };
    std::map<int, uint64_t> signals;
    for (ProcessId id = 1; id < count; ++id) {
        if (processes_[id].signal != 0 && worked(root[id])) {
            ++out.processes;
            const uint64_t times = ++signals[processes_[id].signal];
            out.signal = times >= signals[out.signal] ? processes_[id].signal : out.signal;
        }
    }
    for (TaskId task = 1; task < out.tasks.size(); ++task) {
        const ProcessId process = tables_.tasks[task].process, top = process < count ? root[process] : 0;
        if (top != 0 && worked(top)) {
            out.tasks[task].cut_from = from[top];
        }
    }
}

HelperPlan Helpers::finish() {
    end_task();
    HelperPlan out;
    out.tasks.resize(tables_.tasks.size());
    const auto moves = [&](const Series& series) {
        return series.bytes >= kLittleData &&
               static_cast<double>(series.bytes) >= kMovesData * static_cast<double>(bytes_);
    };
    for (const auto& [task, series] : beats_.found) {
        if (!moves(series) && static_cast<double>(series.io_ns) < kMostIo * static_cast<double>(io_ns_)) {
            out.tasks[task].beats.emplace_back(series.first, series.last);
            sum(out.beats_ns, series.asleep_ns);
            out.longest_beat = std::max(out.longest_beat, series.length);
        }
    }
    for (const auto& [task, series] : timers_) {
        if (out.tasks[task].beats.empty() && !moves(series) &&
            static_cast<double>(series.io_ns) < kMostIo * static_cast<double>(io_ns_)) {
            out.tasks[task].beats.emplace_back(series.first, series.last);
            out.tasks[task].timer = true;
        }
    }
    for (const auto& [task, series] : limits_.found) {
        const bool even = static_cast<double>(series.most) <= kEven * static_cast<double>(series.least);
        if (moves(series) && even && series.sleeps >= kLimiterSleeps) {
            sum(out.limited_ns, series.asleep_ns);
        }
    }
    find_cut(out);
    return out;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/plan/queue_survey.h"

#include <cmath>
#include <optional>

#include "formats/oplog/touched.h"

namespace reprise {
namespace {

// Whether what is read of such a file is data that a job hands over.
bool is_data(Role role) {
    return role == Role::dataset || role == Role::unknown || role == Role::checkpoint || role == Role::cache;
}

// Uses of pages that are there already are known by samples only, and not when exactly: they hand nothing over.
int64_t touched_by(const OpBlock& b, size_t i) {
    int64_t sum = 0;
    if (b.flags[i] == kTouchAgain) {
        return sum;
    }
    each_touched(b.offset[i], b.size[i], b.list_of(i),
                 [&](int64_t, int64_t bytes) { sum = std::min(bytes, INT64_MAX - sum) + sum; });
    return sum;
}

// Malformed logs name more; sums of these do not overflow.
constexpr int64_t kMostRead = 0x7ffff000;             // bytes that one call of Linux moves at most
constexpr int64_t kMostTouched = int64_t{1} << 40;    // bytes of one op
constexpr int64_t kMostComputing = int64_t{1} << 45;  // ns, 10 hours

/// Whether a task decides by what it hears of reads what is read next.
bool orders_reads(const QueueSurvey& survey, TaskId task) {
    constexpr uint64_t kHeard = 20;  // of so many reads, one
    const auto some = static_cast<int64_t>(kSomeData * static_cast<double>(survey.bytes));
    const auto hears = [&](TaskId reader) {
        const QueueSurvey::TaskFacts& facts = survey.tasks[reader];
        return facts.bytes > some && kHeard * survey.pair(reader, task).all() >= facts.reads;
    };
    for (TaskId reader = 1; reader < survey.tasks.size(); ++reader) {
        if (reader == task ? survey.tasks[task].bytes > some : hears(reader)) {
            return true;
        }
    }
    return false;
}

/// Whether two tasks may be a pool: each reads until the end, and pieces of about the same size. Two tasks may as well
/// have work of their own each.
bool take_alike(const QueueSurvey& survey, const std::vector<TaskId>& tasks, double span) {
    constexpr double kUntilEnd = 0.8;  // of the time in which either of them reads
    constexpr double kAlike = 1.5;     // one's mean read, of the other's
    double least = INFINITY, most = 0;
    for (const TaskId task : tasks) {
        const QueueSurvey::TaskFacts& facts = survey.tasks[task];
        if (static_cast<double>(facts.last_read) - static_cast<double>(facts.first_read) < kUntilEnd * span) {
            return false;
        }
        const double each = static_cast<double>(facts.bytes) / static_cast<double>(std::max<uint64_t>(facts.reads, 1));
        least = std::min(least, each);
        most = std::max(most, each);
    }
    return most <= kAlike * least;
}

/// Of tasks that are alike: those that read all the time, none of which runs out of work before the others, and share
/// the work unevenly.
std::optional<SharedWork> shared_by(const QueueSurvey& survey, const std::vector<TaskId>& tasks, bool threads) {
    constexpr size_t kLeastTasks = 3;
    constexpr uint64_t kLeastReads = 60;            // of all together
    constexpr double kUneven = 1.3;                 // most of one, of their mean
    constexpr double kTheirs = 0.8;                 // of all reads
    constexpr double kEach = 0.5, kTogether = 0.7;  // of the time in which any of them reads: each, their mean
    int64_t begin = INT64_MAX, end = INT64_MIN;
    uint64_t all = 0;
    for (const TaskId task : tasks) {
        const QueueSurvey::TaskFacts& facts = survey.tasks[task];
        begin = std::min(begin, facts.first_read);
        end = std::max(end, facts.last_read);
        all += facts.reads;
    }
    const double span = static_cast<double>(end) - static_cast<double>(begin);
    SharedWork work{{}, UINT64_MAX, 0};
    double covered = 0;
    uint64_t reads = 0;
    for (const TaskId task : tasks) {
        const QueueSurvey::TaskFacts& facts = survey.tasks[task];
        const double own = static_cast<double>(facts.last_read) - static_cast<double>(facts.first_read);
        if (own < kEach * span) {
            continue;
        }
        work.tasks.push_back(task);
        work.least = std::min(work.least, facts.reads);
        work.most = std::max(work.most, facts.reads);
        covered += own;
        reads += facts.reads;
    }
    const auto count = static_cast<double>(work.tasks.size());
    const bool enough =
        work.tasks.size() >= kLeastTasks || (threads && work.tasks.size() == 2 && take_alike(survey, work.tasks, span));
    const bool shares = enough && reads >= kLeastReads && covered >= kTogether * count * span &&
                        static_cast<double>(reads) >= kTheirs * static_cast<double>(all) &&
                        static_cast<double>(work.most) * count >= kUneven * static_cast<double>(reads);
    return shares ? std::optional(std::move(work)) : std::nullopt;
}

/// Whether of many children a few run at a time, and most begin once another one has ended.
bool started_as_others_end(const QueueSurvey& survey, const std::vector<TaskId>& children) {
    constexpr size_t kLeast = 20;
    constexpr double kOverlap = 0.1;  // of them, with the one before
    if (children.size() < kLeast) {
        return false;
    }
    std::vector<std::pair<int64_t, int64_t>> lives;  // begin, end
    int64_t first_end = INT64_MAX;
    for (const TaskId task : children) {
        lives.emplace_back(survey.tasks[task].begin, survey.tasks[task].end);
        first_end = std::min(first_end, survey.tasks[task].end);
    }
    std::sort(lives.begin(), lives.end());
    size_t late = 0, overlapping = 0;
    int64_t busy_until = INT64_MIN;
    for (const auto& [begin, end] : lives) {
        late += begin > first_end ? 1 : 0;
        overlapping += begin < busy_until ? 1 : 0;
        busy_until = std::max(busy_until, end);
    }
    return 2 * late > lives.size() && static_cast<double>(overlapping) > kOverlap * static_cast<double>(lives.size());
}

}  // namespace

int64_t end_of(const OpBlock& b, size_t i) {
    int64_t end = 0;
    return __builtin_add_overflow(b.begin[i], std::max<int64_t>(b.duration[i], 0), &end) ? INT64_MAX : end;
}

int64_t data_read(const QueueSurvey& survey, const OpBlock& b, size_t i) {
    const auto kind = static_cast<OpKind>(b.kind[i]);
    if (kind == OpKind::touch) {
        const auto found = survey.data_map.find(b.map[i]);
        if (found == survey.data_map.end() || !found->second) {
            return 0;
        }
        return std::min(touched_by(b, i), kMostTouched);
    }
    if (!info(kind).is(Trait::reads) || info(kind).is(Trait::async) || b.result[i] <= 0) {
        return 0;
    }
    const uint32_t handle = b.handle[i];
    return handle < survey.data_handle.size() && survey.data_handle[handle] ? std::min(b.result[i], kMostRead) : 0;
}

QueueSurvey take_queue_survey(const LogReader& log, const std::vector<std::vector<BlockInfo>>& blocks,
                              const std::function<void(uint64_t)>& progress) {
    uint64_t seen = 0;
    const Tables& tables = log.tables();
    QueueSurvey survey;
    survey.tasks.resize(tables.tasks.size());
    survey.data_handle.resize(tables.handles.size());
    for (size_t i = 1; i < tables.handles.size(); ++i) {
        const HandleRow& row = tables.handles[i];
        survey.data_handle[i] = row.kind == HandleKind::file && row.file < tables.files.size() && row.file != 0 &&
                                is_data(tables.files[row.file].role);
    }
    // Mappings may be touched by tasks that come before the one that made them.
    std::map<std::pair<TaskId, uint32_t>, std::pair<int64_t, uint64_t>> touched;
    OpBlock b;
    for (TaskId task = 1; task < blocks.size(); ++task) {
        QueueSurvey::TaskFacts& facts = survey.tasks[task];
        for (const BlockInfo& where : blocks[task]) {
            log.decode(where, b);
            if (b.count() != 0) {
                facts.begin = std::min(facts.begin, b.begin[0]);
                facts.end = std::max(facts.end, end_of(b, b.count() - 1));
            }
            for (size_t i = 0; i < b.count(); ++i) {
                const auto kind = static_cast<OpKind>(b.kind[i]);
                if (!info(kind).is(Trait::waits) || (kind == OpKind::wait && b.arg[i] == kWaitSleep)) {
                    facts.busy += b.duration[i];
                }
                if (kind == OpKind::mmap && b.handle[i] != 0 && b.map[i] != 0) {
                    survey.data_map[b.map[i]] =
                        b.handle[i] < survey.data_handle.size() && survey.data_handle[b.handle[i]];
                } else if (kind == OpKind::touch) {
                    auto& sum = touched[{task, b.map[i]}];
                    sum.first += std::min(touched_by(b, i), kMostTouched);
                    ++sum.second;
                } else if (kind == OpKind::compute) {
                    facts.computing += std::clamp<int64_t>(b.duration[i], 0, kMostComputing);
                } else if (kind == OpKind::gpu_submit) {
                    ++facts.submits;
                } else if (kind == OpKind::wait && !is_lock_wait(b.arg[i])) {
                    ++facts.waits;
                    facts.polls += wait_class(b.arg[i]) == kWaitEpoll ? 1 : 0;
                }
                const int64_t bytes = kind == OpKind::touch ? 0 : data_read(survey, b, i);
                if (bytes > 0) {
                    facts.bytes += bytes;
                    ++facts.reads;
                }
                if (bytes > 0 || kind == OpKind::touch) {
                    facts.first_read = std::min(facts.first_read, b.begin[i]);
                    facts.last_read = std::max(facts.last_read, end_of(b, i));
                }
                for (const Edge& edge : b.has_edges() ? b.edges_of(i) : std::span<const Edge>{}) {
                    if (edge.task == 0 || edge.task >= blocks.size() || edge.task == task) {
                        continue;
                    }
                    QueueSurvey::Pair& pair = survey.pairs[{edge.task, task}];
                    pair.wakes += edge.kind == EdgeKind::wake ? 1 : 0;
                    pair.messages += edge.kind == EdgeKind::message ? 1 : 0;
                    pair.markers += edge.kind == EdgeKind::marker ? 1 : 0;
                    if (edge.kind == EdgeKind::lifecycle && kind == OpKind::join) {
                        int64_t& from = survey.tasks[edge.task].joined_from;
                        from = std::min(from, b.begin[i]);
                    }
                }
            }
            log.forget(where);
            seen += b.count();
            if (progress) {
                progress(seen);
            }
        }
    }
    for (const auto& [key, sum] : touched) {
        const auto found = survey.data_map.find(key.second);
        if (found == survey.data_map.end() || !found->second) {
            continue;
        }
        survey.tasks[key.first].bytes += sum.first;
        survey.tasks[key.first].reads += sum.second;
    }
    for (const QueueSurvey::TaskFacts& facts : survey.tasks) {
        survey.bytes += facts.bytes;
    }
    return survey;
}

void find_doubts(const QueueSurvey& survey, QueueInference& result) {
    constexpr uint64_t kLeastPolls = 20;
    int64_t computing = 0;
    for (const QueueSurvey::TaskFacts& facts : survey.tasks) {
        computing += facts.computing;
    }
    for (TaskId task = 1; task < survey.tasks.size(); ++task) {
        const QueueSurvey::TaskFacts& facts = survey.tasks[task];
        if (facts.polls >= kLeastPolls && 2 * facts.polls > facts.waits && orders_reads(survey, task)) {
            result.event_loops.push_back(task);
        }
        if (static_cast<double>(facts.bytes) <= 0.1 * static_cast<double>(survey.bytes)) {
            continue;
        }
        // Somebody else does the work, and nothing leads there.
        const bool works = facts.submits != 0 || 4 * facts.computing > computing;
        if (works || facts.reads < kLeastWakes) {
            continue;
        }
        uint64_t out = 0;
        for (auto it = survey.pairs.lower_bound({task, 0}); it != survey.pairs.end() && it->first.first == task; ++it) {
            out += it->second.all() + it->second.markers;
        }
        for (const InferredQueue& queue : result.queues) {
            out += std::count(queue.readers.begin(), queue.readers.end(), task) != 0 ? queue.edges : 0;
        }
        if (out < 2 && !facts.is_waited_for()) {
            result.feed_nobody.push_back(task);
        }
    }
}

void find_shared_work(const Tables& tables, const QueueSurvey& survey, QueueInference& result) {
    // Threads of one process, or children of one process that run the same program.
    std::map<std::pair<ProcessId, StringId>, std::vector<TaskId>> threads, children;
    for (TaskId task = 1; task < survey.tasks.size(); ++task) {
        if (survey.tasks[task].reads == 0 || survey.tasks[task].bytes <= 0) {
            continue;
        }
        threads[{tables.tasks[task].process, 0}].push_back(task);
    }
    for (const auto& [key, tasks] : threads) {
        const ProcessRow& process = tables.processes[key.first];
        if (process.parent != 0 && tasks.size() == 1) {
            children[{process.parent, tables.tasks[tasks[0]].name}].push_back(tasks[0]);
        }
    }
    for (const auto* groups : {&threads, &children}) {
        for (const auto& [key, tasks] : *groups) {
            if (std::optional<SharedWork> work = shared_by(survey, tasks, groups == &threads)) {
                result.shared.push_back(std::move(*work));
            }
        }
    }
    for (const auto& [key, tasks] : children) {
        if (started_as_others_end(survey, tasks)) {
            // Of the parent's tasks the one that is its process's own.
            const auto parent =
                std::find_if(tables.tasks.begin() + 1, tables.tasks.end(),
                             [&, process = key.first](const TaskRow& row) { return row.process == process; });
            result.shared.push_back({tasks, 1, 1, static_cast<TaskId>(parent - tables.tasks.begin())});
        }
    }
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Batches of a loop that is found: their numbers and epochs, and what their loaders waited for.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "fit/training_loop.h"

namespace reprise {

void number_batches(const JobTrace& trace, RankLoop& rank) {
    uint32_t epoch = 0;
    uint64_t number = 0;
    size_t begun = 0;
    const TraceTask& of = trace.tasks[rank.task];
    for (BatchLoad& batch : rank.batches) {
        while (begun < rank.epoch_begins.size() && rank.epoch_begins[begun] <= batch.taken) {
            epoch = static_cast<uint32_t>(begun);
            number = 0;
            ++begun;
        }
        batch.epoch = epoch;
        batch.number = number++;
        const size_t taken = of.at(batch.taken);
        batch.taken_at = taken < of.ops.size() ? of.ops[taken].end() : 0;
        const TraceTask& loader = trace.tasks[batch.loader];
        batch.begins = batch.taken_at;
        for (size_t at = loader.at(batch.first); at < loader.ops.size() && loader.ops[at].op <= batch.last; ++at) {
            const TraceOp& op = loader.ops[at];
            if (op.part == OpPart::data || (op.part == OpPart::mark && op.phase == 1)) {
                batch.begins = op.begin;
                break;
            }
        }
    }
}

namespace {

/// An epoch begins with the first batch that has what one of the epoch had before it; how many there are then.
uint64_t split_where_read_again(const JobTrace& trace, RankLoop& rank) {
    std::set<std::pair<FileId, int64_t>> seen;
    uint32_t epoch = 0;
    uint64_t number = 0;
    for (BatchLoad& batch : rank.batches) {
        std::set<std::pair<FileId, int64_t>> own;
        const TraceTask& loader = trace.tasks[batch.loader];
        for (size_t at = loader.at(batch.first); at < loader.ops.size() && loader.ops[at].op <= batch.last; ++at) {
            const TraceOp& op = loader.ops[at];
            if (op.part == OpPart::data && info(op.kind).is(Trait::reads) && op.result > 0) {
                own.emplace(op.file, op.offset);
            }
        }
        if (std::any_of(own.begin(), own.end(), [&](const auto& each) { return seen.contains(each); })) {
            ++epoch;
            number = 0;
            seen.clear();
        }
        seen.merge(own);
        batch.epoch = epoch;
        batch.number = number++;
    }
    return uint64_t{epoch} + 1;
}

void count_epochs(const JobTrace& trace, TrainingLoop& loop) {
    uint64_t marked = 0;
    for (const RankLoop& rank : loop.ranks) {
        marked = std::max<uint64_t>(marked, rank.epoch_begins.size());
    }
    loop.epochs_marked = marked > 0;
    loop.epochs = std::max<uint64_t>(marked > 0 ? marked : trace.epochs, 1);
    if (marked > 0 || loop.epochs < 2) {
        return;
    }
    for (RankLoop& rank : loop.ranks) {
        if (split_where_read_again(trace, rank) == loop.epochs) {
            continue;
        }
        const uint64_t each = (rank.batches.size() + loop.epochs - 1) / loop.epochs;  // as many in each
        for (uint64_t i = 0; i < rank.batches.size(); ++i) {
            rank.batches[i].epoch = static_cast<uint32_t>(i / each);
            rank.batches[i].number = i % each;
        }
    }
}

/// Which batch was taken when the loader could begin another one, where the log has it as a cause.
void find_lags(const JobTrace& trace, RankLoop& rank) {
    std::unordered_map<uint64_t, size_t> batch_of;  // by the op that takes it
    for (size_t i = 0; i < rank.batches.size(); ++i) {
        batch_of.emplace(rank.batches[i].taken, i);
    }
    for (BatchLoad& batch : rank.batches) {
        if (batch.loader == rank.task || batch.loader == 0) {
            continue;
        }
        const TraceTask& loader = trace.tasks[batch.loader];
        const auto from = std::partition_point(loader.edges.begin(), loader.edges.end(),
                                               [&](const TraceEdge& edge) { return edge.op < batch.first; });
        for (auto edge = from; edge != loader.edges.end() && edge->op <= batch.last; ++edge) {
            const auto found = batch_of.find(edge->source_op);
            if (edge->source != rank.task || found == batch_of.end()) {
                continue;
            }
            const BatchLoad& source = rank.batches[found->second];
            if (source.epoch == batch.epoch && source.number < batch.number) {
                batch.lag = batch.number - source.number;
            }
        }
    }
}

/// Brothers of the loaders that did nothing at all, where an epoch has not enough batches for all.
void count_idle(const JobTrace& trace, RankLoop& rank) {
    for (const BatchLoad& batch : rank.batches) {
        if (batch.number >= rank.loaders.size()) {
            return;
        }
    }
    const TraceTask& own = trace.tasks[rank.task];
    const bool threads = !rank.loaders.empty() && trace.tasks[rank.loaders.front()].process == own.process;
    for (TaskId task = 1; threads && task < trace.tasks.size(); ++task) {
        const TraceTask& other = trace.tasks[task];
        rank.idle_loaders += other.parent == rank.task && other.process == own.process && other.idle ? 1 : 0;
    }
}

/// The most tasks that there were at any time.
uint64_t most_at_once(const JobTrace& trace, const std::vector<TaskId>& tasks) {
    std::vector<std::pair<int64_t, int64_t>> changes;  // when, and by how many
    for (const TaskId task : tasks) {
        if (const std::vector<TraceOp>& ops = trace.tasks[task].ops; !ops.empty()) {
            changes.emplace_back(ops.front().begin, 1);
            changes.emplace_back(ops.back().end(), -1);
        }
    }
    std::sort(changes.begin(), changes.end());
    int64_t there = 0, most = 0;
    for (const auto& [time, change] : changes) {
        there += change;
        most = std::max(most, there);
    }
    return static_cast<uint64_t>(most);
}

}  // namespace

LoaderCount count_loaders(const JobTrace& trace, const TrainingLoop& loop) {
    LoaderCount out;
    for (const RankLoop& rank : loop.ranks) {
        std::map<uint32_t, std::set<TaskId>> of_epoch;
        std::set<TaskId> all;
        for (const BatchLoad& batch : rank.batches) {
            if (batch.loader != 0 && batch.loader != rank.task) {
                of_epoch[batch.epoch].insert(batch.loader);
                all.insert(batch.loader);
                out.processes = out.processes || trace.tasks[batch.loader].process != trace.tasks[rank.task].process;
            }
        }
        for (const auto& [epoch, loaders] : of_epoch) {
            out.of_epoch = std::max<uint64_t>(out.of_epoch, loaders.size() + rank.idle_loaders);
        }
        if (!all.empty()) {
            out.at_once = std::max(out.at_once, most_at_once(trace, {all.begin(), all.end()}) + rank.idle_loaders);
        }
    }
    return out;
}

void finish_loop(const JobTrace& trace, TrainingLoop& loop) {
    count_epochs(trace, loop);
    for (RankLoop& rank : loop.ranks) {
        find_lags(trace, rank);
        count_idle(trace, rank);
    }
}

}  // namespace reprise

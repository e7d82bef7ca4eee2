// SPDX-License-Identifier: MIT
#include "fit/training_loop.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "formats/support/error.h"

namespace reprise {
namespace {

constexpr uint64_t kLeastSteps = 2;
constexpr uint64_t kLeastHandOvers = 8;  // where nothing is marked

class LoopFinder {
public:
    LoopFinder(const JobTrace& trace, const std::string& name) : trace_(trace), name_(name) {
        std::map<ProcessId, TaskId> most;  // that reads most in its process
        for (TaskId task = 1; task < trace.tasks.size(); ++task) {
            TaskId& reader = most[trace.tasks[task].process];
            if (trace.tasks[task].reads > (reader == 0 ? 0 : trace.tasks[reader].reads)) {
                reader = task;
            }
        }
        reader_of_process_ = std::move(most);
    }

    TrainingLoop find() {
        choose_ranks();
        for (const TaskId task : consumers_) {
            RankLoop rank;
            rank.task = task;
            for (const TraceOp& op : trace_.tasks[task].ops) {
                if (op.part == OpPart::mark && text(op) == "epoch" && op.phase != 0) {
                    (op.phase == 1 ? rank.epoch_begins : rank.epoch_ends).push_back(op.op);
                } else if (is_step_mark(op)) {
                    rank.step_ends.push_back(op.op);
                }
            }
            if (out_.by == TrainingLoop::By::accelerator) {
                rank.step_ends = device_runs(task);
            }
            take_batches(rank);
            number_batches(trace_, rank);
            if (!rank.batches.empty()) {
                out_.ranks.push_back(std::move(rank));
            }
        }
        if (out_.ranks.empty()) {
            refuse();
        }
        finish_loop(trace_, out_);
        return std::move(out_);
    }

private:
    std::string_view text(const TraceOp& op) const { return trace_.tables.strings[op.object]; }
    bool is_step_mark(const TraceOp& op) const {
        if (op.part != OpPart::mark) {
            return false;
        }
        return out_.by == TrainingLoop::By::batch_marks ? text(op) == "batch" && op.phase == 0
                                                        : text(op) == "step" && op.phase != 1;
    }

    [[noreturn]] void refuse() const {
        throw bad_input(
            name_,
            "no training loop is seen: no marks of steps or batches, no accelerator, and no task that waits for "
            "batches of others who read",
            "record a PyTorch job with `capture --torch`, or mark its steps (docs/markers.md); jobs of plain "
            "I/O go to `export --to fio`");
    }

    void choose_ranks() {
        std::map<TaskId, uint64_t> steps, batches;
        for (TaskId task = 1; task < trace_.tasks.size(); ++task) {
            for (const TraceOp& op : trace_.tasks[task].ops) {
                if (op.part == OpPart::mark) {
                    steps[task] += text(op) == "step" && op.phase != 1 ? 1 : 0;
                    batches[task] += text(op) == "batch" && op.phase == 0 ? 1 : 0;
                }
            }
        }
        const auto choose = [&](const std::map<TaskId, uint64_t>& found, uint64_t least) {
            uint64_t most = 0;
            for (const auto& [task, count] : found) {
                most = std::max(most, count);
            }
            for (const auto& [task, count] : found) {
                // A loop of another length is another one, for example of validation.
                if (count >= least && count * 2 > most) {
                    consumers_.push_back(task);
                }
            }
            return !consumers_.empty();
        };
        out_.by = TrainingLoop::By::batch_marks;
        if (choose(batches, kLeastSteps)) {
            return;
        }
        out_.by = TrainingLoop::By::step_marks;
        // Frameworks leave out the mark of an epoch's last step.
        std::map<TaskId, uint64_t> runs;
        uint64_t marked = 0, worked = 0;
        for (TaskId task = 1; task < trace_.tasks.size(); ++task) {
            runs[task] = device_runs(task).size();
            worked = std::max(worked, runs[task]);
            marked = std::max(marked, steps[task]);
        }
        if ((marked == 0 || (worked > marked && worked < marked * 2)) && choose(runs, kLeastSteps)) {
            out_.by = TrainingLoop::By::accelerator;
            return;
        }
        if (choose(steps, kLeastSteps)) {
            return;
        }
        out_.by = TrainingLoop::By::hand_overs;
        std::map<TaskId, uint64_t> hand_overs;
        for (TaskId task = 1; task < trace_.tasks.size(); ++task) {
            if (trace_.tasks[task].reads == 0) {
                hand_overs[task] = fresh_takes(task).size();
            }
        }
        if (!choose(hand_overs, kLeastHandOvers)) {
            refuse();
        }
    }

    /// The last op of each stretch of work for accelerators, between waits for others and reads of its own.
    std::vector<uint64_t> device_runs(TaskId task) const {
        std::vector<uint64_t> out;
        bool in_run = false;
        for (const TraceOp& op : trace_.tasks[task].ops) {
            if (op.part == OpPart::device) {
                if (!in_run && op.kind != OpKind::gpu_submit) {
                    continue;
                }
                in_run ? out.back() = op.op : out.emplace_back(op.op);
                in_run = true;
            } else if (op.part == OpPart::waits || op.part == OpPart::data || op.part == OpPart::saves) {
                in_run = false;
            }
        }
        return out;
    }

    /// Who reads for that task: itself, or the one of its process that reads most.
    TaskId reader_of(TaskId task) const {
        if (trace_.tasks[task].reads > 0) {
            return task;
        }
        const auto found = reader_of_process_.find(trace_.tasks[task].process);
        return found == reader_of_process_.end() ? 0 : found->second;
    }

    struct Take {
        uint64_t op = 0;
        TaskId loader = 0;
        uint64_t last = 0;  // of the loader's ops
    };

    /// Edges into the task from those who read, or did not read yet.
    std::vector<Take> takes_of(TaskId task) const {
        std::vector<Take> out;
        for (const TraceEdge& edge : trace_.tasks[task].edges) {
            const bool rank = std::find(consumers_.begin(), consumers_.end(), edge.source) != consumers_.end();
            if (edge.kind == EdgeKind::lifecycle || rank) {
                continue;
            }
            const TaskId reader = reader_of(edge.source);
            if (reader == 0 || reader == task) {
                continue;
            }
            uint64_t last = edge.source_op;
            if (reader != edge.source) {  // a thread that sends for it: as far as the reader is then
                const TraceTask& source = trace_.tasks[edge.source];
                const size_t at = std::min(source.at(edge.source_op), source.ops.empty() ? 0 : source.ops.size() - 1);
                if (source.ops.empty()) {
                    continue;
                }
                const TraceTask& of = trace_.tasks[reader];
                const auto after = std::partition_point(of.ops.begin(), of.ops.end(), [&](const TraceOp& each) {
                    return each.end() <= source.ops[at].end();
                });
                if (after == of.ops.begin()) {
                    continue;
                }
                last = std::prev(after)->op;
            }
            out.push_back({edge.op, reader, last});
        }
        return out;
    }

    /// Those after which the loader has read more than before.
    std::vector<Take> fresh_takes(TaskId task) const {
        std::vector<Take> out;
        std::unordered_map<TaskId, size_t> read;  // of its ops, so many seen
        for (const Take& take : takes_of(task)) {
            const TraceTask& of = trace_.tasks[take.loader];
            size_t& at = read[take.loader];
            const size_t end = of.at(take.last + 1);
            bool fresh = false;
            for (; at < end; ++at) {
                fresh = fresh || of.ops[at].part == OpPart::data;
            }
            if (fresh) {
                out.push_back(take);
            }
        }
        return out;
    }

    void take_batches(RankLoop& rank) {
        std::vector<Take> takes;
        switch (out_.by) {
            case TrainingLoop::By::hand_overs: takes = fresh_takes(rank.task); break;
            case TrainingLoop::By::batch_marks: {
                const std::set<uint64_t> marks(rank.step_ends.begin(), rank.step_ends.end());
                for (const Take& take : takes_of(rank.task)) {
                    if (marks.contains(take.op)) {
                        takes.push_back(take);
                    }
                }
                break;
            }
            case TrainingLoop::By::accelerator:
            case TrainingLoop::By::step_marks: {
                // The last one before each mark.
                size_t step = 0;
                for (const Take& take : takes_of(rank.task)) {
                    const size_t before = step;
                    while (step < rank.step_ends.size() && rank.step_ends[step] < take.op) {
                        ++step;
                    }
                    if (step == rank.step_ends.size()) {
                        break;
                    }
                    if (step == before && !takes.empty()) {
                        takes.back() = take;
                    } else {
                        takes.push_back(take);
                    }
                }
                break;
            }
        }
        if (takes.empty()) {
            return load_itself(rank);
        }
        std::unordered_map<TaskId, uint64_t> next;  // of each loader's ops
        for (const Take& take : takes) {
            BatchLoad& batch = rank.batches.emplace_back();
            batch.loader = take.loader;
            batch.first = next[take.loader];
            batch.last = take.last;
            next[take.loader] = std::max(next[take.loader], take.last + 1);
            batch.taken = take.op;
            batch.until = UINT64_MAX;
            if (rank.batches.size() > 1) {
                rank.batches[rank.batches.size() - 2].until = take.op;
            }
            if (std::find(rank.loaders.begin(), rank.loaders.end(), take.loader) == rank.loaders.end()) {
                rank.loaders.push_back(take.loader);
            }
        }
        if (out_.by == TrainingLoop::By::batch_marks || out_.by == TrainingLoop::By::hand_overs) {
            rank.step_ends.clear();
            for (const BatchLoad& batch : rank.batches) {
                rank.step_ends.push_back(batch.taken);
            }
        }
    }

    /// Without loaders: from the end of a step to the accelerator's work, or to the end of the mark `fetch`.
    void load_itself(RankLoop& rank) {
        const TraceTask& of = trace_.tasks[rank.task];
        uint64_t first = 0;
        for (const uint64_t end : rank.step_ends) {
            BatchLoad& batch = rank.batches.emplace_back();
            batch.loader = rank.task;
            batch.first = first;
            batch.last = end;
            for (size_t at = of.at(first); at < of.ops.size() && of.ops[at].op < end; ++at) {
                const TraceOp& op = of.ops[at];
                if (op.kind == OpKind::gpu_submit) {
                    batch.last = op.op == 0 ? 0 : op.op - 1;
                    break;
                }
                if (op.part == OpPart::mark && text(op) == "fetch" && op.phase == 2) {
                    batch.last = op.op;
                    break;
                }
            }
            batch.taken = batch.last;
            batch.until = end + 1;
            first = end + 1;
        }
        for (BatchLoad& batch : rank.batches) {
            size_t at = out_.by == TrainingLoop::By::accelerator ? of.at(batch.until) : of.ops.size();
            for (; at < of.ops.size() && (of.ops[at].part == OpPart::other || of.ops[at].part == OpPart::computes);
                 ++at) {
                batch.until = of.ops[at].op + 1;
            }
        }
        if (out_.by == TrainingLoop::By::batch_marks) {
            // A batch's mark begins its step.
            for (size_t i = 0; i < rank.batches.size(); ++i) {
                BatchLoad& batch = rank.batches[i];
                batch.taken = rank.step_ends[i];
                batch.until = i + 1 < rank.batches.size() ? rank.batches[i + 1].last : UINT64_MAX;
                const size_t to = of.at(batch.until);
                for (size_t at = of.at(batch.taken); at < to; ++at) {
                    if (of.ops[at].part == OpPart::data ||
                        (of.ops[at].part == OpPart::mark && text(of.ops[at]) == "fetch")) {
                        batch.until = of.ops[at].op;
                        break;
                    }
                }
            }
        }
    }

    const JobTrace& trace_;
    const std::string& name_;
    std::map<ProcessId, TaskId> reader_of_process_;
    std::vector<TaskId> consumers_;
    TrainingLoop out_;
};

}  // namespace

uint64_t TrainingLoop::batches() const {
    uint64_t out = 0;
    for (const RankLoop& rank : ranks) {
        out = std::max<uint64_t>(out, rank.batches.size());
    }
    return out;
}

uint64_t TrainingLoop::batches_per_epoch() const {
    uint64_t out = 0;
    for (const RankLoop& rank : ranks) {
        for (const BatchLoad& batch : rank.batches) {
            out = std::max(out, batch.number + 1);
        }
    }
    return out;
}

TrainingLoop find_training_loop(const JobTrace& trace, const std::string& name) {
    return LoopFinder(trace, name).find();
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "fit/training_loop.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "fit/hand_overs.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

constexpr uint64_t kLeastSteps = 2;
constexpr uint64_t kLeastHandOvers = 8;  // where nothing is marked
constexpr uint64_t kFewReads = 20;       // of them, a task that trains may do one itself: to see what samples are like

class LoopFinder {
public:
    LoopFinder(const JobTrace& trace, const std::string& name) : trace_(trace), name_(name), hands_(trace) {}

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
        if (!choose(count_hand_overs(), kLeastHandOvers)) {
            refuse();
        }
    }

    /// By who gets them; not those who pass them on.
    std::map<TaskId, uint64_t> count_hand_overs() const {
        uint64_t reads = 0;
        for (const TraceTask& task : trace_.tasks) {
            reads += task.reads;
        }
        std::map<TaskId, uint64_t> out;
        std::set<std::pair<TaskId, TaskId>> sends;  // for a loader, and to whom
        for (TaskId task = 1; task < trace_.tasks.size(); ++task) {
            if (trace_.tasks[task].reads * kFewReads > reads) {
                continue;
            }
            const std::vector<Take> takes = hands_.fresh(batches_of(task));
            out[task] = takes.size();
            for (const Take& take : takes) {
                if (take.source != take.loader) {
                    sends.emplace(take.source, task);
                }
            }
        }
        for (const auto& [source, task] : sends) {
            const auto found = out.find(source);
            if (found != out.end() && found->second <= out[task]) {
                found->second = 0;
            }
        }
        return out;
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

    std::vector<Take> edges_of(TaskId task) const { return hands_.edges(task, consumers_); }
    std::vector<Take> batches_of(TaskId task) const { return hands_.batches(task, edges_of(task)); }

    void take_batches(RankLoop& rank) {
        std::vector<Take> takes;
        switch (out_.by) {
            case TrainingLoop::By::hand_overs: takes = hands_.fresh(batches_of(rank.task)); break;
            case TrainingLoop::By::batch_marks: {
                const std::set<uint64_t> marks(rank.step_ends.begin(), rank.step_ends.end());
                for (const Take& take : edges_of(rank.task)) {
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
                for (const Take& take : batches_of(rank.task)) {
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
            batch.first = take.asked && out_.by == TrainingLoop::By::hand_overs ? take.first : next[take.loader];
            batch.last = take.last;
            out_.asked = out_.asked && take.asked;
            if (take.asked) {
                batch.asked_at = take.asked_at;
            }
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
    const HandOvers hands_;
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

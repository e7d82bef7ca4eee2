// SPDX-License-Identifier: MIT
#include "fit/saves.h"

#include <algorithm>
#include <map>

#include "fit/fitted_values.h"
#include "formats/support/quantity.h"

namespace reprise {
namespace {

/// What one task writes of a checkpoint.
struct Save {
    TaskId task = 0;
    uint64_t first = 0;  // op that writes
    int64_t begin = 0;   // ns
    int64_t bytes = 0;
    uint64_t step = 0;      // batches taken before, of the first rank
    uint64_t epochs = 0;    // that had ended
    bool at_epoch = false;  // no batch was taken since
};

class SaveFitter {
public:
    SaveFitter(const JobTrace& trace, const TrainingLoop& loop, FittedJob& job)
        : trace_(trace), loop_(loop), job_(job) {}

    SavesFit fit() {
        for (TaskId task = 1; task < trace_.tasks.size(); ++task) {
            collect(task);
        }
        if (saves_.empty()) {
            return out_;
        }
        for (Save& save : saves_) {
            place(save);
        }
        // One checkpoint: all that is written between the same two steps.
        std::map<uint64_t, int64_t> sizes;
        std::map<uint64_t, std::pair<uint64_t, bool>> epochs;
        bool by_rank = false, by_other = false;
        std::set<TaskId> writers;
        for (const Save& save : saves_) {
            sizes[save.step] += save.bytes;
            epochs[save.step] = {save.epochs, save.at_epoch};
            const bool rank = is_rank(save.task);
            by_rank = by_rank || rank;
            by_other = by_other || !rank;
            writers.insert(save.task);
            out_.steps.insert(save.step);
        }
        std::vector<int64_t> each;
        each.reserve(sizes.size());
        for (const auto& [step, bytes] : sizes) {
            each.push_back(bytes);
        }
        every(sizes, epochs);
        std::sort(each.begin(), each.end());
        const int64_t usual = each[(each.size() - 1) / 2];
        FittedWord& size =
            job_.add("checkpoint_size", job_quantity(static_cast<double>(usual), Distribution::Unit::bytes, true),
                     "of " + counted(each.size(), "checkpoint"));
        size.mean_error =
            static_cast<double>(each.back() - each.front()) / 2 / static_cast<double>(std::max<int64_t>(usual, 1));
        mode(by_rank, by_other, writers.size());
        pieces(usual);
        return out_;
    }

private:
    bool is_rank(TaskId task) const {
        return std::any_of(loop_.ranks.begin(), loop_.ranks.end(),
                           [&](const RankLoop& rank) { return rank.task == task; });
    }

    void collect(TaskId task) {
        std::map<FileId, size_t> open;  // in saves_, by the file that is written
        for (const TraceOp& op : trace_.tasks[task].ops) {
            if (op.part != OpPart::saves || op.file == 0) {
                continue;
            }
            const bool writes = info(op.kind).is(Trait::writes) && op.result > 0;
            if (writes) {
                const auto [found, added] = open.try_emplace(op.file, saves_.size());
                if (added) {
                    saves_.push_back({task, op.op, op.begin});
                }
                saves_[found->second].bytes += op.result;
                pieces_[op.size] += static_cast<double>(op.result);
            } else if (op.kind == OpKind::close) {
                open.erase(op.file);
            }
        }
    }

    void place(Save& save) {
        const RankLoop& rank = loop_.ranks.front();
        uint64_t limit = UINT64_MAX;  // ops of the rank that were before it
        const RankLoop* own = nullptr;
        for (const RankLoop& each : loop_.ranks) {
            own = each.task == save.task ? &each : own;
        }
        if (own != nullptr) {
            limit = save.first;
        } else {
            for (const TraceEdge& edge : trace_.tasks[save.task].edges) {
                if (edge.op < save.first && edge.source == rank.task) {
                    limit = edge.source_op + 1;
                    copy_ = edge.source_op;
                }
            }
        }
        const RankLoop& by = own != nullptr ? *own : rank;
        const auto before = [&](uint64_t op, int64_t begin) {
            return limit != UINT64_MAX ? op < limit : begin < save.begin;
        };
        uint64_t last = 0;
        for (const BatchLoad& batch : by.batches) {
            if (before(batch.taken, batch.taken_at)) {
                ++save.step;
                last = batch.taken;
            }
        }
        const TraceTask& task = trace_.tasks[by.task];
        for (const uint64_t end : by.epoch_ends) {
            const size_t at = task.at(end);
            if (at < task.ops.size() && before(end, task.ops[at].begin)) {
                ++save.epochs;
                save.at_epoch = end > last;
            }
        }
        if (own == nullptr && limit != UINT64_MAX) {
            const size_t at = task.at(copy_);
            if (at < task.ops.size() && task.ops[at].op == copy_ && task.ops[at].kind == OpKind::compute) {
                out_.copies.emplace(by.task, copy_);
                copies_.push_back(task.ops[at].duration);
            }
        }
    }

    void every(const std::map<uint64_t, int64_t>& sizes, const std::map<uint64_t, std::pair<uint64_t, bool>>& epochs) {
        const bool by_epoch =
            std::all_of(epochs.begin(), epochs.end(), [](const auto& each) { return each.second.second; });
        std::vector<uint64_t> at;
        at.reserve(sizes.size());
        for (const auto& [step, bytes] : sizes) {
            at.push_back(by_epoch ? epochs.at(step).first : step);
        }
        const uint64_t first = std::max<uint64_t>(at.front(), 1);
        bool regular = true;
        for (size_t i = 0; i < at.size(); ++i) {
            regular = regular && at[i] == first * (i + 1);
        }
        uint64_t period = first;
        if (!regular && at.size() > 1) {
            std::vector<uint64_t> gaps;
            gaps.reserve(at.size());
            for (size_t i = 1; i < at.size(); ++i) {
                gaps.push_back(at[i] - at[i - 1]);
            }
            std::sort(gaps.begin(), gaps.end());
            period = std::max<uint64_t>(gaps[(gaps.size() - 1) / 2], 1);
        }
        const std::string unit = by_epoch ? "epoch" : "step";
        job_.add("checkpoint_every",
                 std::to_string(period) + (!by_epoch     ? ""
                                           : period == 1 ? "epoch"
                                                         : "epochs"),
                 "saved after " + unit + " " + std::to_string(at.front()) +
                     (at.size() > 1 ? ", " + std::to_string(at[1]) : "") + (at.size() > 2 ? " ..." : ""));
        if (!regular) {
            job_.cannot_see("checkpoint_every", "checkpoints do not come after a fixed number of steps or epochs");
        }
    }

    void mode(bool by_rank, bool by_other, size_t writers) {
        if (by_other && !by_rank) {
            job_.add("checkpoint_mode", "async", "a thread beside the ranks writes them");
            if (copies_.empty()) {
                job_.add("checkpoint_copy", "0", "no copy is seen");
            } else {
                std::sort(copies_.begin(), copies_.end());
                const auto usual = static_cast<double>(copies_[(copies_.size() - 1) / 2]);
                job_.add("checkpoint_copy", job_quantity(usual, Distribution::Unit::seconds, true),
                         "what the rank computes before the thread begins");
            }
            return;
        }
        const bool sharded = writers > 1;
        job_.add("checkpoint_mode", sharded ? "sharded" : "blocking",
                 sharded ? counted(writers, "rank") + " write them" : "the first rank writes them");
        if (loop_.ranks.size() == 1) {
            job_.cannot_see("checkpoint_mode", "one rank blocks as one that writes its only part does");
        }
    }

    void pieces(int64_t size) {
        const auto most = std::max_element(pieces_.begin(), pieces_.end(),
                                           [](const auto& x, const auto& y) { return x.second < y.second; });
        job_.add(
            "checkpoint_bs",
            job_quantity(static_cast<double>(std::max<int64_t>(most->first, 512)), Distribution::Unit::bytes, true),
            "the size that most bytes are written with");
        if (most->first >= size / static_cast<int64_t>(std::max<size_t>(loop_.ranks.size(), 1))) {
            job_.cannot_see("checkpoint_bs", "a checkpoint is one write");
        }
    }

    const JobTrace& trace_;
    const TrainingLoop& loop_;
    FittedJob& job_;
    std::vector<Save> saves_;
    std::map<int64_t, double> pieces_;
    std::vector<int64_t> copies_;
    uint64_t copy_ = 0;
    SavesFit out_;
};

}  // namespace

SavesFit fit_saves(const JobTrace& trace, const TrainingLoop& loop, FittedJob& job) {
    return SaveFitter(trace, loop, job).fit();
}

}  // namespace reprise

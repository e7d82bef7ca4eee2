// SPDX-License-Identifier: MIT
#include "fit/steps_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "fit/fitted_values.h"
#include "formats/support/percentile.h"
#include "formats/support/quantity.h"

namespace reprise {
namespace {

constexpr double kMostly = 0.9;
constexpr uint64_t kPrefetchUsual = 2;  // of a loader that says nothing else

class StepFitter {
public:
    StepFitter(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, const DataSetFit& set,
               const SavesFit& saves, FittedJob& job)
        : trace_(trace),
          loop_(loop),
          loaded_(loaded),
          set_(set),
          saves_(saves),
          job_(job),
          loaders_(count_loaders(trace, loop)) {
        for (const TraceTask& task : trace.tasks) {
            nobody_computes_ =
                nobody_computes_ && std::none_of(task.ops.begin(), task.ops.end(),
                                                 [](const TraceOp& op) { return op.kind == OpKind::compute; });
        }
    }

    void fit() {
        find_devices();
        const uint64_t ranks = loop_.ranks.size(), gpus = std::max<uint64_t>(each_gpus_, 1) * ranks;
        if (loaded_.format != SampleFormat::none) {
            batch();
            loaders();
            decode();
        }
        job_.add("gpus", std::to_string(gpus), each_gpus_ == 0 ? "one for each rank" : "devices that work is given to");
        job_.add("ranks", std::to_string(ranks), "processes with a training loop");
        compute();
        sync();
        passes(gpus);
    }

private:
    bool trains() const { return loaded_.format != SampleFormat::none; }

    void find_devices() {
        for (const RankLoop& rank : loop_.ranks) {
            std::set<int64_t> devices;
            for (const TraceOp& op : trace_.tasks[rank.task].ops) {
                if (op.kind == OpKind::gpu_submit) {
                    devices.insert(op.result);
                }
            }
            each_gpus_ = std::max<uint64_t>(each_gpus_, devices.size());
        }
    }

    void batch() {
        const uint64_t each = std::max<uint64_t>(set_.each, 1), gpus = std::max<uint64_t>(each_gpus_, 1);
        std::string evidence = counted(loop_.batches(), "batch", "batches");
        char share[48];
        std::snprintf(share, sizeof share, ", %.3g %% of them as large", 100 * loaded_.each_share);
        evidence += loaded_.each_share > 0 && loaded_.each_share < 1 ? share : "";
        job_.add("batch", std::to_string(std::max<uint64_t>(each / gpus, 1)), evidence);
        if (loaded_.uneven || (loaded_.each == 0 && !set_.batch_is_sample && (trace_.every_touch || !trace_.maps))) {
            job_.cannot_see("batch", "batches are not equally large");
        }
        if (each % gpus != 0) {
            job_.cannot_see("batch", "a rank's batches cannot be shared by its accelerators evenly");
        }
    }

    void loaders() {
        const uint64_t many = loaders_.workers();
        job_.add("loader_workers", std::to_string(many),
                 many == 0 ? "the rank itself reads" : "tasks that read the batches of a rank");
        if (many == 0) {
            return job_.cannot_see("prefetch", "nobody loads ahead");
        }
        if (loaders_.of_epoch != loaders_.at_once) {
            job_.cannot_see("loader_workers", counted(loaders_.of_epoch, "task") + " had batches of one epoch, and " +
                                                  std::to_string(loaders_.at_once) + " were there at once");
        } else if (loaders_.processes && loop_.batches_per_epoch() <= many) {
            job_.cannot_see("loader_workers", "an epoch has no more batches: some may have had none");
        }
        prefetch(many);
    }

    /// How many batches loaders had been asked for when the first of an epoch was taken.
    std::vector<uint64_t> asked_ahead() const {
        std::vector<uint64_t> out;
        for (const RankLoop& rank : loop_.ranks) {
            int64_t first_taken = 0;
            for (const BatchLoad& batch : rank.batches) {
                if (!batch.asked_at) {
                    return {};
                }
                if (batch.number == 0) {
                    first_taken = batch.taken_at;
                    out.push_back(0);
                }
                out.back() += *batch.asked_at < first_taken ? 1 : 0;
            }
        }
        return out;
    }

    void prefetch(uint64_t many) {
        std::vector<uint64_t> lags, ahead, held;  // held: began when one was taken, idle until then
        for (const RankLoop& rank : loop_.ranks) {
            std::map<uint32_t, std::vector<int64_t>> taken;
            for (const BatchLoad& batch : rank.batches) {
                taken[batch.epoch].push_back(batch.taken_at);
            }
            std::map<TaskId, int64_t> free_at;
            for (const BatchLoad& batch : rank.batches) {
                if (batch.lag) {
                    lags.push_back(*batch.lag);
                }
                const std::vector<int64_t>& of = taken[batch.epoch];
                const auto before =
                    static_cast<uint64_t>(std::upper_bound(of.begin(), of.end(), batch.begins) - of.begin());
                ahead.push_back(batch.number + 1 > before ? batch.number + 1 - before : 0);
                const auto idle = free_at.find(batch.loader);
                if (before > 0 && idle != free_at.end() && idle->second < of[before - 1]) {
                    held.push_back(ahead.back());
                }
                const TraceTask& loader = trace_.tasks[batch.loader];
                const size_t last = loader.at(batch.last);
                free_at[batch.loader] = last < loader.ops.size() ? loader.ops[last].end() : batch.begins;
            }
        }
        const auto [lag, share] = LoadedSamples::usual(lags);
        if (!lags.empty() && share >= kMostly && lag % many == 0) {
            job_.add("prefetch", std::to_string(lag / many),
                     counted(lags.size(), "batch", "batches") + " began when one " + std::to_string(lag) +
                         " before was taken");
            return;
        }
        if (const auto [first, share_of_epochs] = LoadedSamples::usual(asked_ahead());
            first > 0 && share_of_epochs >= kMostly && first % many == 0 && first < loop_.batches_per_epoch()) {
            job_.add("prefetch", std::to_string(first / many),
                     counted(first, "batch", "batches") + " are asked for before the first is taken");
            return;
        }
        const uint64_t most = ahead.empty() ? 0 : *std::max_element(ahead.begin(), ahead.end());
        const auto full = static_cast<uint64_t>(std::count(held.begin(), held.end(), most));
        const uint64_t least = (most + many - 1) / many;
        const bool seen =
            most % many == 0 && full >= 3 && full * 20 >= ahead.size() && most < loop_.batches_per_epoch();
        job_.add("prefetch", std::to_string(seen ? least : std::max(least, kPrefetchUsual)),
                 "loaders are at most " + counted(most, "batch", "batches") + " ahead, " + counted(full, "time"));
        if (!seen) {
            job_.cannot_see("prefetch", "the queue was never full");
        }
    }

    /// Of a loader's work between its calls: for each sample, where the calls tell samples apart.
    void decode() {
        std::vector<double> values;
        const bool apart = !is_stream(loaded_.format) && loaded_.each > 0;
        for (const BatchSamples& batch : loaded_.batches) {
            if (apart && nobody_computes_) {
                add_gaps(batch, values);
            } else if (loaded_.computes_are_samples && batch.computes.size() == loaded_.each) {
                values.insert(values.end(), batch.computes.begin(), batch.computes.end());
            } else if (apart && !batch.accesses.empty()) {
                size_t at = 0;
                for (size_t i = 0; i < batch.accesses.size(); ++i) {
                    double sum = 0;
                    const size_t until = i + 1 < batch.accesses.size() ? batch.accesses[i + 1].first : SIZE_MAX;
                    for (; at < batch.computes.size() && batch.compute_ops[at] < until; ++at) {
                        sum += static_cast<double>(batch.computes[at]);
                    }
                    values.push_back(sum);
                }
            } else if (!apart) {
                const double sum = std::accumulate(batch.computes.begin(), batch.computes.end(), 0.0);
                values.push_back(sum / static_cast<double>(std::max<uint64_t>(set_.each, 1)));
            }
        }
        const uint64_t many = values.size();
        const FittedValues fitted = fit_values(std::move(values), 0, Distribution::Unit::seconds);
        computes_alone_ = fitted.distribution.mean() > 0;
        FittedWord& word = drawn("decode", fitted,
                                 counted(many, apart || loaded_.computes_are_samples ? "sample" : "batch",
                                         apart || loaded_.computes_are_samples ? "" : "batches"));
        if (apart && nobody_computes_ && fitted.distribution.mean() > 0) {
            job_.cannot_see("decode", "the log does not tell computing from waiting: it is the time between calls");
        }
        if (!apart && !loaded_.computes_are_samples && fitted.distribution.varies()) {
            word.evidence += ", each over its samples";
            job_.cannot_see("decode", "its deviation: only that of whole batches is seen");
        }
    }

    /// Time between the calls of a loader, from the read of each sample to that of the next.
    void add_gaps(const BatchSamples& batch, std::vector<double>& values) const {
        const BatchLoad& load = loop_.ranks[batch.rank].batches[batch.batch];
        const std::vector<TraceOp>& ops = trace_.tasks[load.loader].ops;
        for (size_t i = 0; i < batch.accesses.size(); ++i) {
            const bool last = i + 1 == batch.accesses.size();
            int64_t sum = 0;
            for (size_t at = batch.accesses[i].first; at + 1 < ops.size(); ++at) {
                if (last ? ops[at + 1].op > load.last : at >= batch.accesses[i + 1].first) {
                    break;
                }
                sum += std::max<int64_t>(ops[at + 1].begin - ops[at].end(), 0);
            }
            values.push_back(static_cast<double>(sum));
        }
    }

    FittedWord& drawn(const char* name, const FittedValues& fitted, std::string evidence) {
        if (fitted.distribution.varies() && (!fitted.fits || !fitted.kind_sure)) {
            evidence += !fitted.fits ? "; no kind of distribution fits well"
                                     : "; another kind of distribution would fit as well";
        }
        FittedWord& word = job_.add(name, fitted.distribution.text, std::move(evidence));
        word.mean_error = fitted.mean_error;
        word.deviation_error = fitted.deviation_error;
        word.ks = fitted.distribution.varies() ? fitted.ks : -1;
        return word;
    }

    void compute() {
        std::vector<double> busy, longest, own, computed, worked, beside;
        for (const RankLoop& rank : loop_.ranks) {
            const TraceTask& task = trace_.tasks[rank.task];
            for (size_t i = 0; i < rank.batches.size(); ++i) {
                const BatchLoad& batch = rank.batches[i];
                std::map<int64_t, double> devices;
                // All time but what it waits for others: also that in which it could have run, which is no work of an
                // op.
                int64_t end = batch.taken_at, waits = 0, works = 0, computes = 0, sleeps = 0;
                bool saves = false;
                for (size_t at = task.at(batch.taken + 1); at < task.ops.size() && task.ops[at].op < batch.until;
                     ++at) {
                    const TraceOp& op = task.ops[at];
                    saves = saves || op.part == OpPart::saves;
                    if (op.kind == OpKind::gpu_submit) {
                        devices[op.result] += static_cast<double>(op.size);
                    }
                    if (op.part == OpPart::waits || saves_.copies.contains({rank.task, op.op})) {
                        waits += op.duration;
                    } else if (op.kind == OpKind::compute) {
                        computes += op.duration;
                    } else if (op.part == OpPart::computes) {
                        sleeps += op.duration;
                    } else if (op.part == OpPart::other) {
                        works += op.duration;
                    }
                    end = std::max(end, op.end());
                }
                const auto work = static_cast<double>(std::max<int64_t>(end - batch.taken_at - waits, 0));
                const bool last = i + 1 == rank.batches.size() || rank.batches[i + 1].epoch != batch.epoch;
                // Benchmarks sleep in place of an accelerator.
                double most = each_gpus_ == 0 ? static_cast<double>(sleeps) : 0;
                for (const auto& [device, ns] : devices) {
                    busy.push_back(ns);
                    most = std::max(most, ns);
                }
                // What comes after the last batch is the end of the epoch.
                if (!saves && (each_gpus_ > 0 || !last)) {
                    longest.push_back(most);
                    own.push_back(work);
                    beside.push_back(std::max(work - most, 0.0));
                    computed.push_back(static_cast<double>(computes));
                    worked.push_back(static_cast<double>(computes + works));
                }
            }
        }
        const double host = median(own), device = median(longest);
        constexpr double kSlower = 1.005, kSome = 20'000, kMostlySleeps = 0.3;
        const bool sleeps = each_gpus_ == 0 && device > kMostlySleeps * host;
        if (sleeps) {
            busy = longest;
        }
        const bool by_host = each_gpus_ == 0 && !sleeps;
        // A model without an accelerator: what it had to wait for a processor is not its work.
        constexpr double kMostlyComputes = 0.3;
        if (by_host && host > 0 && median(computed) > kMostlyComputes * host) {
            job_.add("compute_on", "processor", "the ranks themselves compute");
            own = worked;
        } else if (each_gpus_ == 0) {
            job_.cannot_see("gpus", "no accelerator is in the log: one for each rank");
        }
        if (each_gpus_ == 0 && trains() && loaders_.workers() == 0 && computes_alone_) {
            job_.cannot_see("compute", "the rank itself loads, and nothing tells its steps from decode=");
        }
        const uint64_t many = by_host ? own.size() : busy.size();
        if (each_gpus_ == 0 && trains() && host <= 0) {
            job_.cannot_see("batch", "as gpus=: those of a rank share its batches");
        }
        drawn("compute", fit_values(by_host ? own : busy, 0, Distribution::Unit::seconds),
              counted(many, "step") + (sleeps          ? " that the rank sleeps, as for an accelerator"
                                       : !by_host      ? " of an accelerator"
                                       : own == worked ? " of the rank's own work"
                                                       : ", all but the rank's waits"));
        if (!by_host && host > kSlower * device + kSome) {
            drawn("overhead", fit_values(beside, 0, Distribution::Unit::seconds),
                  counted(beside.size(), "step") + ": what the rank takes beyond " +
                      (sleeps ? "its sleep" : "its accelerator's work"));
        }
    }

    void sync() {
        if (loop_.ranks.size() < 2) {
            return;
        }
        const TraceTask& first = trace_.tasks[loop_.ranks.front().task];
        uint64_t steps = 0, epochs = 0;
        std::set<uint64_t> seen;
        for (const TraceEdge& edge : first.edges) {
            const bool rank = std::any_of(loop_.ranks.begin() + 1, loop_.ranks.end(),
                                          [&](const RankLoop& each) { return each.task == edge.source; });
            const size_t at = first.at(edge.op);
            if (!rank || at == 0 || !seen.insert(edge.op).second) {
                continue;
            }
            const TraceOp& before = first.ops[at - 1];
            const std::string_view name = before.part == OpPart::mark ? trace_.tables.strings[before.object] : "";
            epochs += name == "epoch" ? 1 : 0;
            steps += name != "epoch" && before.part != OpPart::saves ? 1 : 0;
        }
        const bool by_step = steps * 2 >= loop_.batches();
        job_.add(
            "sync",
            by_step      ? "step"
            : epochs > 0 ? "epoch"
                         : "none",
            "the first rank waits for others after " + counted(steps, "step") + " and " + counted(epochs, "epoch"));
    }

    void passes(uint64_t gpus) {
        const uint64_t steps = loop_.batches();
        const bool none = !trains();
        const FittedWord* const size = job_.find("batch");
        const uint64_t batch = size == nullptr ? 1 : std::stoull(size->value);
        FittedWord* samples = nullptr;
        for (FittedWord& word : job_.words) {
            samples = word.word == "samples" ? &word : samples;
        }
        if (none) {
            job_.add("steps", std::to_string(steps), "marks");
            return;
        }
        const uint64_t epochs = loop_.epochs, per_step = batch * gpus;
        if (loop_.by == TrainingLoop::By::hand_overs && !loop_.asked && (loaded_.uneven || loaded_.each == 0)) {
            job_.cannot_see("steps", "nothing marks them, and the batches that are handed over cannot be told apart");
        }
        uint64_t each = set_.samples / per_step;
        if (each < loop_.batches_per_epoch() && samples != nullptr && !job_.sees("samples")) {
            each = loop_.batches_per_epoch();
            samples->value = std::to_string(each * per_step);
        }
        if (each == 0) {  // less than a batch
            samples->value = std::to_string(per_step);
            each = 1;
        }
        job_.add("epochs", std::to_string(epochs), loop_.epochs_marked ? "marks" : "how often samples are read");
        if (steps < each * epochs) {
            job_.add("steps", std::to_string(steps), "the last epoch is not complete");
        } else if (loop_.batches_per_epoch() > each) {
            job_.notes.push_back("an epoch of the recording has " + counted(loop_.batches_per_epoch(), "step") +
                                 ", of the job " + std::to_string(each) + ": it makes full batches only");
            save_as_often(each);
        }
    }

    /// Checkpoints lie as many samples apart: of shorter epochs, fewer steps.
    void save_as_often(uint64_t each) {
        bool changed = false;
        for (FittedWord& word : job_.words) {
            const bool steps =
                word.word == "checkpoint_every" && word.value.find_first_not_of("0123456789") == std::string::npos;
            if (steps) {
                const double share = static_cast<double>(each) / static_cast<double>(loop_.batches_per_epoch());
                const double period = std::round(std::stod(word.value) * share);
                word.value = std::to_string(static_cast<uint64_t>(std::max(period, 1.0)));
                changed = true;
            }
        }
        if (changed) {
            job_.cannot_see("checkpoint_every", "an epoch of the recording has more steps than one of the job");
        }
    }

    const JobTrace& trace_;
    const TrainingLoop& loop_;
    const LoadedSamples& loaded_;
    const DataSetFit& set_;
    const SavesFit& saves_;
    FittedJob& job_;
    const LoaderCount loaders_;
    uint64_t each_gpus_ = 0;       // of a rank
    bool computes_alone_ = false;  // whoever loads computes, too
    bool nobody_computes_ = true;  // as in logs of calls alone, which do not tell computing from waiting
};

}  // namespace

void fit_steps(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, const DataSetFit& set,
               const SavesFit& saves, FittedJob& job) {
    StepFitter(trace, loop, loaded, set, saves, job).fit();
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/cluster/job_profile.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "formats/support/error.h"
#include "replay/plan/edges_rules.h"
#include "replay/predict/op_watcher.h"
#include "transform/copies_steps.h"

namespace reprise {
namespace {

constexpr int kManyCpus = 8192;
constexpr int kManyChannels = 4096;

class ProfileMaker : public OpWatcher {
public:
    ProfileMaker(const Plan& plan, const AcceleratorSteps& steps, JobProfile& out)
        : plan_(plan), steps_(steps), out_(out), tasks_(plan.tasks.size()) {
        out_.tasks.resize(plan.tasks.size() - 1);
        for (TaskId id = 1; id < plan.tasks.size(); ++id) {
            out_.tasks[id - 1].process = plan.tasks[id].process;
        }
    }

    void started(TaskId task, TaskId by) override {
        if (by == 0) {
            out_.tasks[task - 1].at_start = true;
        } else {
            tasks_[by].spawned.push_back(task - 1);
        }
    }

    void ended(const WatchedOp& op) override {
        Task& task = tasks_[op.task];
        const OpBlock& b = op.block;
        const auto kind = static_cast<OpKind>(b.kind[op.i]);
        const uint64_t number = b.first + op.i;
        const auto& sources = plan_.tasks[op.task].sources;
        const bool tells =
            tells_others(kind, b.arg[op.i]) && std::binary_search(sources.begin(), sources.end(), number);
        const bool accelerator = info(kind).is(Trait::accelerator);
        if (task.closed || op.waits != task.waits || !task.spawned.empty() || tells || accelerator) {
            open(op, tells);
        } else {
            segment(op.task).own_ns += static_cast<double>(op.think_ns);
        }
        add(op, kind);
        const auto& last = steps_.last_waits(op.task);
        Segment& now = segment(op.task);
        now.step_end = std::binary_search(last.begin(), last.end(), number);
        now.published = task.published;
        task.closed = accelerator || now.step_end || tells;
    }

    void published(TaskId task, uint32_t count, bool begins) override {
        tasks_[task].published = count;
        if (begins) {
            return;  // its segment is not there yet
        }
        auto& segments = out_.tasks[task - 1].segments;
        if (segments.empty()) {
            segments.emplace_back();
        }
        segments.back().published = count;
        tasks_[task].closed = true;
    }

    double unsynced() const { return unsynced_; }

private:
    struct Task {
        bool closed = true;
        size_t waits = 0;
        uint32_t published = 0;
        std::vector<uint32_t> spawned;
    };

    Segment& segment(TaskId task) { return out_.tasks[task - 1].segments.back(); }

    void open(const WatchedOp& op, bool tells) {
        Task& task = tasks_[op.task];
        Segment& next = out_.tasks[op.task - 1].segments.emplace_back();
        next.lead_ns = op.think_ns;
        next.inside = op.inside;
        next.publishes_first = tells;
        next.first_wait = static_cast<uint32_t>(out_.waits.size());
        const auto& waits = plan_.tasks[op.task].waits;
        for (; task.waits < op.waits; ++task.waits) {
            out_.waits.push_back({waits[task.waits].task - 1, waits[task.waits].count});
        }
        next.waits = static_cast<uint32_t>(out_.waits.size()) - next.first_wait;
        next.first_start = static_cast<uint32_t>(out_.starts.size());
        next.starts = static_cast<uint32_t>(task.spawned.size());
        out_.starts.insert(out_.starts.end(), task.spawned.begin(), task.spawned.end());
        task.spawned.clear();
    }

    void add(const WatchedOp& op, OpKind kind) {
        Segment& to = segment(op.task);
        const auto took = static_cast<double>(op.took_ns);
        const OpInfo& row = info(kind);
        if (row.is(Trait::accelerator)) {
            to.stream = static_cast<int32_t>(op.stream);
            to.drain = op.role == CausalRole::drain;
            to.busy_ns = op.busy_ns;
        }
        const bool call = op.role == CausalRole::call;
        if (call && row.is(Trait::writes)) {
            unsynced_ += static_cast<double>(std::max<int64_t>(op.block.result[op.i], 0));
        }
        if (op.compute_ns != 0) {
            to.compute_ns += took;
        } else if (op.fetches != 0) {
            to.fetch_ns += took;
            to.fetch_requests += static_cast<double>(op.fetches);
            to.fetch_bytes += static_cast<double>(op.fetched);
        } else if (call && row.is(Trait::syncs)) {
            to.sync_ns += took;
            to.sync_bytes += std::exchange(unsynced_, 0);
        } else {
            (call && row.is(Trait::writes) ? to.write_ns : to.own_ns) += took;
        }
        out_.writes = out_.writes || to.write_ns > 0 || to.sync_ns > 0;
        to.names += call && (row.is(Trait::path) || kind == OpKind::getdents) ? 1 : 0;
    }

    const Plan& plan_;
    const AcceleratorSteps& steps_;
    JobProfile& out_;
    std::vector<Task> tasks_;
    double unsynced_ = 0;
};

/// Segments that do the same kind of work may stand for each other, as another copy of the job has other samples.
void find_alike(JobProfile& profile) {
    using Kind = std::tuple<bool, bool, bool, bool, int32_t>;
    std::map<Kind, uint32_t> numbers;
    for (ProfiledTask& task : profile.tasks) {
        bool first = true;  // warms up: no other step is like it
        for (Segment& s : task.segments) {
            if (s.busy_ns == 0 && s.fetch_ns == 0 && s.compute_ns == 0) {
                continue;
            }
            if (s.busy_ns != 0 && std::exchange(first, false)) {
                continue;
            }
            const Kind kind{s.busy_ns != 0, s.fetch_ns != 0, s.compute_ns != 0, s.sync_ns != 0, s.stream};
            s.alike = numbers.try_emplace(kind, static_cast<uint32_t>(numbers.size() + 1)).first->second;
        }
    }
}

}  // namespace

size_t JobProfile::segments() const {
    size_t all = 0;
    for (const ProfiledTask& task : tasks) {
        all += task.segments.size();
    }
    return all;
}

StorageModel without_limits(const StorageModel& model) {
    StorageModel out = model;
    out.read_bytes_per_s = out.reads_per_s = 0;
    out.read_burst_ns = out.read_step_ns = 0;
    out.read_depth.clear();
    out.parallelism = kManyChannels;
    return out;
}

JobProfile profile_job(const LogReader& log, const Predictor& predictor, PredictOptions how) {
    const Plan& plan = predictor.plan();
    if (plan.streams.empty()) {
        throw bad_input(log.path().string(), "the log has no accelerator, so that there is none to have more of",
                        "record with marks of the accelerator, or graft a profile onto it (reprise help graft)");
    }
    if (!plan.rings.empty()) {
        throw bad_input(log.path().string(),
                        "the job makes asynchronous requests (io_uring, libaio), which predict --hosts cannot simulate",
                        "predict it op by op, without --hosts");
    }
    JobProfile out;
    const AcceleratorSteps steps(log);
    out.accelerators = static_cast<uint32_t>(steps.devices().size());
    out.streams = static_cast<uint32_t>(plan.streams.size());
    ProfileMaker maker(plan, steps, out);
    how.storage = without_limits(how.storage);
    how.cpus = kManyCpus;
    how.watcher = &maker;
    out.alone = predictor.run(how);
    out.unsynced_bytes = maker.unsynced();
    out.locks = plan.guard_locks;
    out.broken = out.alone.broken.size();
    find_alike(out);
    return out;
}

}  // namespace reprise

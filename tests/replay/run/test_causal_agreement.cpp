// SPDX-License-Identifier: MIT
// Pace causal in its three places: random jobs whose instants in the run, in what the collector makes of it and in the
// prediction are compared to the nanosecond.
#include <doctest/doctest.h>

#include <random>

#include "tests/replay/run/owned_clock.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// When the last source that op `op` of a task waits for let others go on; INT64_MIN: it waits for none.
int64_t released_at(const Plan& plan, SharedRun& run, TaskId task, uint64_t op) {
    int64_t last = INT64_MIN;
    for (const WaitFor& edge : plan.tasks[task].waits) {
        if (edge.op != op) {
            continue;
        }
        const SpoolRow& row = run.spool(plan.tasks[edge.task].spool_first)[edge.source];
        if ((row.begin & kNotPerformed) == 0) {
            const uint64_t at = (row.begin & kReleasedEarly) != 0 ? row.begin & kSpoolTicks : row.end;
            last = std::max(last, static_cast<int64_t>(at));
        }
    }
    return last;
}

/// The run's pace where tasks run one after the other: a task that gets to an op before its sources were done waits.
class AgreeingPace : public CausalPace<OwnedClock> {
public:
    AgreeingPace(const Plan& plan, SharedRun& run, TaskId task, const Speeds& speeds)
        : CausalPace(plan, run, task, speeds),
          plan_(plan),
          run_(run),
          task_(task),
          explained_(plan.tasks[task].explained) {}

    bool due(const OpBlock& b, size_t i) {
        if (!waits_inside(static_cast<OpKind>(b.kind[i]), explained_.at(b.first + i))) {
            if (const int64_t at = released_at(plan_, run_, task_, b.first + i); at > OwnedClock::now) {
                OwnedClock::now = at;
                sys::call_ticks.reset();
                released();
            }
        }
        const bool performed = CausalPace::due(b, i);
        late += performed ? lag_ns() : 0;
        return performed;
    }
    int64_t late = 0;  // of all ops

private:
    const Plan& plan_;
    SharedRun& run_;
    TaskId task_;
    ExplainedCursor explained_;
};

/// Waits that hold inside an op last until its sources are done.
class AgreeingEngine : public OwnedEngine {
public:
    AgreeingEngine(const Plan& plan, VirtualCalls& calls, SharedRun& run, TaskId task)
        : OwnedEngine(plan, calls, false),
          plan_(plan),
          run_(run),
          task_(task),
          explained_(plan.tasks[task].explained) {}
    int64_t submit(const OpBlock& b, size_t i) {
        if (waits_inside(static_cast<OpKind>(b.kind[i]), explained_.at(b.first + i))) {
            OwnedClock::now = std::max(OwnedClock::now, released_at(plan_, run_, task_, b.first + i));
        }
        return OwnedEngine::submit(b, i);
    }

private:
    const Plan& plan_;
    SharedRun& run_;
    TaskId task_;
    ExplainedCursor explained_;
};

/// Three tasks, each of which waits for those before it.
class RandomJob {
public:
    explicit RandomJob(unsigned seed) : random_(seed) {
        if (seed % 2 == 1) {
            job_.writer().header().source = "capture";
            job_.writer().header().extra["capture.call_gap_ns"] = "300";
        } else if (seed % 4 == 2) {
            job_.writer().header().source = "generate";
        }
        program_ = job_.file("/usr/lib/left.out", Origin::existed, Role::program);
        const ProcessId process = job_.process();
        for (int i = 0; i < 3; ++i) {
            tasks_.push_back({job_.task(process), 1'000 * kUs + below(50) * kUs, {}, {}});
        }
        for (int i = 0; i < 240; ++i) {
            add(static_cast<size_t>(std::min_element(tasks_.begin(), tasks_.end(),
                                                     [](const Row& a, const Row& b) { return a.now < b.now; }) -
                                    tasks_.begin()));
        }
        storage_.read = {{4096, 0}};
        storage_.read_bytes_per_s = storage_.write_bytes_per_s = storage_.cached_bytes_per_s = 1e15;
        storage_.stat_ns = 130 * kUs;  // most take longer than recorded, so that tasks wait
        filter_ = OpFilter::from_words({}, {});
    }

    /// Runs, collects and predicts it.
    void check(const Speeds& speeds, int cpus, int64_t late) {
        const LogReader log = job_.finish();
        const Plan plan = make_plan(log, filter_, PathMap{});
        SharedRun run(plan.tasks.size(), plan.processes.size(), std::max<size_t>(plan.streams.size(), 1), 0,
                      plan.tasks.back().spool_first + plan.tasks.back().ops, SIZE_MAX, {});
        constexpr int64_t kStart = OwnedJob::kStart;
        run.control().start_ns = kStart;
        OwnedClock::elsewhere = 0;
        OwnedClock::late = late;
        VirtualCalls calls(plan, storage_, false);
        int64_t lateness = 0;
        for (const Row& row : tasks_) {
            AgreeingEngine engine(plan, calls, run, row.task);
            AgreeingPace pace(plan, run, row.task, speeds);
            OwnedClock::now = kStart;
            sys::call_ticks.reset();
            TaskLoop<AgreeingEngine, AgreeingPace> loop(plan, run, row.task, engine, pace, nullptr, 0);
            OpBlock block;
            for (const BlockInfo& where : plan.tasks[row.task].blocks) {
                plan.log->decode(where, block);
                REQUIRE(loop.block(block));
            }
            publish_end(plan, run, row.task);
            sys::call_ticks = {};
            lateness += pace.late;
        }
        OwnedClock::late = 0;
        TickTimeline clock;
        clock.add({static_cast<uint64_t>(kStart), kStart});
        clock.add({static_cast<uint64_t>(2 * kStart), 2 * kStart});
        ReplayOptions options;
        options.pace = Pace::causal;
        options.speeds = speeds;
        options.filter = filter_;
        options.output = dir_ / "run.oplog";
        ReplayResult result;
        collect(plan, run, options, clock, 0, result);
        CHECK(result.ops > 150);
        CHECK(result.left_out[static_cast<size_t>(LeftOut::filter)] > 0);
        CHECK(result.lateness.sum() == lateness);
        CHECK((lateness != 0) == (late != 0));
        if (late == 0) {
            PredictOptions how;
            how.storage = storage_;
            how.speeds = speeds;
            how.cpus = cpus;
            how.filter = filter_;
            how.output = dir_ / "predicted.oplog";
            const Prediction predicted = predict(log, how);
            CHECK(predicted.broken.empty());
            CHECK(predicted.after_waits_ns == doctest::Approx(result.fidelity.after_waits_ns));
            const LogReader ours(options.output), theirs(how.output);
            for (const Row& row : tasks_) {
                const Instants run_s = instants(ours, plan, row.task), predicted_s = instants(theirs, plan, row.task);
                REQUIRE(run_s.size() == predicted_s.size());
                const auto [a, b] = std::mismatch(run_s.begin(), run_s.end(), predicted_s.begin());
                CAPTURE(row.task);
                CHECK(Instants(a, std::min(a + 1, run_s.end())) == Instants(b, std::min(b + 1, predicted_s.end())));
            }
        }
    }

private:
    struct Row {
        TaskId task;
        int64_t now;
        std::vector<int64_t> ends;  // of its ops
        std::vector<bool> left_out;
    };

    int64_t below(int64_t most) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(most)); }

    void add(size_t index) {
        using enum OpKind;
        constexpr OpKind kinds[] = {stat, stat, fstat, compute, compute, wait,       wait,
                                    idle, send, send,  receive, join,    gpu_submit, gpu_wait};
        Row& row = tasks_[index];
        Op op;
        op.kind = kinds[below(std::size(kinds))];
        op.begin = row.now + below(20) * below(3) * kUs / 2;
        op.duration = (1 + below(90)) * kUs;
        if (op.kind == compute) {
            op.flags = below(4);  // ComputeClass
        } else if (op.kind == wait) {
            op.arg = below(8);  // WaitClass
        } else if (op.kind == stat) {
            op.file = below(5) == 0 ? program_ : job_.file("/data/in");
        } else if (op.kind == gpu_submit) {
            op.size = below(300) * kUs;
        }
        if (op.kind == gpu_submit || op.kind == gpu_wait) {
            op.flags = below(2);
            op.arg = static_cast<int64_t>(index);  // each its own device
        }
        std::vector<Edge> edges;
        const bool inside = op.kind == wait || op.kind == receive || op.kind == join || op.kind == idle;
        if (index > 0 && below(inside ? 4 : 2) != 0) {
            const size_t source = static_cast<size_t>(below(static_cast<int64_t>(index)));
            const std::vector<int64_t>& ends = tasks_[source].ends;
            const int64_t by = inside ? op.begin + op.duration : op.begin;
            const auto last = std::upper_bound(ends.begin(), ends.end(), by);
            if (last != ends.begin() && !tasks_[source].left_out[static_cast<size_t>(last - ends.begin()) - 1]) {
                const EdgeKind kind = below(4) == 0 ? EdgeKind::queue : EdgeKind::message;
                edges.push_back({tasks_[source].task, kind, 100, static_cast<uint64_t>(last - ends.begin()) - 1});
            }
        }
        op.edges = edges;
        job_.add(row.task, op);
        row.now = op.begin + op.duration;
        row.ends.push_back(row.now);
        row.left_out.push_back(op.file == program_);
    }

    static Instants instants(const LogReader& log, const Plan& plan, TaskId task) {
        Instants out;
        log.for_each(task, [&](const Op& op, uint64_t) {
            const int64_t begin = op.begin - plan.first_begin;
            out.push_back({op.kind, begin, begin + op.duration});
        });
        return out;
    }

    TempDir dir_;
    JobBuilder job_{dir_ / "job.oplog"};
    std::mt19937 random_;
    FileId program_ = 0;
    std::vector<Row> tasks_;
    StorageModel storage_;
    OpFilter filter_;
};

WaitCosts costs() {
    WaitCosts out;
    out.there.extra_ns = {20'000, 25'000, 30'000, 35'000, 40'000};
    out.there.over_ns = 50'000;
    out.here.extra_ns = {8'000, 9'000, 10'000, 15'000, 30'000};
    out.here.over_ns = 40'000;
    return out;
}

}  // namespace

TEST_CASE("pace causal: the run, the collector and the prediction agree to the nanosecond") {
    for (unsigned seed = 1; seed <= 30; ++seed) {
        CAPTURE(seed);
        RandomJob(seed).check({}, 0, 0);
        RandomJob(seed).check({.time_scale = 0.5, .cpu = 2.0, .gpu = 4.0}, 0, 0);
        Speeds spins;
        spins.computing = {DelayPolicy::spin, true};
        RandomJob(seed).check(spins, 64, 0);
        spins.waits = costs();
        RandomJob(seed).check(spins, 64, 0);
    }
}

TEST_CASE("pace causal: the run and the collector agree on how late every op was") {
    for (unsigned seed = 1; seed <= 30; ++seed) {
        CAPTURE(seed);
        RandomJob(seed).check({}, 0, 7'000);
    }
}

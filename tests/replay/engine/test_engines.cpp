// SPDX-License-Identifier: MIT
// The table of engines, and what the loop makes of an engine that completes ops later and in another order.
#include "replay/engine/engines.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "replay/run/task_loop.h"
#include "tests/replay/job_builder.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr uint64_t kOps = 40;

/// Takes up to kDepth reads before it completes any, the last one first. Everything else completes at once.
class LaterEngine {
public:
    static constexpr bool kUsesRoot = false;
    static constexpr size_t kDepth = 5;
    explicit LaterEngine(const EngineContext&) {}

    bool before(const OpBlock&, size_t) { return false; }
    int64_t submit(const OpBlock& b, size_t i) {
        if (static_cast<OpKind>(b.kind[i]) != OpKind::pread) {
            return b.result[i];
        }
        flying_.push_back({b.first + i, b.size[i]});
        most = std::max(most, flying_.size());
        return kInFlight;
    }
    size_t complete(std::span<Completion> out, bool wait) {
        if ((stuck && wait) || (!wait && flying_.size() < kDepth)) {
            return 0;
        }
        size_t count = 0;
        while (count < std::min<size_t>(out.size(), 3) && !flying_.empty()) {
            order.push_back(flying_.back().op);
            published_before.push_back(published == nullptr ? 0 : published->load());
            out[count++] = {flying_.back().op, flying_.back().size, 0};
            flying_.pop_back();
        }
        return count;
    }
    size_t in_flight() const { return flying_.size(); }

    size_t most = 0;
    bool stuck = false;           // never completes anything any more, as in a run that is stopped
    std::vector<uint64_t> order;  // in which ops completed
    const std::atomic<uint32_t>* published = nullptr;
    std::vector<uint32_t> published_before;  // of each op in `order`

private:
    struct Flying {
        uint64_t op;
        int64_t size;
    };
    std::vector<Flying> flying_;
};
static_assert(Engine<LaterEngine> && CompletesLater<LaterEngine>);

/// What is in flight where a task or process starts.
struct CountingSpawner : Spawner {
    explicit CountingSpawner(const LaterEngine& engine) : engine(engine) {}
    void spawn(TaskId) override { in_flight.push_back(engine.in_flight()); }
    const LaterEngine& engine;
    std::vector<size_t> in_flight;
};

/// A reader of kOps preads, whose op kSource another task waits for, and whose op kSpawn starts a third.
struct LaterJob {
    static constexpr uint64_t kSource = 12, kSpawn = 20;
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    ProcessId process = job.process();
    TaskId reader = job.task(process), waiter = job.task(process), started = job.task(process);
    LogReader log = make();
    Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    SharedRun run{plan.tasks.size(),
                  plan.processes.size(),
                  1,
                  0,
                  plan.tasks.back().spool_first + plan.tasks.back().ops,
                  SIZE_MAX,
                  {}};
    LaterEngine engine{EngineContext{plan, plan.tasks[reader]}};
    CountingSpawner spawner{engine};

    LogReader make() {
        const HandleId handle = job.handle(job.file("/data/in"));
        for (uint64_t op = 0; op < kOps; ++op) {
            if (op == kSpawn) {
                job.spawn(reader, started);
            } else {
                const auto size = static_cast<int64_t>(100 + op);
                job.add(reader,
                        {.kind = OpKind::pread, .result = size, .handle = handle, .fd = 3, .offset = 0, .size = size});
            }
        }
        const Edge edge[] = {{reader, EdgeKind::message, 100, kSource}};
        job.add(waiter, {.kind = OpKind::wait, .begin = 1'000, .duration = 10'000'000, .arg = 1, .edges = edge});
        job.add(started, {.kind = OpKind::marker, .begin = 1'000'000});
        return job.finish();
    }

    template <class Pace>
    bool perform(Pace& pace) {
        run.control().start_ns = monotonic_ns();
        TaskLoop<LaterEngine, Pace> loop(plan, run, reader, engine, pace, &spawner, 0);
        OpBlock block;
        plan.log->decode(plan.tasks[reader].blocks[0], block);
        const bool whole = loop.block(block);
        sys::call_ticks = {};
        return whole;
    }
    const SpoolRow& row(uint64_t op) { return run.spool(plan.tasks[reader].spool_first)[op]; }
    void check_rows() {
        CHECK(run.task(reader).done.load() == kOps);
        for (uint64_t op = 0; op < kOps; ++op) {
            CAPTURE(op);
            CHECK(row(op).result == (op == kSpawn ? 1 : static_cast<int64_t>(100 + op)));
            CHECK(row(op).begin != 0);
            CHECK(row(op).end >= row(op).begin);
        }
    }
};

}  // namespace

TEST_CASE("engines are named once: kind, name and help come from one table") {
    std::set<std::string_view> names;
    for (const EngineInfo& engine : kEngines) {
        CHECK(names.insert(engine.name).second);
        CHECK_FALSE(engine.help.empty());
        CHECK(engine_name(engine.kind) == engine.name);
        CHECK(engine_by_name(engine.name) == engine.kind);
    }
    CHECK(engine_by_name("posix") == EngineKind::posix);
    CHECK(engine_by_name("null") == EngineKind::null);
    CHECK_FALSE(engine_by_name("").has_value());
    CHECK_FALSE(engine_by_name("posi").has_value());
    CHECK(uses_root(EngineKind::posix));
    CHECK_FALSE(uses_root(EngineKind::null));
}

TEST_CASE_FIXTURE(LaterJob, "afap: ops in flight complete later and out of order, and each has its own result") {
    AfapPace pace;
    engine.published = &run.task(reader).published;
    CHECK(perform(pace));
    check_rows();
    CHECK(engine.most == LaterEngine::kDepth);
    CHECK_FALSE(std::is_sorted(engine.order.begin(), engine.order.end()));
    CHECK(std::set(engine.order.begin(), engine.order.end()).size() == kOps - 1);
    // Who waits for an op, and who is started, sees it done.
    REQUIRE(plan.tasks[reader].sources == std::vector<uint64_t>{kSource});
    CHECK(run.task(reader).published.load() == 1);
    for (size_t i = 0; i < engine.order.size(); ++i) {
        CHECK((engine.published_before[i] == 0) == (engine.order[i] <= kSource));
    }
    CHECK(spawner.in_flight == std::vector<size_t>{0});
}

TEST_CASE_FIXTURE(LaterJob, "afap: what is in flight when a run is stopped is not done") {
    AfapPace pace;
    engine.stuck = true;
    CHECK_FALSE(perform(pace));
    CHECK(run.task(reader).published.load() == 0);
    const uint64_t done = run.task(reader).done.load();
    CHECK(done <= kSource);
    for (uint64_t op = 0; op < done; ++op) {
        CHECK(row(op).result == static_cast<int64_t>(100 + op));
    }
    CHECK(engine.in_flight() > 0);
}

TEST_CASE_FIXTURE(LaterJob, "paces that keep time wait for each op") {
    run.control().tick_ns = measure_tick_length_ns(take_tick_point(), 5'000'000);
    SUBCASE("causal") {
        CausalPace<> pace(plan, run, reader, {});
        CHECK(perform(pace));
    }
    SUBCASE("timed") {
        TimedPace<> pace(plan, run, {});
        CHECK(perform(pace));
    }
    check_rows();
    CHECK(engine.most == 1);
    CHECK(std::is_sorted(engine.order.begin(), engine.order.end()));
}

// SPDX-License-Identifier: MIT
// A clock that the test owns, and the three that use one: the paces, the collector and the prediction.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "replay/predict/predict.h"
#include "replay/predict/virtual_calls.h"
#include "replay/run/collect.h"
#include "replay/run/task_loop.h"
#include "tests/replay/job_builder.h"
#include "tests/replay/virtual_steps.h"

namespace reprise::test {

/// Stands still but for what waits for it and what moves it. Each thread has its own; a tick is a nanosecond.
struct OwnedClock {
    static inline thread_local int64_t now = 0;
    static inline int64_t late = 0;                   // of every wait for a time
    static inline std::atomic<int64_t> elsewhere{0};  // others are as far as that: whoever waited for them is, too

    static int64_t read() { return now = std::max(now, elsewhere.load()); }
    static uint64_t ticks() { return static_cast<uint64_t>(read()); }
    static void pass_until(int64_t ns) {
        if (read() < ns) {
            now = ns + late;
        }
    }

    class Delay {
    public:
        Delay(SpinTokens*, const std::atomic<uint32_t>*, double) {}
        static int64_t now_ns() { return read(); }
        static int64_t now_ns(uint64_t tick) { return static_cast<int64_t>(tick); }
        static int64_t ns_at(uint64_t tick) { return static_cast<int64_t>(tick); }
        static uint64_t tick_at(int64_t ns) { return static_cast<uint64_t>(ns); }
        static void until(int64_t ns) { pass_until(ns); }
    };
    class Compute {
    public:
        Compute(DelayPolicy, SpinTokens*, const std::atomic<uint32_t>*, double) {}
        void take(int64_t ns) const {
            glance_.call(glance_.of);
            pass_until(ns);
        }
        void fill(int64_t ns) const { take(ns); }
        void glance_at(const Glance& glance) { glance_ = glance; }

    private:
        Glance glance_;
    };
};

/// Calls take as long as they do in a prediction.
class OwnedEngine {
public:
    static inline thread_local uint64_t glances = 0;
    static inline thread_local std::vector<int64_t> sleeps;  // until when, ns

    static void glance() { ++glances; }
    static void watch(int64_t until_ns, bool asleep) {
        if (asleep) {
            sleeps.push_back(until_ns);
        }
    }
    OwnedEngine(const Plan& plan, VirtualCalls& calls, bool tells) : plan_(plan), calls_(calls), tells_(tells) {}
    static bool before(const OpBlock&, size_t) { return false; }
    int64_t submit(const OpBlock& b, size_t i) {
        const auto kind = static_cast<OpKind>(b.kind[i]);
        if (!plan_.selector->keeps_everything() && !keeps(plan_, b, i)) {
            return not_performed(LeftOut::filter);
        }
        if (causal_role(kind, b.arg[i], false, true) == CausalRole::call) {
            sys::call_ticks.entered = OwnedClock::ticks();
            OwnedClock::now = perform(calls_, b, i, OwnedClock::now);
            sys::call_ticks.left = OwnedClock::ticks();
            if (tells_) {
                OwnedClock::elsewhere = OwnedClock::now;
            }
        }
        return b.result[i];
    }

private:
    const Plan& plan_;
    VirtualCalls& calls_;
    bool tells_;
};

/// An op of a run, in ns from the start of the run.
struct Instant {
    OpKind kind = OpKind::open;
    int64_t begin = 0, end = 0;
    bool operator==(const Instant&) const = default;
};
using Instants = std::vector<Instant>;  // of one task

/// A small job and what becomes of it.
class OwnedJob {
public:
    static constexpr int64_t kStart = 5'000'000'000;  // of the run

    struct Run {
        std::vector<Instants> tasks;  // by TaskId
        std::vector<int64_t> lags;    // of the last op of each
        ReplayResult result;
    };

    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    StorageModel storage;
    Speeds speeds;
    OpFilter filter = OpFilter::all();
    bool stopped = false;  // before anything was issued

    OwnedJob() {
        storage.read = {{4096, 0}};
        storage.read_bytes_per_s = storage.write_bytes_per_s = storage.cached_bytes_per_s = 1e15;
        OwnedClock::late = 0;
        OwnedClock::elsewhere = 0;
    }

    /// The op log that the collector makes of the run, and its numbers. The tasks run one after the other, in the order
    /// of their ids. `blocked`: that task, begun first, really waits for the others.
    Run replay(reprise::Pace pace, TaskId blocked = 0) {
        const LogReader& log = reader();
        const Plan plan = make_plan(log, filter, PathMap{});
        SharedRun shared(plan.tasks.size(), plan.processes.size(), std::max<size_t>(plan.streams.size(), 1), 0,
                         plan.tasks.back().spool_first + plan.tasks.back().ops, SIZE_MAX, {});
        shared.control().start_ns = kStart;
        shared.control().stop = stopped ? 1 : 0;
        VirtualCalls calls(plan, storage, false);
        OwnedClock::elsewhere = 0;
        const auto task = [&](TaskId id) {
            OwnedEngine engine(plan, calls, blocked != 0 && id != blocked);
            if (pace == reprise::Pace::timed) {
                TimedPace<OwnedClock> timed(plan, shared, speeds);
                perform(plan, shared, id, engine, timed);
            } else {
                CausalPace<OwnedClock> causal(plan, shared, id, speeds);
                perform(plan, shared, id, engine, causal);
            }
        };
        std::thread waiter;
        if (blocked != 0) {
            waiter = std::thread([&] { task(blocked); });
            while (shared.task(blocked).waits_edge.load() == 0) {
                std::this_thread::yield();
            }
        }
        for (TaskId id = 1; id < plan.tasks.size(); ++id) {
            if (id != blocked) {
                task(id);
            }
        }
        if (waiter.joinable()) {
            waiter.join();
        }
        TickTimeline clock;
        clock.add({static_cast<uint64_t>(kStart), kStart});
        clock.add({static_cast<uint64_t>(2 * kStart), 2 * kStart});
        ReplayOptions options;
        options.pace = pace;
        options.speeds = speeds;
        options.filter = filter;
        options.output = dir / "run.oplog";
        Run run;
        for (TaskId id = 0; id < plan.tasks.size(); ++id) {
            run.lags.push_back(id == 0 ? 0 : shared.task(id).lag_ns.load());
        }
        collect(plan, shared, options, clock, 0, run.result);
        run.tasks = instants(options.output, plan);
        return run;
    }

    std::vector<Instants> predicted() {
        PredictOptions options;
        options.storage = storage;
        options.speeds = speeds;
        options.filter = OpFilter::all();
        options.output = dir / "predicted.oplog";
        predict(reader(), options);
        return instants(options.output, make_plan(reader(), OpFilter::all(), PathMap{}));
    }

private:
    const LogReader& reader() {
        if (!reader_) {
            reader_ = std::make_unique<LogReader>(job.finish());
        }
        return *reader_;
    }

    template <class ThePace>
    static void perform(const Plan& plan, SharedRun& shared, TaskId id, OwnedEngine& engine, ThePace& pace) {
        OwnedClock::now = kStart;
        sys::call_ticks.reset();
        TaskLoop<OwnedEngine, ThePace> loop(plan, shared, id, engine, pace, nullptr, 0);
        OpBlock block;
        for (const BlockInfo& where : plan.tasks[id].blocks) {
            plan.log->decode(where, block);
            loop.block(block);
        }
        publish_end(plan, shared, id);
        sys::call_ticks = {};
    }

    static std::vector<Instants> instants(const std::filesystem::path& path, const Plan& plan) {
        const LogReader log(path);
        std::vector<Instants> out(plan.tasks.size());
        for (TaskId id = 1; id < out.size(); ++id) {
            log.for_each(id, [&](const Op& op, uint64_t) {
                const int64_t begin = op.begin - plan.first_begin;
                out[id].push_back({op.kind, begin, begin + op.duration});
            });
        }
        return out;
    }

    std::unique_ptr<LogReader> reader_;
};

}  // namespace reprise::test

namespace doctest {
template <>
struct StringMaker<reprise::test::Instants> {
    static String convert(const reprise::test::Instants& instants) {
        std::string out;
        for (const reprise::test::Instant& one : instants) {
            out += std::string(reprise::info(one.kind).name) + ' ' + std::to_string(one.begin) + ".." +
                   std::to_string(one.end) + "; ";
        }
        return out.c_str();
    }
};
}  // namespace doctest

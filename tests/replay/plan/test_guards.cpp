// SPDX-License-Identifier: MIT
// Calls on files that threads make one at a time under a lock: found where the recording says so, kept in predictions
// and in runs.
#include "replay/plan/guards.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "replay/plan/plan.h"
#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// Two threads that read 150 times each. `exclusive`: one at a time; else each whenever it likes.
struct Readers {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    int64_t arg = kWaitLock | kWaitHeldInCalls;
    bool exclusive = true, one_file = true, processes = false;
    int waits = 20, log_every = 0;  // every so many reads one of a file that no lock guards, of another role
    static constexpr int64_t kReads = 150, kRead = 20'000;

    LogReader log() {
        const ProcessId process = job.process();
        std::array<TaskId, 2> tasks{job.task(process), job.task(processes ? job.process() : process)};
        std::array<HandleId, 2> files{}, logs{};
        for (size_t i = 0; i < 2; ++i) {
            const char* names[] = {"/data/a", "/data/b"};
            files[i] = job.inherited(job.file(names[one_file ? 0 : i]), process, 3 + static_cast<int>(i));
            logs[i] =
                job.inherited(job.file("/data/log", Origin::existed, Role::log), process, 5 + static_cast<int>(i));
        }
        std::mt19937_64 random(7);
        std::array<int64_t, 2> at{1'000, 3'000};
        int64_t free_at = 0;
        for (int64_t i = 0; i < 2 * kReads; ++i) {
            const size_t next = at[0] <= at[1] ? 0 : 1;
            if (exclusive && free_at > at[next] + 1'000 && i > 0 && waits-- > 0) {
                job.add(tasks[next],
                        {.kind = OpKind::wait, .begin = at[next], .duration = free_at - at[next], .arg = arg});
            }
            const int64_t begin = exclusive ? std::max(at[next], free_at) : at[next];
            job.add(tasks[next], {.kind = OpKind::pread,
                                  .begin = begin,
                                  .duration = kRead,
                                  .result = 4096,
                                  .handle = files[next],
                                  .fd = 3,
                                  .offset = i * 4096,
                                  .size = 4096});
            free_at = begin + kRead;
            at[next] = begin + kRead + 1 + static_cast<int64_t>(random() % 20'000);
            if (log_every != 0 && i % log_every == 0) {
                job.add(tasks[next], {.kind = OpKind::pread,
                                      .begin = begin + kRead + 1,
                                      .duration = 15'000,
                                      .result = 10,
                                      .handle = logs[next],
                                      .fd = 5,
                                      .offset = 0,
                                      .size = 10});
                at[next] += 15'000;
            }
        }
        return job.finish();
    }
};

Plan planned(const LogReader& log) {
    Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    find_guards(plan);
    return plan;
}

/// The locks that calls of the kind hold.
std::multiset<uint32_t> locks(const Plan& plan, OpKind kind = OpKind::pread) {
    std::multiset<uint32_t> found;
    OpBlock block;
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        for (const BlockInfo& where : plan.tasks[task].blocks) {
            plan.log->decode(where, block);
            for (size_t i = 0; i < block.count(); ++i) {
                if (static_cast<OpKind>(block.kind[i]) == kind) {
                    found.insert(plan.lock_of(task, block, i));
                }
            }
        }
    }
    return found;
}

}  // namespace

TEST_CASE("guards: reads under a lock, as the waits for it say") {
    Readers job;
    SUBCASE("a mutex") {}
    SUBCASE("a semaphore that stands for one") { job.arg = kWaitFutex | kWaitHeldInCalls; }
    SUBCASE("of files of their own") { job.one_file = false; }
    SUBCASE("of processes") { job.processes = true; }
    const LogReader log = job.log();
    const Plan plan = planned(log);
    CHECK(plan.counted(Count::calls_guarded) == 20);
    CHECK(plan.counted(Count::guards_unclear) == 0);
    const std::multiset<uint32_t> found = locks(plan);
    CHECK(found.count(Plan::kOwnLock + 1) == 2 * Readers::kReads);
    CHECK(locks(plan, OpKind::wait).count(0) == 20);
}

TEST_CASE("guards: none without waits, without those that say so, and none where calls overlap") {
    Readers job;
    uint64_t unclear = 0;
    SUBCASE("nobody waited") { job.waits = 0; }
    SUBCASE("too few waited") { job.waits = 7; }
    SUBCASE("the holder was not in calls") { job.arg = kWaitLock; }
    SUBCASE("a wait of another class") { job.arg = kWaitEpoll | kWaitHeldInCalls; }
    const LogReader log = job.log();
    const Plan plan = planned(log);
    CHECK(locks(plan).count(0) == 2 * Readers::kReads);
    CHECK(plan.counted(Count::guards_unclear) == unclear);
}

TEST_CASE("guards: calls that overlap although somebody waited hold none, and are counted") {
    TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const ProcessId process = job.process();
    const HandleId file = job.inherited(job.file("/data/a"), process, 3);
    for (const TaskId task : {job.task(process), job.task(process)}) {
        for (int64_t i = 0; i < 100; ++i) {
            job.add(task, {.kind = OpKind::wait,
                           .begin = 1'000 + i * 50'000,
                           .duration = 5'000,
                           .arg = kWaitLock | kWaitHeldInCalls});
            job.add(task, {.kind = OpKind::pread,
                           .begin = 7'000 + i * 50'000,
                           .duration = 30'000,
                           .result = 10,
                           .handle = file,
                           .fd = 3,
                           .size = 10});
        }
    }
    const LogReader log = job.finish();
    const Plan plan = planned(log);
    CHECK(plan.counted(Count::guards_unclear) == 200);
    CHECK(locks(plan).count(0) == 200);
}

TEST_CASE("guards: calls on other files go on") {
    Readers job;
    job.log_every = 3;
    const LogReader log = job.log();
    const Plan plan = planned(log);
    const std::multiset<uint32_t> found = locks(plan);
    CHECK(found.count(Plan::kOwnLock + 1) == 2 * Readers::kReads);
    CHECK(found.count(0) == 100);
}

TEST_CASE("guards: kept in a prediction and in a run") {
    Readers job;
    const LogReader with = job.log();
    SUBCASE("predicted") {
        Readers unmarked;
        unmarked.arg = kWaitLock;
        const LogReader without = unmarked.log();
        const auto elapsed = [](const LogReader& log) {
            PredictOptions options;
            options.filter = OpFilter::all();
            options.storage.read = {{4096, 1'000'000}};
            options.storage.parallelism = 2;
            options.storage.read_bytes_per_s = options.storage.cached_bytes_per_s = 1e12;
            return predict(log, options).elapsed_ns;
        };
        CHECK(elapsed(with) >= 2 * Readers::kReads * int64_t{1'000'000});
        CHECK(elapsed(without) < 2 * Readers::kReads * int64_t{1'000'000} * 2 / 3);
    }
    SUBCASE("run") {
        ReplayOptions options;
        options.pace = Pace::causal;
        options.engine = EngineKind::null;
        options.delay = DelayPolicy::spin;
        options.filter = OpFilter::all();
        std::vector<std::pair<int64_t, int64_t>> read;
        options.observe = [&](const ObservedOp& op) {
            if (op.here.kind == OpKind::pread) {
                read.emplace_back(op.here.begin, op.here.begin + op.here.duration);
            }
        };
        const ReplayResult result = replay(with, options);
        CHECK(result.ended == "complete");
        std::sort(read.begin(), read.end());
        REQUIRE(read.size() == 2 * Readers::kReads);
        int together = 0;
        for (size_t i = 1; i < read.size(); ++i) {
            constexpr int64_t kClocks = 500;  // ns that ticks of two CPUs may differ by
            together += read[i].first + kClocks < read[i - 1].second ? 1 : 0;
        }
        CHECK(together == 0);
    }
}

// SPDX-License-Identifier: MIT
// For whom the ranks of a run waited, and where they ran.
#include "replay/run/rank_holds.h"

#include <doctest/doctest.h>

#include "replay/plan/elsewhere.h"
#include "replay/run/collect.h"
#include "replay/run/merge_results.h"
#include "replay/run/pack_result.h"
#include "tests/replay/job_builder.h"
#include "tests/replay/run/rank_run.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int64_t kStart = 5'000 * kMs;

}  // namespace

TEST_CASE("ranks: of several waits the time goes to the rank that came last, and those of all ranks add up") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId here = job.lone_task(), second = job.lone_task(), third = job.lone_task();
    for (const TaskId task : {second, third}) {
        job.add(task, {.kind = OpKind::stat, .begin = 1 * kMs, .file = job.file("/a")});
        job.add(task, {.kind = OpKind::stat, .begin = 3 * kMs, .file = job.file("/a")});
    }
    for (uint64_t op = 0; op < 2; ++op) {
        const Edge edges[] = {{second, EdgeKind::message, 100, op}, {third, EdgeKind::message, 100, op}};
        job.add(here, {.kind = OpKind::stat,
                       .begin = static_cast<int64_t>(2 + 2 * op) * kMs,
                       .file = job.file("/a"),
                       .edges = edges});
    }
    const LogReader log = job.finish();
    Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    const std::vector<uint32_t> rank_of{0, 0, 1, 2};
    perform_only(plan, rank_of, 0);
    SharedRun run(plan.tasks.size(), plan.processes.size(), 1, 0, plan.tasks.back().spool_first + plan.tasks.back().ops,
                  SIZE_MAX, {});
    run.control().start_ns = kStart;
    const auto row = [](int64_t begin_ms, int64_t end_ms) {
        return SpoolRow{static_cast<uint64_t>(kStart + begin_ms * kMs), static_cast<uint64_t>(kStart + end_ms * kMs),
                        0};
    };
    // The second rank comes at 50 and 100 ms, the third at 40 and 130 ms: this one goes on at 50 and 130 ms.
    const auto put = [&](TaskId task, SpoolRow first, SpoolRow last) {
        run.spool(plan.tasks[task].spool_first)[0] = first;
        run.spool(plan.tasks[task].spool_first)[1] = last;
        run.task(task).done.store(2);
    };
    put(here, row(50, 51), row(130, 131));
    put(second, row(50, 50), row(100, 100));
    put(third, row(40, 40), row(130, 130));
    TickTimeline clock;
    clock.add({0, 0});
    clock.add({1'000'000'000'000, 1'000'000'000'000});
    ReplayOptions options;
    options.pace = Pace::afap;
    options.filter = OpFilter::all();
    ReplayResult result;
    collect(plan, run, options, clock, 0, result);
    CHECK(result.rank_waits == std::vector<int64_t>{0, 50 * kMs, 79 * kMs});
    CHECK(result.rank_wait_ns == 129 * kMs);
    CHECK(result.rank_waiter == here);
    REQUIRE(result.rank_holds.size() == 2);
    CHECK(result.rank_holds[0].by == second);
    CHECK(result.rank_holds[1].by == third);
    CHECK(result.rank_holds[1].by_op == 1);
    CHECK(result.rank_holds[1].ns == 79 * kMs);
    ReplayResult other = result;
    other.rank_waits = {7, 0, 0, 5};
    other.rank_wait_ns = 12;
    const ReplayResult merged = merge_results({rank(0, result), rank(3, other)});
    CHECK(merged.rank_waits == std::vector<int64_t>{7, 50 * kMs, 79 * kMs, 5});
    CHECK(merged.rank_wait_ns == 129 * kMs);
}

TEST_CASE("ranks: who waits for a rank that waits for a third one waits for that") {
    // Rank 0 ends the barrier (task 1, op 5): it came at 20 ms and waited until 50 ms for rank 1, which then was told
    // at 51 ms, and rank 2, which had come at 10 ms.
    const std::vector<RankHold> hub = {{1, 5, 30 * kMs, 1, 2, 4}};
    const std::vector<RankHold> slow = {{2, 5, 1 * kMs, 0, 1, 5}};
    const std::vector<RankHold> early = {{3, 5, 40 * kMs, 0, 1, 5}, {9, 5, 7 * kMs, 0, 1, 5}};  // 9: not what counts
    std::vector<int64_t> waits = {41 * kMs, 30 * kMs, 0};
    const std::vector<RankHolds> ranks = {{0, 1, hub}, {1, 2, slow}, {2, 3, early}};
    pass_on(ranks, waits);
    // 10 ms of rank 2 were for rank 0, which came late; what rank 1 waited was not for itself.
    CHECK(waits == std::vector<int64_t>{11 * kMs, 60 * kMs, 0});
    // In a result, and through bytes.
    std::vector<RankRun> runs;
    for (uint32_t number = 0; number < 3; ++number) {
        ReplayResult result;
        result.latency.resize(kOpKindLimit);
        result.rank_holds.assign(ranks[number].holds.begin(), ranks[number].holds.end());
        result.rank_waiter = ranks[number].waiter;
        result.rank_waits = number == 0 ? std::vector<int64_t>{0, 30 * kMs} : std::vector{(number == 1 ? 1 : 40) * kMs};
        const Bytes bytes = packed(result);
        ByteReader in(bytes);
        runs.push_back(rank(number, unpack_result(in)));
    }
    const ReplayResult merged = merge_results(runs);
    CHECK(merged.rank_waits == std::vector<int64_t>{11 * kMs, 60 * kMs});
    CHECK(merged.rank_holds.empty());
    // A circle, which no run makes, ends; ranks that nobody knows keep what they have.
    const std::vector<RankHold> a = {{1, 1, 5, 1, 2, 1}}, b = {{2, 1, 5, 2, 3, 1}}, c = {{3, 1, 5, 1, 2, 1}};
    std::vector<int64_t> circle = {0, 10, 5};
    pass_on(std::vector<RankHolds>{{0, 1, a}, {1, 2, b}, {2, 3, c}}, circle);
    CHECK(circle[0] + circle[1] + circle[2] == 15);
    std::vector<int64_t> few = {3};
    pass_on(std::vector<RankHolds>{{0, 1, a}, {1, 2, b}}, few);
    CHECK(few == std::vector<int64_t>{3});
}

TEST_CASE("ranks: where a rank ran is the same after it was packed, and bad bytes are refused") {
    RankPlace place = rank(3, {}).place;
    place.row.why = "slow";
    place.row.waited_ns = 7;
    place.row.held_up_ns = 9;
    place.row.clock.offset_ns = -5;
    Bytes bytes;
    pack(place, bytes);
    ByteReader in(bytes);
    const RankPlace again = unpack_place(in);
    CHECK(in.left() == 0);
    CHECK(again.row.host == "b");
    CHECK(again.boot == "kernel b");
    CHECK(again.row.why == "slow");
    CHECK(again.row.waited_ns == 7);
    CHECK(again.row.held_up_ns == 9);
    CHECK(again.row.clock.offset_ns == -5);
    for (size_t size = 0; size < bytes.size(); ++size) {
        ByteReader cut(ByteView(bytes).first(size));
        CHECK_THROWS_AS(unpack_place(cut), Corrupt);
    }
    ++bytes[0];
    ByteReader other(bytes);
    CHECK_THROWS_AS(unpack_place(other), Corrupt);
}

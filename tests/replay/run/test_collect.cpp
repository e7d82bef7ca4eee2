// SPDX-License-Identifier: MIT
// What the collector makes of a spool: the same differing results as `compare` finds in the log that it writes.
#include "replay/run/collect.h"

#include <doctest/doctest.h>

#include <array>
#include <cerrno>
#include <set>
#include <tuple>
#include <vector>

#include "analyze/compare.h"
#include "tests/replay/job_builder.h"

using namespace reprise;
using namespace reprise::test;

namespace {

using Found = std::set<std::tuple<TaskId, uint64_t, OpKind, int64_t, int64_t>>;

struct Verdicts {
    ReplayResult replay;
    Comparison compare;
    Found by_replay, by_compare;
};

struct Call {
    OpKind kind;
    int64_t offset, recorded, actual;
};

/// Calls of one task on one open file, with their results in the run, or left out there.
Verdicts run_with(const std::vector<Call>& calls, LeftOut reason = LeftOut::none) {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId task = job.lone_task();
    const FileId file = job.file("/data/in");
    const HandleId handle = job.handle(file, O_RDWR);
    for (const Call& call : calls) {
        job.add(task, {.kind = call.kind,
                       .result = call.recorded,
                       .handle = handle,
                       .fd = 3,
                       .file = file,
                       .offset = call.offset,
                       .arg = 3});
    }
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    SharedRun run(plan.tasks.size(), plan.processes.size(), 1, 0, plan.ops, SIZE_MAX, {});
    run.control().start_ns = 1'000;
    run.task(task).done.store(plan.ops);
    for (uint64_t op = 0; op < plan.ops; ++op) {
        const uint64_t begin = 2'000 + op * 10;
        SpoolRow row{begin, begin + 5, calls[op].actual};
        if (reason != LeftOut::none) {
            row = {begin | kNotPerformed, static_cast<uint64_t>(reason), 0};
        }
        *run.spool(plan.tasks[task].spool_first + op) = row;
    }
    TickTimeline clock;  // a tick is a nanosecond
    clock.add({0, 0});
    clock.add({1'000'000, 1'000'000});
    ReplayOptions options = afap(dir.path());
    options.output = dir / "run.oplog";
    Verdicts out;
    collect(plan, run, options, clock, 0, out.replay);
    CompareOptions all;
    all.examples = 1'000;
    out.compare = compare(log, LogReader(options.output), all);
    for (const Mismatch& each : out.replay.examples) {
        out.by_replay.insert({each.task, each.op, each.kind, each.recorded, each.actual});
    }
    for (const Difference& each : out.compare.differences) {
        CHECK(each.what == DifferenceKind::result);
        out.by_compare.insert({each.task, each.op_a, each.kind, each.result_a, each.result_b});
    }
    return out;
}

/// One op of each kind, all recorded with one result, and with another in the run.
Verdicts run_with(int64_t recorded, int64_t actual, LeftOut reason) {
    std::vector<Call> calls;
    for (const OpInfo& op : all_ops()) {
        calls.push_back({op.kind, 0, recorded, actual});
    }
    return run_with(calls, reason);
}

}  // namespace

TEST_CASE("replay and compare agree on which results differ, for every op") {
    uint64_t differ = 0;
    for (const int64_t recorded : {0, 3, 100, -ENOENT, -EBADF}) {
        for (const int64_t actual : {0, 3, 99, -ENOENT, -EAGAIN}) {
            CAPTURE(recorded);
            CAPTURE(actual);
            const Verdicts found = run_with(recorded, actual, LeftOut::none);
            CHECK(found.replay.mismatches == found.compare.results);
            CHECK(found.by_replay == found.by_compare);
            CHECK(found.by_replay.size() == found.replay.mismatches);
            CHECK((found.replay.mismatches == 0) == (recorded == actual));
            differ += found.replay.mismatches;
        }
    }
    CHECK(differ > 500);
}

TEST_CASE("replay and compare agree on ops that were not performed") {
    for (const LeftOut reason : {LeftOut::not_open, LeftOut::unsupported, LeftOut::read_only}) {
        const Verdicts found = run_with(3, 0, reason);
        CHECK(found.replay.mismatches == found.compare.results);
        CHECK(found.by_replay == found.by_compare);
        CHECK((found.replay.mismatches != 0) == (reason == LeftOut::not_open));
        CHECK((found.compare.not_performed != 0) == (reason != LeftOut::not_open));
    }
}

TEST_CASE("replay and compare agree on reads of a file that grows while it is read") {
    using enum OpKind;
    const Verdicts early = run_with({{read, 0, 0, 0}, {read, 0, 0, 29}, {read, 0, 29, 0}, {read, 29, 0, 0}});
    CHECK(early.replay.mismatches == 0);
    CHECK(early.compare.results == 0);
    CHECK(early.compare.results_known == 2);
    CHECK(early.replay.missing_bytes == 0);
    const Verdicts never = run_with({{read, 0, 0, 0}, {read, 0, 29, 0}, {read, 29, 0, 0}});
    CHECK(never.replay.mismatches == 1);
    CHECK(never.by_replay == never.by_compare);
    CHECK(never.replay.missing_bytes == 29);
    // Nobody looked before: the file was there, and this storage shows it late.
    const Verdicts stale = run_with({{read, 0, 29, 0}, {read, 29, 0, 29}});
    CHECK(stale.replay.mismatches == 2);
    CHECK(stale.by_replay == stale.by_compare);
}

TEST_CASE("collecting: bytes of requests count once, by the way they were submitted; those left out do not") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId task = job.lone_task();
    const HandleId handle = job.handle(job.file("/data/in"), O_RDWR);
    constexpr int64_t kRead = 22, kWrite = 23, kFsync = 3;  // IORING_OP_*
    const std::array<int64_t, 4> codes{kRead, kWrite, kFsync, kRead};
    for (uint32_t request = 1; request <= codes.size(); ++request) {
        job.add(task, {.kind = OpKind::uring_submit,
                       .handle = handle,
                       .size = 100,
                       .arg = codes[request - 1],
                       .request = request});
    }
    for (uint32_t request = 1; request <= codes.size(); ++request) {
        const int64_t result = codes[request - 1] == kFsync ? 0 : 100;
        job.add(task, {.kind = OpKind::uring_complete, .result = result, .size = 100, .request = request});
    }
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    SharedRun run(plan.tasks.size(), plan.processes.size(), 1, 0, plan.ops, SIZE_MAX, {});
    run.control().start_ns = 1'000;
    run.task(task).done.store(plan.ops);
    REQUIRE(plan.ops == 2 * codes.size());
    for (uint64_t op = 0; op < plan.ops; ++op) {
        const uint64_t begin = 2'000 + op * 10;
        const bool completes = op >= codes.size();
        const std::array<int64_t, 4> results{90, 100, 0, 0};
        SpoolRow row{begin, begin + 5, completes ? results[op - codes.size()] : 0};
        if (op + 1 == plan.ops) {
            row = {begin | kNotPerformed, static_cast<uint64_t>(LeftOut::stopped), 0};
        }
        *run.spool(plan.tasks[task].spool_first + op) = row;
    }
    TickTimeline clock;  // a tick is a nanosecond
    clock.add({0, 0});
    clock.add({1'000'000, 1'000'000});
    ReplayOptions options = afap(dir.path());
    ReplayResult result;
    collect(plan, run, options, clock, 0, result);
    CHECK(result.bytes_read == 90);
    CHECK(result.bytes_written == 100);
    CHECK(result.bytes_by_kind[static_cast<size_t>(OpKind::uring_complete)] == 190);
    CHECK(result.recorded_bytes == 200);  // the last was left out on purpose
    CHECK(result.missing_bytes == 10);
}

// SPDX-License-Identifier: MIT
// Threads that compute one at a time are told from threads that do not, and what of their computing holds the lock.
#include "replay/plan/one_lock.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "replay/plan/plan.h"
#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr uint64_t kBelow32Us = 0xffff;  // lengths up to the power of 2 above 20 us

struct Piece {
    TaskId task;
    int64_t begin, duration;
};

/// Threads that compute for 5 us and 20 us, and for `free_ns` without the lock where that is not 0, then wait. With
/// `locked`, what holds the lock is put off until it is free.
std::vector<Piece> threads(int count, bool locked, int64_t free_ns = 0, int64_t pause_ns = 60'000) {
    std::mt19937_64 random(7);
    std::vector<Piece> pieces;
    std::vector<int64_t> at(static_cast<size_t>(count), 0);
    std::vector<int> turn(static_cast<size_t>(count), 0);
    int64_t free_at = 0;
    for (int i = 0; i < 600 * count; ++i) {
        const auto next = static_cast<size_t>(std::min_element(at.begin(), at.end()) - at.begin());
        const bool free = free_ns != 0 && turn[next]++ % 3 == 2;
        const int64_t duration = free ? free_ns : random() % 2 == 0 ? 5'000 : 20'000;
        int64_t begin = at[next];
        if (locked && !free) {
            begin = std::max(begin, free_at);
            free_at = begin + duration;
        }
        pieces.push_back({static_cast<TaskId>(next + 1), begin, duration});
        at[next] = begin + duration + static_cast<int64_t>(random() % static_cast<uint64_t>(pause_ns));
    }
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    return pieces;
}

std::map<TaskId, uint64_t> held(const std::vector<Piece>& pieces) {
    OneLock lock;
    for (const Piece& piece : pieces) {
        lock.see(piece.task, piece.begin, piece.duration);
    }
    return lock.held();
}

}  // namespace

TEST_CASE("one lock: threads that take turns hold it whenever they compute") {
    for (const int count : {2, 3, 5}) {
        CAPTURE(count);
        const auto found = held(threads(count, true));
        CHECK(found.size() == static_cast<size_t>(count));
        for (const auto& [task, lengths] : found) {
            CHECK(lengths == kBelow32Us);
        }
    }
}

TEST_CASE("one lock: threads that compute at any time share none") {
    for (const int count : {2, 3, 5}) {
        CAPTURE(count);
        CHECK(held(threads(count, false)).empty());
    }
}

TEST_CASE("one lock: long computing that overlaps does not hold it") {
    const auto found = held(threads(3, true, 500'000));
    REQUIRE(found.size() == 3);
    for (const auto& [task, lengths] : found) {
        CHECK((lengths >> length_of(20'000) & 1) == 1);
        CHECK((lengths >> length_of(500'000) & 1) == 0);
    }
}

TEST_CASE("one lock: threads that meet at short computing, and wait for each other's long one") {
    // Each reads and computes for 3 ms in turn; around the hand-over both compute for a few microseconds.
    const auto meet = [](bool wait, int64_t numpy_ns, bool both_wait = true, std::set<TaskId> hardly_wait = {}) {
        OneLock lock(std::move(hardly_wait));
        int64_t at = 0;
        for (int turn = 0; turn < 300; ++turn) {
            const TaskId one = 1 + turn % 2, other = 2 - turn % 2;
            lock.see(one, at, 9'000);
            lock.see(other, at + 2'000, 9'000);
            lock.see(one, at + 12'000, 3'000'000);
            if (wait && (both_wait || one == 1)) {
                lock.see_wait(other, at + 14'000, 3'000'000);
            }
            at += 3'020'000;
            if (numpy_ns != 0) {
                lock.see(one, at, numpy_ns);
                lock.see(other, at + 1'000, numpy_ns);
                at += numpy_ns + 2'000;
            }
        }
        return lock.held();
    };
    const auto found = meet(true, 0);
    REQUIRE(found.size() == 2);
    for (const auto& [task, lengths] : found) {
        CHECK((lengths >> length_of(3'000'000) & 1) == 1);
        CHECK((lengths >> length_of(9'000) & 1) == 1);
        CHECK((lengths >> length_of(6'000'000) & 1) == 0);
    }
    CHECK(meet(true, 0, false) == found);  // the other one waits for something else
    CHECK(meet(true, 0, false, {1}) == found);
    CHECK(meet(true, 0, false, {2}).empty());  // nobody waits for what that one computes
    CHECK(meet(false, 0).empty());
    for (const auto& [task, lengths] : meet(true, 400'000)) {
        CHECK((lengths >> length_of(3'000'000) & 1) == 1);
        CHECK((lengths >> length_of(400'000) & 1) == 0);
    }
}

TEST_CASE("one lock: on a busy machine threads meet at the edges of long computing") {
    // As of a queue: one computes for 3 ms, the other for 1 ms. Who lets go is at it for some us more, and so is who
    // asks for the lock late. Few wait for it long.
    OneLock lock;
    int64_t at = 0;
    for (int turn = 0; turn < 300; ++turn) {
        lock.see(1, at, 3'000'000);
        if (turn % 15 == 0) {
            lock.see_wait(2, at + 100'000, 2'900'000);
        } else {
            lock.see(2, at + 2'000'000, 7'000);  // then it asks for the lock
            lock.see_next(2, at + 2'007'000);
        }
        lock.see(2, at + 2'996'000, 1'000'000);
        lock.see_next(1, at + 3'000'000);
        lock.see(1, at + 3'988'000, 9'000);
        lock.see_next(2, at + 3'996'000);
        at += 4'000'000;
    }
    const auto found = lock.held();
    REQUIRE(found.size() == 2);
    CHECK((found.at(1) >> length_of(3'000'000) & 1) == 1);
    CHECK((found.at(2) >> length_of(1'000'000) & 1) == 1);
}

TEST_CASE("one lock: threads that share one processor of a busy machine are not at it at once, but in between") {
    // Each computes for 3 ms, of which it has 1 ms at a time, as the other and a third program have the processor, too.
    for (const bool told : {true, false}) {
        CAPTURE(told);
        OneLock lock;
        for (int turn = 0; turn < 300; ++turn) {
            const TaskId task = 1 + turn % 2;
            const int64_t at = int64_t{turn} * 5'000'000;
            lock.see(task, at, 3'000'000 + turn * 7'919 % 1'000);
            if (turn % 10 == 0) {
                lock.see_wait(3 - task, at + 500'000, 2'500'000);
            }
            if (told) {
                continue;  // the next op of the task is what it computes next, 10 ms after this one
            }
            lock.see_next(task, at + 3'001'000);
        }
        CHECK(lock.held().empty() == told);
    }
}

TEST_CASE("one lock: threads that hardly ever compute say nothing") {
    CHECK(held({}).empty());
    CHECK(held(threads(2, true, 0, 100'000'000)).empty());
    CHECK(held({{1, 0, 5'000}, {2, 10'000, 5'000}, {1, 20'000, 0}}).empty());
}

namespace {

/// Two threads of a process that compute in turns; with `waits`, the log says that each waited for the other's lock.
struct InTurns {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};

    LogReader log(bool waits, bool one_process = true) {
        const ProcessId process = job.process();
        const TaskId first = job.task(process), second = job.task(one_process ? process : job.process());
        constexpr int64_t kPiece = 20'000;
        for (int64_t turn = 0; turn < 200; ++turn) {
            const TaskId task = turn % 2 == 0 ? first : second;
            const int64_t at = 1'000 + turn * (kPiece + 200);
            if (waits && turn > 1) {
                job.add(task, {.kind = OpKind::wait, .begin = at - kPiece, .duration = kPiece, .arg = kWaitLock});
            }
            job.add(task, {.kind = OpKind::compute, .begin = at, .duration = kPiece, .flags = kComputeWorks});
        }
        return job.finish();
    }
};

Plan planned(const LogReader& log) {
    Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    find_locks(plan);
    return plan;
}

}  // namespace

TEST_CASE("one lock: a plan looks for it where threads of a process waited for locks") {
    InTurns job;
    SUBCASE("they did") {
        const LogReader log = job.log(true);
        const Plan plan = planned(log);
        CHECK(plan.tasks[1].locked_lengths == kBelow32Us);
        CHECK(plan.tasks[2].locked_lengths == kBelow32Us);
        OpBlock block;
        log.decode(plan.tasks[1].blocks.front(), block);
        CHECK(plan.lock_of(1, block, 0) == Plan::kOwnLock);  // computing
        CHECK(plan.lock_of(1, block, 1) == 0);               // the wait
    }
    SUBCASE("nobody waited") {
        const LogReader log = job.log(false);
        CHECK(planned(log).tasks[1].locked_lengths == 0);
    }
    SUBCASE("two processes") {
        const LogReader log = job.log(true, false);
        CHECK(planned(log).tasks[1].locked_lengths == 0);
    }
}

TEST_CASE("one lock: tasks compute in turns in a prediction, and in a run") {
    InTurns job;
    const LogReader log = job.log(true);
    SUBCASE("predicted") {
        PredictOptions options;
        options.filter = OpFilter::all();
        const Prediction prediction = predict(log, options);
        CHECK(prediction.elapsed_ns >= 200 * 20'000);
        CHECK(prediction.path.sum() == prediction.elapsed_ns);
    }
    SUBCASE("run") {
        ReplayOptions options;
        options.pace = Pace::causal;
        options.engine = EngineKind::null;
        options.delay = DelayPolicy::spin;
        options.filter = OpFilter::all();
        std::vector<std::pair<int64_t, int64_t>> computed;
        options.observe = [&](const ObservedOp& op) {
            if (op.here.kind == OpKind::compute) {
                computed.emplace_back(op.here.begin, op.here.begin + op.here.duration);
            }
        };
        const ReplayResult result = replay(log, options);
        CHECK(result.ended == "complete");
        std::sort(computed.begin(), computed.end());
        REQUIRE(computed.size() == 200);
        int together = 0;
        for (size_t i = 1; i < computed.size(); ++i) {
            constexpr int64_t kClocks = 500;  // ns that ticks of two CPUs may differ by
            together += computed[i].first + kClocks < computed[i - 1].second ? 1 : 0;
        }
        CHECK(together == 0);
    }
}

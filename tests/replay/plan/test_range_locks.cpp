// SPDX-License-Identifier: MIT
// Locks on ranges of files: how they are packed, and who has to wait for whom.
#include "replay/plan/range_locks.h"

#include <algorithm>
#include <cerrno>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/replay/job_builder.h"
#include "tests/support.h"

namespace reprise::test {
namespace {

constexpr int64_t kEnd = RangeLock::kToEnd;

std::vector<uint64_t> ops_of(const std::vector<LockSource>& sources) {
    std::vector<uint64_t> ops;
    ops.reserve(sources.size());
    for (const LockSource& source : sources) {
        ops.push_back(source.op);
    }
    return ops;
}

/// One file; op numbers are times.
struct Locks {
    RangeLocks locks;
    uint64_t now = 0;

    using Ops = std::vector<uint64_t>;
    Ops set(uint32_t process, int type, int64_t from = 0, int64_t to = kEnd) {
        const LockSource by{process, ++now, static_cast<int64_t>(now)};
        return ops_of(locks.set(1, {false, process}, {type, from, to}, by));
    }
    Ops refused(uint32_t process, int type, int64_t from = 0, int64_t to = kEnd) {
        const LockSource by{process, ++now, static_cast<int64_t>(now)};
        return ops_of(locks.refused(1, {false, process}, {type, from, to}, by, static_cast<int64_t>(now)));
    }
    Ops close(uint32_t process) {
        const LockSource by{process, ++now, static_cast<int64_t>(now)};
        return ops_of(locks.give_back(1, {false, process}, by));
    }
};

}  // namespace

TEST_CASE("range locks: packed and back; what has no room is to the end") {
    std::mt19937_64 random(7);
    for (int i = 0; i < 100'000; ++i) {
        const auto from = static_cast<int64_t>(random() >> (24 + random() % 40));
        const auto bytes = static_cast<int64_t>(random() >> (40 + random() % 24));
        const RangeLock lock{static_cast<int>(random() % 3), from, bytes == 0 ? kEnd : from + bytes};
        const int64_t packed = pack(lock);
        REQUIRE(packed > 0);
        const auto back = unpack_range_lock(packed);
        REQUIRE(back);
        CHECK(back->type == lock.type);
        CHECK(back->from == lock.from);
        CHECK((back->to == lock.to || (back->to == kEnd && bytes >= 1 << 21)));
    }
    const auto far = unpack_range_lock(pack({F_WRLCK, INT64_MAX - 1, INT64_MAX}));
    REQUIRE(far);
    CHECK(far->from == (int64_t{1} << 40) - 1);
    CHECK(far->to == kEnd);
    CHECK(!unpack_range_lock(0));
    CHECK(!unpack_range_lock(-1));
}

TEST_CASE("range locks: where a range begins and ends, by struct flock") {
    const auto of = [](int64_t whence, int64_t start, int64_t bytes) {
        return range_lock_of(F_WRLCK, whence, start, bytes, 100, 1'000);
    };
    CHECK(of(SEEK_SET, 5, 10) == RangeLock{F_WRLCK, 5, 15});
    CHECK(of(SEEK_SET, 5, 0) == RangeLock{F_WRLCK, 5, kEnd});
    CHECK(of(SEEK_CUR, 0, 10) == RangeLock{F_WRLCK, 100, 110});
    CHECK(of(SEEK_CUR, 0, -10) == RangeLock{F_WRLCK, 90, 100});
    CHECK(of(SEEK_END, -10, 0) == RangeLock{F_WRLCK, 990, kEnd});
    CHECK(of(SEEK_SET, INT64_MAX, INT64_MAX).to == kEnd);
    CHECK(of(SEEK_CUR, INT64_MIN, INT64_MIN).from == 0);
}

TEST_CASE("range locks: who takes one waits for those who gave it back") {
    Locks one;
    using Ops = Locks::Ops;
    CHECK(one.set(1, F_WRLCK).empty());
    CHECK(one.set(1, F_UNLCK).empty());
    CHECK(one.set(2, F_WRLCK) == Ops{2});
    CHECK(one.set(2, F_UNLCK).empty());
    CHECK(one.set(2, F_WRLCK).empty());  // its own
    CHECK(one.close(2).empty());
    CHECK(one.set(3, F_RDLCK) == Ops{6});
    CHECK(one.set(1, F_RDLCK) == Ops{6});  // readers do not wait for each other
    one.set(3, F_UNLCK);
    one.set(1, F_UNLCK);
    CHECK(one.set(2, F_WRLCK) == Ops{9, 10});
}

TEST_CASE("range locks: other bytes of the file are another lock, and a part can be given back") {
    Locks one;
    using Ops = Locks::Ops;
    one.set(1, F_WRLCK, 0, 100);
    CHECK(one.set(2, F_WRLCK, 100, 200).empty());
    one.set(1, F_UNLCK, 40, 60);
    CHECK(one.set(2, F_WRLCK, 50, 55) == Ops{3});
    one.set(1, F_UNLCK);  // 0 to 40 and 60 to 100
    CHECK(one.set(3, F_WRLCK, 60, 61) == Ops{5});
    CHECK(one.set(3, F_WRLCK, 45, 46) == Ops{3});
    // A lock that becomes a reader's lets others read.
    Locks two;
    two.set(1, F_WRLCK);
    two.set(1, F_RDLCK);
    CHECK(two.set(2, F_RDLCK) == Ops{2});
    two.set(1, F_UNLCK);
    CHECK(two.set(3, F_RDLCK) == Ops{2});
}

TEST_CASE("range locks: who was refused came after the lock was taken, and before it was given back") {
    Locks one;
    using Ops = Locks::Ops;
    one.set(1, F_WRLCK);
    CHECK(one.refused(2, F_RDLCK) == Ops{1});
    CHECK(one.refused(2, F_RDLCK) == Ops{1});
    CHECK(one.refused(3, F_WRLCK) == Ops{1});
    CHECK(one.set(1, F_UNLCK) == Ops{3, 4});
    CHECK(one.refused(2, F_WRLCK).empty());  // nobody has it
}

TEST_CASE("range locks: a log of two processes that append under one gets edges, with others' ranges none") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId a = job.task(job.process()), b = job.task(job.process());
    const FileId file = job.file("/data/journal", Origin::created);
    const HandleId mine = job.open(a, file, O_RDWR | O_CREAT), yours = job.open(b, file, O_RDWR | O_CREAT);
    const auto lock = [&](TaskId task, HandleId handle, int type, int64_t from = 0, int64_t to = kEnd) {
        job.add(task, {.kind = OpKind::fcntl,
                       .handle = handle,
                       .fd = job.fd(handle),
                       .flags = pack({type, from, to}),
                       .arg = F_SETLKW});
        job.skip(1'000);
    };
    int64_t from_a = 0, to_a = kEnd;
    uint64_t waits = 1;
    SUBCASE("the same range") {}
    SUBCASE("another range") {
        from_a = 10;
        to_a = 20;
        waits = 0;
    }
    lock(a, mine, F_WRLCK, from_a, to_a);
    lock(a, mine, F_UNLCK, from_a, to_a);
    lock(b, yours, F_WRLCK, 0, waits == 0 ? 10 : kEnd);
    lock(b, yours, F_UNLCK, 0, waits == 0 ? 10 : kEnd);
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, {}, PathMap{});
    uint64_t found = 0;
    for (const WaitFor& wait : plan.tasks[b].waits) {
        found += wait.op == 1 && wait.task == a ? 1 : 0;
    }
    CHECK(found == waits);
}

TEST_CASE("range locks: one that comes right after another call waits for a release that begins before it ends") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId a = job.task(job.process()), b = job.task(job.process());
    const FileId file = job.file("/data/journal", Origin::created);
    const HandleId mine = job.open(a, file, O_RDWR | O_CREAT), yours = job.open(b, file, O_RDWR | O_CREAT);
    constexpr int64_t kStart = 1'000'000;
    const auto lock = [&](TaskId task, HandleId handle, const RangeLock& range, int64_t begin, int64_t end) {
        job.add(task, {.kind = OpKind::fcntl,
                       .begin = kStart + begin,
                       .duration = end - begin,
                       .handle = handle,
                       .fd = job.fd(handle),
                       .flags = pack(range),
                       .arg = F_SETLKW});
    };
    lock(a, mine, {F_WRLCK, 100, kEnd}, 100, 150);
    lock(b, yours, {F_WRLCK, 0, 10}, 500, 1'500);
    lock(b, yours, {F_WRLCK, 100, kEnd}, 1'500, 2'050);
    lock(a, mine, {F_UNLCK, 100, kEnd}, 1'510, 2'100);
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, {}, PathMap{});
    CHECK(std::any_of(plan.tasks[b].waits.begin(), plan.tasks[b].waits.end(),
                      [&](const WaitFor& wait) { return wait.op == 2 && wait.task == a && wait.source == 2; }));
}

}  // namespace reprise::test

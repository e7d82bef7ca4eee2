// SPDX-License-Identifier: MIT
// Waits whose time-out ran out before somebody woke the task.
#include "replay/plan/polls.h"

#include <linux/io_uring.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "replay/plan/plan.h"
#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

/// A helper that looks after 20, 40 and 80 ms whether it may end, and is told by another thread at 200 ms.
struct Helper {
    int64_t expired = -ETIMEDOUT, wait_class = kWaitFutex;
    int64_t looks_ns = 10'000;                     // computing between two waits
    int64_t every = 20 * kMs, longest = 80 * kMs;  // ns, time-outs
    int64_t other_timeout = 0;                     // ms, of another wait
    bool told = true;                              // else its last wait runs out as well
    bool writes = false;                           // after each time-out
    bool lock = false;                             // between two waits
    bool results = false;                          // of requests, after each time-out
    int64_t wakes_after = -1;  // after a time-out it wakes a third thread that has waited so long, ns
    size_t wakes_poll = 0;     // which time-out
    bool cut = false;          // its last wait, by the end of the process

    TempDir dir{};
    JobBuilder job{dir / "job.oplog"};
    TaskId main = 0, helper = 0;
    std::vector<uint64_t> polls{};
    uint64_t last = 0;

    LogReader build() {
        const ProcessId process = job.process();
        main = job.task(process), helper = job.task(process);
        const TaskId third = job.task(process);
        const HandleId h = job.handle(job.file("/data/log"));
        job.add(main, {.kind = OpKind::compute, .begin = 0, .duration = 200 * kMs, .flags = kComputeWorks});
        const uint64_t tells = job.add(main, {.kind = OpKind::wait, .begin = 200 * kMs, .arg = kWaitWokeOthers});
        int64_t at = 1'000;
        const int64_t times = every == longest ? 1 : 2;
        for (int64_t wait = every; wait <= longest && at < 150 * kMs; wait *= times) {
            polls.push_back(job.add(
                helper, {.kind = OpKind::wait, .begin = at, .duration = wait, .result = expired, .arg = wait_class}));
            at += wait;
            if (results) {
                job.add(helper, {.kind = OpKind::uring_complete, .begin = at, .result = 1, .size = 1, .request = 1});
            }
            if (lock) {
                job.add(helper, {.kind = OpKind::wait, .begin = at, .duration = 1'000, .arg = kWaitLock});
            }
            if (wakes_after >= 0 && polls.size() == wakes_poll + 1) {
                const uint64_t woke =
                    job.add(helper, {.kind = OpKind::wait, .begin = at, .duration = 1'000, .arg = kWaitWokeOthers});
                const std::vector<Edge> by{{helper, EdgeKind::wake, 100, woke}};
                job.add(third, {.kind = OpKind::wait,
                                .begin = at - wakes_after,
                                .duration = wakes_after,
                                .arg = kWaitFutex,
                                .edges = by});
            }
            if (writes) {
                job.add(
                    helper,
                    {.kind = OpKind::pwrite, .begin = at, .result = 100'000, .handle = h, .fd = 3, .size = 100'000});
            }
            job.add(helper, {.kind = OpKind::compute, .begin = at, .duration = looks_ns, .flags = kComputeWorks});
            at += looks_ns;
        }
        if (other_timeout != 0) {
            job.add(helper, {.kind = OpKind::wait, .begin = at, .result = 1, .arg = epoll_arg(other_timeout)});
        }
        if (cut) {
            const uint64_t exits = job.add(main, {.kind = OpKind::exit, .begin = 200 * kMs});
            const std::vector<Edge> by{{main, EdgeKind::lifecycle, 100, exits}};
            last = job.add(helper, {.kind = OpKind::wait,
                                    .begin = at,
                                    .duration = 200 * kMs - at,
                                    .result = -EINTR,
                                    .arg = wait_class,
                                    .edges = by});
            job.add(helper, {.kind = OpKind::exit});
            return job.finish();
        }
        const std::vector<Edge> edges{{main, EdgeKind::wake, 100, tells}};
        last = job.add(helper, {.kind = OpKind::wait,
                                .begin = at,
                                .duration = 200 * kMs - at,
                                .result = told ? 1 : expired,
                                .arg = wait_class,
                                .edges = told ? edges : std::vector<Edge>{}});
        return job.finish();
    }
};

std::vector<uint64_t> explained(Helper& helper) {
    const LogReader log = helper.build();
    return make_plan(log, OpFilter::all(), PathMap{}).tasks[helper.helper].explained;
}

}  // namespace

TEST_CASE("polls: time-outs that ran out are one wait with the one that was ended") {
    Helper helper;
    SUBCASE("futex") {}
    SUBCASE("poll") { helper.expired = 0, helper.wait_class = kWaitPoll; }
    SUBCASE("with a lock between them") { helper.lock = true; }
    SUBCASE("waking somebody on the way who had not waited for that") { helper.wakes_after = 4 * kMs; }
    SUBCASE("waking somebody who had waited for less than half of the time since it woke somebody") {
        helper.wakes_after = 29 * kMs;  // of 20 + 40
        helper.wakes_poll = 1;
    }
    const LogReader log = helper.build();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    std::vector<uint64_t> all = helper.polls;
    all.push_back(helper.last);
    CHECK(plan.tasks[helper.helper].explained == all);
    CHECK(plan.explained_wait_ns == 200 * kMs - 1'000 - 3 * helper.looks_ns + std::max<int64_t>(helper.wakes_after, 0));
    const auto joined = std::find_if(plan.counters.begin(), plan.counters.end(),
                                     [](const Counter& c) { return c.name == "waits_joined"; });
    REQUIRE(joined != plan.counters.end());
    CHECK(joined->value == 3);
}

TEST_CASE("polls: a wait that was interrupted and goes on is one wait") {
    Helper helper;
    helper.expired = -EINTR;
    SUBCASE("and nothing else happens") {}
    SUBCASE("after results of the ring") { helper.results = true; }
    const LogReader log = helper.build();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    std::vector<uint64_t> all = helper.polls;
    all.push_back(helper.last);
    CHECK(plan.tasks[helper.helper].explained == all);
}

TEST_CASE("polls: a thread that only idles and computes, and for which nobody waits, delays nothing") {
    enum class Case : uint8_t { idles, blocks, awaited, reads, no_ring };
    for (const Case each : {Case::idles, Case::blocks, Case::awaited, Case::reads, Case::no_ring}) {
        CAPTURE(static_cast<int>(each));
        const bool awaited = each == Case::awaited, reads = each == Case::reads;
        const TempDir dir;
        JobBuilder job(dir / "job.oplog");
        const ProcessId process = job.process();
        const TaskId main = job.task(process), worker = job.task(process);
        const HandleId in = job.handle(job.file("/data/in"));
        job.add(worker, {.kind = OpKind::compute, .begin = kMs, .duration = kMs, .flags = kComputeWorks});
        if (reads) {
            job.add(worker, {.kind = OpKind::pread, .begin = 3 * kMs, .result = 1, .handle = in, .fd = 3, .size = 1});
        }
        uint64_t blocks = 0;
        if (each == Case::blocks) {
            blocks = job.add(worker, {.kind = OpKind::wait, .begin = 2 * kMs, .duration = kMs, .arg = kWaitUnknown});
        }
        const uint64_t idles = job.add(worker, {.kind = OpKind::idle, .begin = 4 * kMs, .duration = 900 * kMs});
        const uint64_t ends = job.add(worker, {.kind = OpKind::exit, .begin = 904 * kMs});
        const std::vector<Edge> edges{{worker, EdgeKind::wake, 100, ends}};
        job.add(main, {.kind = OpKind::wait,
                       .begin = kMs,
                       .duration = (awaited ? 903 : 10) * kMs,
                       .arg = kWaitFutex,
                       .edges = awaited ? std::span<const Edge>(edges) : std::span<const Edge>()});
        if (each != Case::no_ring) {
            const HandleId ring = job.handle(job.file("/ring"));
            job.add(main, {.kind = OpKind::uring_submit,
                           .begin = 910 * kMs,
                           .handle = in,
                           .fd = 3,
                           .size = 4'096,
                           .arg = IORING_OP_READ,
                           .request = 1});
            job.add(main, {.kind = OpKind::uring_enter, .begin = 910 * kMs, .result = 1, .handle = ring, .size = 1});
        }
        const LogReader log = job.finish();
        const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
        const std::vector<uint64_t>& explained = plan.tasks[worker].explained;
        const bool left_alone = each == Case::idles || each == Case::blocks;
        CHECK(std::count(explained.begin(), explained.end(), idles) == (left_alone ? 1 : 0));
        CHECK(std::count(explained.begin(), explained.end(), blocks) == (each == Case::blocks ? 1 : 0));
    }
}

TEST_CASE("polls: time-outs that the program acts on stay") {
    Helper helper;
    SUBCASE("nobody ends the last one") {
        helper.told = false;
        CHECK(explained(helper).empty());
        return;
    }
    SUBCASE("it writes") { helper.writes = true; }
    SUBCASE("it computes") { helper.looks_ns = kMs; }
    SUBCASE("timers of an event loop") { helper.expired = 0, helper.wait_class = kWaitEpoll; }
    SUBCASE("sleeps") { helper.expired = 0, helper.wait_class = kWaitSleep; }
    SUBCASE("woken for nothing") { helper.expired = -EAGAIN; }
    const std::vector<uint64_t> only = explained(helper);
    CHECK(only == std::vector<uint64_t>{helper.last});
}

TEST_CASE("polls: a time-out that somebody waited for stays, and those before it") {
    Helper helper;
    helper.wakes_after = 31 * kMs;
    helper.wakes_poll = 1;
    const std::vector<uint64_t> found = explained(helper);
    CHECK(found == std::vector<uint64_t>{helper.polls[2], helper.last});
}

TEST_CASE("polls: an event loop that always asks for the same time-out has no timers") {
    Helper helper;
    helper.every = helper.longest = 10 * kMs;
    helper.wait_class = epoll_arg(10);
    helper.expired = 0;
    SUBCASE("it is told in the end") {
        std::vector<uint64_t> all = explained(helper);
        CHECK(helper.polls.size() == 15);
        CHECK(all.size() == 16);
        CHECK(all.back() == helper.last);
        return;
    }
    SUBCASE("other time-outs") { helper.other_timeout = 3; }
    SUBCASE("it works on what ran out") { helper.looks_ns = 100'000; }
    CHECK(explained(helper) == std::vector<uint64_t>{helper.last});
}

TEST_CASE("polls: the time-outs of a thread that nobody waits for, and that ends with its process, are over at once") {
    Helper helper;
    helper.cut = true;
    helper.looks_ns = kMs;  // an allocator that gives memory back
    SUBCASE("futex") {}
    SUBCASE("sleeps") { helper.expired = 0, helper.wait_class = kWaitSleep; }
    SUBCASE("waking somebody who had hardly waited for that") { helper.wakes_after = 4 * kMs; }
    const std::vector<uint64_t> found = explained(helper);
    CHECK(found.size() == helper.polls.size() + 1);
    CHECK(found.back() == helper.last);
    CHECK(std::is_sorted(found.begin(), found.end()));
}

TEST_CASE("polls: so they are not where somebody waits for it, or while it does something else") {
    Helper helper;
    helper.cut = true;
    helper.looks_ns = kMs;
    bool last_two = false;
    SUBCASE("somebody waits") {
        helper.wakes_after = 31 * kMs;
        helper.wakes_poll = 1;
    }
    SUBCASE("it writes after each") { helper.writes = true; }
    SUBCASE("but what was one wait with the last one stays that") {
        helper.looks_ns = 10'000;
        helper.wakes_after = 31 * kMs;
        helper.wakes_poll = 1;
        last_two = true;
    }
    const std::vector<uint64_t> found = explained(helper);
    CHECK(found ==
          (last_two ? std::vector<uint64_t>{helper.polls[2], helper.last} : std::vector<uint64_t>{helper.last}));
}

/// A parent sleeps, looks for its child's end, sleeps; the child reads for 200 ms.
struct Parent {
    size_t sleeps = 5;
    int64_t join_ns = 50'000, looks_ns = 70'000;
    bool reads = false, elsewhere = false;  // between the sleeps; each time
    bool looks = false;                     // before each of them, as the log tells
    int64_t asks = 0;                       // for a name, after each of the looks: the result; 0: does not
    TempDir dir{};
    JobBuilder job{dir / "job.oplog"};
    TaskId parent = 0;

    LogReader build() {
        const ProcessId first = job.process();
        parent = job.task(first);
        const ProcessId second = job.process();
        const TaskId child = job.task(second);
        const HandleId h = job.handle(job.file("/data/in"));
        const FileId name = job.file("/data/asked", asks < 0 ? Origin::absent : Origin::existed);
        job.add(child, {.kind = OpKind::compute, .begin = 0, .duration = 200 * kMs, .flags = kComputeWorks});
        const uint64_t ends = job.add(child, {.kind = OpKind::exit, .begin = 200 * kMs});
        int64_t at = 1'000;
        const int64_t each = 210 * kMs / static_cast<int64_t>(sleeps);
        for (size_t i = 0; i < sleeps; ++i) {
            if (looks) {
                job.add(parent, {.kind = OpKind::wait, .begin = at, .arg = kWaitChild + kWaitLooked});
            }
            if (asks != 0) {
                job.add(parent, {.kind = OpKind::stat, .begin = at, .result = asks, .file = name});
            }
            job.add(parent, {.kind = OpKind::wait, .begin = at, .duration = each - looks_ns, .arg = kWaitSleep});
            at += each - looks_ns;
            if (reads) {
                const int64_t offset = elsewhere ? 100 * static_cast<int64_t>(i) : 0;
                job.add(parent, {.kind = OpKind::pread,
                                 .begin = at,
                                 .result = 100,
                                 .handle = h,
                                 .fd = 3,
                                 .offset = offset,
                                 .size = 100});
            }
            job.add(parent, {.kind = OpKind::compute, .begin = at, .duration = looks_ns, .flags = kComputeWorks});
            at += looks_ns;
        }
        const std::vector<Edge> edges{{child, EdgeKind::lifecycle, 100, ends}};
        job.add(parent,
                {.kind = OpKind::join, .begin = at, .duration = join_ns, .result = 77, .peer = child, .edges = edges});
        return job.finish();
    }
    /// Sleeps, beside the join.
    uint64_t joined() {
        const LogReader log = build();
        const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
        const TaskPlan& task = plan.tasks[parent];
        CHECK(task.look_grids.size() == (looks ? 1 : 0));
        CHECK(task.explained.size() == plan.counted(Count::waits_joined) + (looks ? 0 : 1));
        return plan.counted(Count::waits_joined);
    }
};

TEST_CASE("polls: sleeps between looks for a child's end") {
    Parent parent;
    SUBCASE("are one wait for it") { CHECK(parent.joined() == 5); }
    SUBCASE("one or two sleeps are sleeps") {
        parent.sleeps = 2;
        CHECK(parent.joined() == 0);
    }
    SUBCASE("but not after a look that found it alive") {
        parent.looks = true;
        parent.sleeps = 1;
        CHECK(parent.joined() == 1);
    }
    SUBCASE("nor between such looks") {
        parent.looks = true;
        parent.sleeps = 2;
        CHECK(parent.joined() == 2);
    }
    SUBCASE("and for a name that is not there") {
        parent.looks = true;
        parent.asks = -ENOENT;
        CHECK(parent.joined() == 5);
    }
    SUBCASE("it only looks for such a name") {
        parent.asks = -ENOENT;
        CHECK(parent.joined() == 0);
    }
    SUBCASE("it waited for the child itself") {
        parent.join_ns = 20 * kMs;
        CHECK(parent.joined() == 0);
    }
    SUBCASE("it computes between them") {
        parent.looks_ns = kMs;
        CHECK(parent.joined() == 0);
    }
    SUBCASE("it reads between them") {
        parent.reads = true;
        CHECK(parent.joined() == 0);
    }
    SUBCASE("it sees its end with the next look") {
        parent.looks = true;
        parent.sleeps = 3;  // of 70 ms
        const LogReader log = parent.build();
        PredictOptions options;
        options.storage.read = {{4096, 0}};
        options.filter = OpFilter::all();
        for (const auto& [faster, sleeps] : {std::pair{4.0, 1}, {1.5, 2}, {1.0, 3}, {0.5, 6}}) {
            options.speeds.cpu = faster;
            const double here = static_cast<double>(predict(log, options).elapsed_ns) / kMs;
            CHECK(here == doctest::Approx(70 * sleeps).epsilon(0.02));
        }
    }
    SUBCASE("on a CPU four times as fast the parent ends with the child") {
        const LogReader log = parent.build();
        PredictOptions options;
        options.storage.read = {{4096, 0}};
        options.speeds.cpu = 4;
        options.filter = OpFilter::all();
        CHECK(static_cast<double>(predict(log, options).elapsed_ns) / kMs == doctest::Approx(50).epsilon(0.02));
    }
}

TEST_CASE("polls: sleeps one after the other that end by themselves may be polls") {
    const auto repeated = [](Parent& parent) {
        const LogReader log = parent.build();
        return make_plan(log, OpFilter::all(), PathMap{}).repeated_sleep_ns;
    };
    Parent joined;
    CHECK(repeated(joined) == 0);
    Parent blocks;
    blocks.join_ns = 20 * kMs;
    CHECK(repeated(blocks) == 5 * (42 * kMs - 70'000));
    Parent reads;
    reads.reads = true;
    reads.join_ns = 20 * kMs;
    CHECK(repeated(reads) == 4 * (42 * kMs - 70'000));  // the same bytes each time: it looks for something
    Parent works;
    works.reads = works.elsewhere = true;
    works.join_ns = 20 * kMs;
    CHECK(repeated(works) == 0);
    Parent two;
    two.sleeps = 2;
    two.join_ns = 20 * kMs;
    CHECK(repeated(two) == 0);
}

TEST_CASE("polls: where the other thread is faster or slower, the helper ends with it") {
    Helper helper;
    const LogReader log = helper.build();
    for (const double faster : {0.5, 1.0, 4.0}) {
        PredictOptions options;
        options.storage.read = {{4096, 0}};
        options.speeds.cpu = faster;
        options.filter = OpFilter::all();
        const Prediction found = predict(log, options);
        CHECK(static_cast<double>(found.elapsed_ns) / kMs == doctest::Approx(200 / faster).epsilon(0.01));
    }
}

}  // namespace reprise::test

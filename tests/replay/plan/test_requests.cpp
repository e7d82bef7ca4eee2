// SPDX-License-Identifier: MIT
// What each request and each wait of a log needs done, on programs whose truth is known.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "replay/plan/plan.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

struct Rings {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    const ProcessId process = job.process();
    const TaskId a = job.task(process), b = job.task(process);
    const HandleId in = job.handle(job.file("/data/in")), ring = job.handle(job.file("/ring"));
    std::optional<LogReader> log;
    uint64_t job_last = 0;

    uint64_t submit(TaskId task, uint32_t request, std::vector<Edge> edges = {}, int64_t code = IORING_OP_READ) {
        return job.add(task, {.kind = OpKind::uring_submit,
                              .handle = in,
                              .fd = 3,
                              .size = 4'096,
                              .arg = code,
                              .request = request,
                              .edges = edges});
    }
    uint64_t enter(TaskId task, int64_t submitted, int64_t least, std::vector<Edge> edges = {}, HandleId of = 0) {
        return job.add(task, {.kind = OpKind::uring_enter,
                              .result = submitted,
                              .handle = of == 0 ? ring : of,
                              .fd = 4,
                              .size = submitted,
                              .arg = least,
                              .edges = edges});
    }
    uint64_t complete(TaskId task, uint32_t request) {
        return job.add(task, {.kind = OpKind::uring_complete, .result = 4'096, .size = 4'096, .request = request});
    }
    uint64_t aio(TaskId task, uint32_t request, HandleId of = 0) {
        return job.add(task, {.kind = OpKind::aio_submit,
                              .result = 1,
                              .handle = of == 0 ? in : of,
                              .fd = 3,
                              .size = 4'096,
                              .arg = IOCB_CMD_PREAD,
                              .request = request});
    }
    static Edge reaped(TaskId task, uint64_t op) { return {task, EdgeKind::reaped, 100, op}; }
    Plan plan(const OpFilter& filter = OpFilter::all()) {
        log.emplace(job.finish());
        return make_plan(*log, filter, PathMap{});
    }
    /// What op `op` needs; -1: nothing.
    static int64_t needed(const Plan& plan, TaskId task, uint64_t op) {
        for (const RequestNeed& need : plan.tasks[task].requests.needs) {
            if (need.op == op && need.request == 0) {
                return static_cast<int64_t>(need.count);
            }
        }
        return -1;
    }
};

}  // namespace

TEST_CASE_FIXTURE(Rings,
                  "requests: a ring that is kept full needs a free place, however many results were taken at once") {
    // Depth 4. Results come in pairs; the job takes both and makes two more.
    std::vector<uint64_t> submits;
    uint32_t made = 0;
    for (; made < 4; ++made) {
        submits.push_back(submit(a, made + 1));
    }
    enter(a, 4, 0);
    std::vector<uint64_t> waits;
    uint32_t done = 0;
    uint64_t last = 0;
    while (made < 40) {
        waits.push_back(enter(a, 0, 1, done == 0 ? std::vector<Edge>{} : std::vector<Edge>{reaped(a, last)}));
        complete(a, ++done);
        last = complete(a, ++done);
        submits.push_back(submit(a, ++made, {reaped(a, last)}));
        submits.push_back(submit(a, ++made));
        enter(a, 2, 0);
    }
    const Plan made_plan = plan();
    REQUIRE(made_plan.rings.size() == 1);
    const RequestRing& facts = made_plan.rings[0];
    CHECK(facts.handle == ring);
    CHECK(facts.depth == 4);
    CHECK(facts.full);
    CHECK(facts.exact);
    CHECK_FALSE(facts.shared);
    CHECK(facts.requests == 40);
    CHECK(needed(made_plan, a, submits[3]) == -1);
    CHECK(needed(made_plan, a, submits[4]) == 1);  // two were taken by then, one place was enough
    CHECK(needed(made_plan, a, submits[5]) == 2);
    CHECK(needed(made_plan, a, submits[39]) == 36);
    CHECK(needed(made_plan, a, waits[0]) == 1);
    CHECK(needed(made_plan, a, waits[1]) == 3);
    CHECK(made_plan.tasks[a].requests.rings == std::vector<std::pair<uint64_t, uint32_t>>{{submits[0], 0}});
    CHECK(made_plan.counted(Count::edges_to_themselves) == 0);
}

TEST_CASE_FIXTURE(Rings, "requests: a job that waits for the whole batch waits for the whole batch") {
    std::vector<uint64_t> firsts, waits;
    uint32_t made = 0;
    for (int batch = 0; batch < 10; ++batch) {
        firsts.push_back(submit(a, made + 1, made == 0 ? std::vector<Edge>{} : std::vector<Edge>{reaped(a, job_last)}));
        for (int i = 1; i < 8; ++i) {
            submit(a, made + static_cast<uint32_t>(i) + 1);
        }
        waits.push_back(enter(a, 8, 8));
        for (int i = 0; i < 8; ++i) {
            job_last = complete(a, ++made);
        }
    }
    const Plan made_plan = plan();
    CHECK(made_plan.rings.at(0).depth == 8);
    for (size_t batch = 1; batch < firsts.size(); ++batch) {
        CHECK(needed(made_plan, a, waits[batch]) == static_cast<int64_t>(8 * batch + 8));
    }
}

TEST_CASE_FIXTURE(Rings,
                  "requests: results taken one by one, after which the job waits for more, are drained as it did") {
    // Eight in flight; taken one by one before the next eight: the waits do not begin with the ring full.
    std::vector<uint64_t> firsts;
    uint32_t made = 0, done = 0;
    uint64_t last = 0;
    for (int batch = 0; batch < 5; ++batch) {
        firsts.push_back(submit(a, made + 1, made == 0 ? std::vector<Edge>{} : std::vector<Edge>{reaped(a, last)}));
        for (uint32_t i = 1; i < 8; ++i) {
            submit(a, made + i + 1);
        }
        made += 8;
        enter(a, 8, 0);
        for (int i = 0; i < 8; ++i) {
            enter(a, 0, 1, done == 0 ? std::vector<Edge>{} : std::vector<Edge>{reaped(a, last)});
            last = complete(a, ++done);
        }
    }
    const Plan made_plan = plan();
    CHECK_FALSE(made_plan.rings.at(0).full);
    CHECK(needed(made_plan, a, firsts[4]) == 32);
}

TEST_CASE_FIXTURE(Rings, "requests: what others make on a shared ring after a call is not waited for in that call") {
    constexpr int64_t kUs = 1'000;
    const auto request = [&](TaskId task, OpKind kind, int64_t at, uint32_t number) {
        const bool made = kind == OpKind::uring_submit;
        return job.add(task, {.kind = kind,
                              .begin = at * kUs,
                              .result = made ? 0 : 4'096,
                              .handle = made ? in : 0,
                              .fd = made ? 3 : 0,
                              .size = 4'096,
                              .arg = made ? int64_t{IORING_OP_READ} : 0,
                              .request = number});
    };
    const auto enters = [&](TaskId task, int64_t at) {
        return job.add(task, {.kind = OpKind::uring_enter,
                              .begin = at * kUs,
                              .duration = kUs,
                              .result = 1,
                              .handle = ring,
                              .fd = 4,
                              .size = 1});
    };
    request(a, OpKind::uring_submit, 10, 1);
    const uint64_t enter = enters(a, 11);
    request(a, OpKind::uring_complete, 15, 1);
    // It wakes the other task, and waits for it.
    const uint64_t wakes = job.add(a, {.kind = OpKind::wait, .begin = 16 * kUs, .result = 1, .arg = kWaitWokeOthers});
    const std::vector<Edge> woken{{a, EdgeKind::wake, 100, wakes}};
    job.add(b, {.kind = OpKind::wait, .begin = 1, .duration = 16 * kUs, .arg = kWaitFutex, .edges = woken});
    request(b, OpKind::uring_submit, 30, 2);
    enters(b, 31);
    request(b, OpKind::uring_complete, 40, 2);
    job.add(a, {.kind = OpKind::wait, .begin = 20 * kUs, .duration = 40 * kUs, .arg = kWaitFutex});
    job.add(a, {.kind = OpKind::compute, .begin = 61 * kUs, .duration = 30 * kUs, .flags = kComputeWorks});
    const uint64_t next = request(a, OpKind::uring_submit, 95, 3);
    enters(a, 96);
    const Plan made = plan();
    REQUIRE(made.rings.size() == 1);
    CHECK(made.rings[0].shared);
    CHECK(needed(made, a, enter) == -1);
    CHECK(needed(made, a, next) == 2);
}

TEST_CASE_FIXTURE(Rings, "requests: a write of what was read waits for that very read") {
    submit(a, 1);
    submit(a, 2);
    enter(a, 2, 2);
    const uint64_t second = complete(a, 2);
    complete(a, 1);
    const uint64_t write = submit(a, 3, {{a, EdgeKind::resource, 100, second}, reaped(a, second)}, IORING_OP_WRITE);
    enter(a, 1, 0);
    const Plan made_plan = plan();
    const std::vector<RequestNeed>& needs = made_plan.tasks[a].requests.needs;
    const auto found =
        std::find_if(needs.begin(), needs.end(), [&](const RequestNeed& need) { return need.request != 0; });
    REQUIRE(found != needs.end());
    CHECK(found->op == write);
    CHECK(found->request == 2);
    CHECK(made_plan.rings[0].data_edges == 1);
    CHECK(made_plan.counted(Count::edges_to_themselves) == 0);
}

TEST_CASE_FIXTURE(Rings, "requests: two rings of a task, requests of others, and those that no replay makes") {
    const HandleId other = job.handle(job.file("/ring2"));
    submit(a, 1);
    enter(a, 1, 0);
    const uint64_t second = submit(a, 2);
    submit(a, 3, {}, IORING_OP_TIMEOUT);
    enter(a, 2, 0, {}, other);
    complete(a, 3);
    complete(a, 2);
    const uint64_t third = submit(a, 4);
    enter(a, 1, 0, {}, other);
    submit(b, 5);
    enter(b, 1, 0);
    const Plan made_plan = plan();
    REQUIRE(made_plan.rings.size() == 2);
    CHECK(made_plan.rings[0].requests == 2);
    CHECK(made_plan.rings[0].shared);  // a and b
    CHECK(made_plan.rings[1].requests == 2);
    CHECK_FALSE(made_plan.rings[1].exact);
    CHECK(made_plan.tasks[a].requests.rings.size() == 2);
    CHECK(made_plan.tasks[a].requests.rings[1] == std::pair<uint64_t, uint32_t>{second, 1});
    CHECK(needed(made_plan, a, third) == 1);  // no edge tells what was taken: what was done counts, the timer does not
}

TEST_CASE_FIXTURE(Rings, "requests: libaio tells what was taken, and by which call") {
    const auto taken = [&](TaskId task, uint32_t request) {
        return job.add(task, {.kind = OpKind::aio_complete, .result = 4'096, .size = 4'096, .request = request});
    };
    SUBCASE("with the call") {
        aio(a, 1);
        aio(a, 2);
        const uint64_t wait = job.add(a, {.kind = OpKind::aio_reap, .result = 2, .size = 8, .arg = 1});
        taken(a, 2);
        taken(a, 1);
        const uint64_t third = aio(a, 3);
        const Plan made_plan = plan();
        CHECK(made_plan.rings.at(0).aio);
        CHECK(needed(made_plan, a, wait) == 1);
        CHECK(needed(made_plan, a, third) == 2);
    }
    SUBCASE("from before the call was recorded") {
        aio(a, 1);
        aio(a, 2);
        const uint64_t first = taken(a, 2);
        const uint64_t second = taken(a, 1);
        const Plan made_plan = plan();
        CHECK(needed(made_plan, a, first) == 1);
        CHECK(needed(made_plan, a, second) == 2);
    }
    SUBCASE("by another thread") {
        aio(a, 1);
        aio(a, 2);
        const uint64_t wait = job.add(b, {.kind = OpKind::aio_reap, .result = 1, .size = 8, .arg = 1});
        taken(b, 1);
        const uint64_t third = aio(a, 3);
        const Plan made_plan = plan();
        REQUIRE(made_plan.rings.size() == 1);
        CHECK(made_plan.rings[0].shared);
        CHECK(needed(made_plan, b, wait) == 1);
        CHECK(needed(made_plan, a, third) == 1);
    }
}

TEST_CASE_FIXTURE(Rings, "requests: what the filter leaves out is not waited for") {
    const HandleId program = job.handle(job.file("/usr/lib/x.so", Origin::existed, Role::program));
    job.add(
        a, {.kind = OpKind::uring_submit, .handle = program, .fd = 5, .size = 10, .arg = IORING_OP_READ, .request = 1});
    enter(a, 1, 1);
    complete(a, 1);
    const uint64_t mine = submit(a, 2);
    const uint64_t wait = enter(a, 1, 1);
    complete(a, 2);
    const Plan made_plan = plan(OpFilter::from_words({}, {"program"}));
    CHECK(made_plan.rings.at(0).requests == 1);
    CHECK(needed(made_plan, a, mine) == -1);
    CHECK(needed(made_plan, a, wait) == 1);
}

TEST_CASE_FIXTURE(Rings, "requests that stand for calls count as those of their ring, where the log has their calls") {
    const FileId name = job.file("/data/name");
    const auto call = [&](OpKind kind) { return job.add(a, {.kind = kind, .file = name}); };
    submit(a, 1, {}, IORING_OP_STATX);
    submit(a, 2, {}, IORING_OP_UNLINKAT);
    submit(a, 3, {}, IORING_OP_OPENAT);  // whose call the recording lost
    submit(a, 4);
    enter(a, 4, 1);
    const uint64_t unlinked = call(OpKind::unlink);
    const uint64_t first = complete(a, 2);
    const uint64_t second = enter(a, 0, 2, {reaped(a, first)});
    const uint64_t found = call(OpKind::statx);
    complete(a, 1);
    complete(a, 3);
    complete(a, 4);
    const Plan made = plan();
    REQUIRE(made.rings.size() == 1);
    CHECK(made.rings[0].requests == 3);
    CHECK(made.rings[0].depth == 3);
    CHECK(needed(made, a, second) == 3);
    const TaskRingCalls& calls = made.tasks[a].requests.calls;
    CHECK(calls.by_call == std::vector<std::pair<uint64_t, uint32_t>>{{unlinked, 2}, {found, 1}});
    REQUIRE(calls.submitted_by(0) != nullptr);
    CHECK(calls.submitted_by(0)->kind == OpKind::statx);
    CHECK(calls.submitted_by(0)->file == name);
    REQUIRE(calls.submitted_by(1) != nullptr);
    CHECK(calls.submitted_by(1)->kind == OpKind::unlink);
    CHECK(calls.submitted_by(2) == nullptr);
    CHECK(calls.submitted_by(3) == nullptr);
}

TEST_CASE_FIXTURE(Rings, "requests: a poll in which one was done was a wait for it; one that others ended was not") {
    constexpr int64_t kMs = 1'000'000;
    const auto poll = [&](int64_t begin, int64_t result, std::vector<Edge> edges = {}, int64_t what = kWaitPoll) {
        return job.add(a, {.kind = OpKind::wait,
                           .begin = begin,
                           .duration = 10 * kMs,
                           .result = result,
                           .arg = what,
                           .edges = edges});
    };
    const auto done = [&](int64_t begin, uint32_t request) {
        job.add(a, {.kind = OpKind::uring_complete,
                    .begin = begin,
                    .duration = 1,
                    .result = 4'096,
                    .size = 4'096,
                    .request = request});
    };
    for (uint32_t request = 1; request <= 8; ++request) {
        submit(a, request);
    }
    enter(a, 8, 0);
    const uint64_t first = poll(10 * kMs, 1);
    done(19 * kMs, 2);
    const uint64_t late = poll(30 * kMs, 1);
    done(41 * kMs, 1);
    const uint64_t timed_out = poll(50 * kMs, 0);
    done(59 * kMs, 3);
    const uint64_t sent = job.add(b, {.kind = OpKind::send, .begin = 69 * kMs});
    const uint64_t woken = poll(60 * kMs, 1, {{b, EdgeKind::wake, 100, sent}});
    done(69 * kMs, 4);
    const uint64_t cut = poll(70 * kMs, -EINTR);
    done(80 * kMs + 10'000, 5);
    const uint64_t signalled = poll(90 * kMs, -EINTR);
    done(110 * kMs, 6);
    const uint64_t in_futex = poll(120 * kMs, -EINTR, {}, kWaitFutex);
    done(130 * kMs + 10'000, 7);
    const uint64_t futex = poll(140 * kMs, 0, {}, kWaitFutex);
    done(149 * kMs, 8);
    const Plan made_plan = plan();
    CHECK(made_plan.tasks[a].requests.polls == std::vector<uint64_t>{first, cut, in_futex});
    CHECK(needed(made_plan, a, cut) == 5);
    CHECK(needed(made_plan, a, in_futex) == 7);
    CHECK(needed(made_plan, a, futex) == -1);
    CHECK(needed(made_plan, a, signalled) == -1);
    CHECK(needed(made_plan, a, first) == 1);
    CHECK(needed(made_plan, a, late) == -1);
    CHECK(needed(made_plan, a, timed_out) == -1);
    CHECK(needed(made_plan, a, woken) == -1);
    const std::vector<uint64_t>& explained = made_plan.tasks[a].explained;
    CHECK(std::is_sorted(explained.begin(), explained.end()));
    CHECK(std::count(explained.begin(), explained.end(), first) == 1);
    CHECK(std::count(explained.begin(), explained.end(), timed_out) == 0);
}

TEST_CASE_FIXTURE(Rings,
                  "requests: a polled ring is kept full although requests made late seem to be missing from it") {
    constexpr uint32_t kDepth = 4, kCount = 80;
    uint32_t made = 0, done = 0;
    std::vector<uint64_t> submits;
    const auto polled = [&](bool took) {
        submits.push_back(job.add(a, {.kind = OpKind::uring_submit,
                                      .handle = in,
                                      .fd = 3,
                                      .size = 4'096,
                                      .flags = kUringPolled,
                                      .arg = IORING_OP_READ,
                                      .request = ++made,
                                      .edges = took ? std::vector<Edge>{reaped(a, job_last)} : std::vector<Edge>{}}));
    };
    const auto looks = [&] { job.add(a, {.kind = OpKind::compute, .duration = 1'000'000}); };
    while (made < kDepth) {
        polled(false);
    }
    SUBCASE("results that were taken while the thread came to the requests before") {
        while (made < kCount) {
            looks();
            complete(a, ++done);
            job_last = complete(a, ++done);
            polled(true);
            job_last = complete(a, ++done);
            polled(true);
            polled(false);
        }
        const Plan made_plan = plan();
        CHECK(made_plan.rings.at(0).full);
        for (const uint64_t s : {uint64_t{4}, uint64_t{40}, uint64_t{79}}) {
            CHECK(needed(made_plan, a, submits[s]) == static_cast<int64_t>(s + 1 - kDepth));
        }
    }
    SUBCASE("a batch is over before the next one") {
        while (made < kCount) {
            looks();
            for (uint32_t i = 0; i < kDepth; ++i) {
                job_last = complete(a, ++done);
            }
            polled(true);
            polled(false);
            polled(false);
            polled(false);
        }
        const Plan made_plan = plan();
        CHECK_FALSE(made_plan.rings.at(0).full);
        CHECK(needed(made_plan, a, submits[4]) == 4);
        CHECK(needed(made_plan, a, submits[5]) == -1);
    }
}

TEST_CASE_FIXTURE(Rings,
                  "requests: each done as it was made, and never waited for, says nothing of how many there would be") {
    constexpr uint32_t kCount = 50;
    const auto one_by_one = [&](int64_t least, uint32_t at_a_time = 1) {
        for (uint32_t made = 0; made < kCount;) {
            for (uint32_t i = 0; i < at_a_time; ++i) {
                submit(a, made + i + 1, made == 0 ? std::vector<Edge>{} : std::vector<Edge>{reaped(a, job_last)});
            }
            enter(a, at_a_time, least);
            for (uint32_t i = 0; i < at_a_time; ++i) {
                job_last = complete(a, ++made);
            }
        }
        return plan().rings.at(0).at_once;
    };
    SUBCASE("none waited for") { CHECK(one_by_one(0) == kCount); }
    SUBCASE("each waited for: that is how the job is") { CHECK(one_by_one(1) == 0); }
    SUBCASE("two at a time") { CHECK(one_by_one(0, 2) == 0); }
}

TEST_CASE_FIXTURE(Rings, "requests: libaio's on files in the page cache are done as they are made on any storage") {
    constexpr uint32_t kCount = 50;
    const HandleId direct = job.handle(job.file("/data/direct"), O_RDONLY | O_DIRECT);
    const auto made_on = [&](HandleId handle) {
        for (uint32_t id = 1; id <= kCount; ++id) {
            aio(a, id, handle);
            job.add(a, {.kind = OpKind::aio_complete, .result = 4'096, .size = 4'096, .request = id});
        }
        return plan().rings.at(0).at_once;
    };
    SUBCASE("through the page cache") { CHECK(made_on(in) == 0); }
    SUBCASE("past it") { CHECK(made_on(direct) == kCount); }
}

TEST_CASE_FIXTURE(Rings, "requests: direct ones of parts of blocks need room for the blocks around them") {
    const HandleId direct = job.handle(job.file("/data/direct"), O_RDONLY | O_DIRECT);
    const auto part = [&](HandleId handle, int64_t offset, int64_t size) {
        job.add(a, {.kind = OpKind::uring_submit,
                    .handle = handle,
                    .fd = 3,
                    .offset = offset,
                    .size = size,
                    .arg = IORING_OP_READ,
                    .request = 1});
        enter(a, 1, 1);
        complete(a, 1);
        return plan().rings.at(0).part_blocks;
    };
    SUBCASE("whole ones") { CHECK_FALSE(part(direct, 8'192, 4'096)); }
    SUBCASE("an offset") { CHECK(part(direct, 512, 4'096)); }
    SUBCASE("a size") { CHECK(part(direct, 4'096, 512)); }
    SUBCASE("through the page cache") { CHECK_FALSE(part(in, 512, 512)); }
}

TEST_CASE("requests: a thread of the kernel's that computes for a ring brings no work of its own") {
    Rings made;
    bool by_call = false, looks = false, no_ring = false;
    SUBCASE("as the kernel makes them") {}
    SUBCASE("the job started it") { by_call = true; }
    SUBCASE("it looks at a file") { looks = true; }
    SUBCASE("no ring is there") { no_ring = true; }
    made.job.add(made.a, {.kind = OpKind::compute, .duration = 5'000});
    const uint64_t parent =
        by_call ? made.job.add(made.a, {.kind = OpKind::spawn, .duration = 1, .result = 1, .peer = made.b})
                : made.job.add(made.a, {.kind = OpKind::compute, .duration = 5'000});
    if (!no_ring) {
        made.submit(made.a, 1);
        made.enter(made.a, 1, 1);
        made.complete(made.a, 1);
    }
    const std::vector<Edge> begun = {{made.a, EdgeKind::lifecycle, 100, parent}};
    made.job.add(made.b, {.kind = OpKind::compute, .duration = 40'000'000, .edges = begun});
    if (looks) {
        made.job.add(made.b, {.kind = OpKind::pread, .result = 1, .handle = made.in, .fd = 3, .size = 1});
    }
    made.job.add(made.b, {.kind = OpKind::wait, .duration = 1'000'000});
    made.job.add(made.b, {.kind = OpKind::exit});
    const Plan plan = made.plan();
    CHECK(plan.tasks[made.b].serves_ring == !(by_call || looks || no_ring));
    CHECK(!plan.tasks[made.a].serves_ring);
}

TEST_CASE_FIXTURE(Rings, "requests: the last results, for which the recording never waited, are waited for") {
    uint64_t last = 0;
    SUBCASE("reads") {
        for (uint32_t i = 1; i <= 4; ++i) {
            submit(a, i);
            enter(a, 1, 0);
            last = complete(a, i);
        }
        CHECK(needed(plan(), a, last) == 4);
    }
    SUBCASE("a wait for one of them, which took all") {
        for (uint32_t i = 1; i <= 4; ++i) {
            submit(a, i);
        }
        enter(a, 4, 1);
        for (uint32_t i = 1; i <= 4; ++i) {
            last = complete(a, i);
        }
        CHECK(needed(plan(), a, last) == 4);
    }
    SUBCASE("libaio's") {
        for (uint32_t i = 1; i <= 2; ++i) {
            aio(a, i);
        }
        job.add(a, {.kind = OpKind::aio_reap, .result = 2, .size = 64});
        for (uint32_t i = 1; i <= 2; ++i) {
            last = job.add(a, {.kind = OpKind::aio_complete, .result = 4'096, .size = 4'096, .request = i});
        }
        CHECK(needed(plan(), a, last) == 2);
    }
    SUBCASE("not those of writes") {
        submit(a, 1, {}, IORING_OP_WRITE);
        enter(a, 1, 0);
        last = complete(a, 1);
        CHECK(needed(plan(), a, last) == -1);
    }
    SUBCASE("not where one never came") {
        submit(a, 1);
        submit(a, 2);
        enter(a, 2, 0);
        last = complete(a, 1);
        CHECK(needed(plan(), a, last) == -1);
    }
    SUBCASE("not where it waited") {
        submit(a, 1);
        enter(a, 1, 1);
        last = complete(a, 1);
        CHECK(needed(plan(), a, last) == -1);
    }
}

TEST_CASE_FIXTURE(Rings, "requests: when libaio's results came that a job took from memory is not known") {
    const auto recorded = [&](std::string_view source, int64_t took) {
        job.writer().header().source = source;
        for (uint32_t i = 1; i <= 3; ++i) {
            aio(a, i);
            job.add(a, {.kind = OpKind::compute, .duration = 2 * kMs});
            job.writer().append(
                a, {.kind = OpKind::aio_reap, .begin = job.now() + 2'000, .duration = took, .result = 1, .size = 1});
            job.add(a, {.kind = OpKind::aio_complete, .result = 4'096, .size = 4'096, .request = i});
        }
        return plan().rings.at(0).unclear_looks_ns;
    };
    SUBCASE("from memory") { CHECK(recorded("capture", 0) == 6 * kMs); }
    SUBCASE("by a call") { CHECK(recorded("capture", 500) == 0); }
    SUBCASE("a run's") { CHECK(recorded("replay", 0) == 0); }
}

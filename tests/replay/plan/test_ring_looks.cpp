// SPDX-License-Identifier: MIT
// Jobs that look for results of requests in memory, and jobs that compute while their requests are in flight.
#include "replay/plan/ring_looks.h"

#include <doctest/doctest.h>
#include <linux/io_uring.h>

#include <algorithm>
#include <random>
#include <vector>

#include "replay/plan/recorded_doubts.h"
#include "tests/replay/plan/request_log.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// One request after the other; what the task does between them is computing.
struct OneByOne : RequestLog {
    uint64_t taken = UINT64_MAX;  // op of the last result that the job took

    OneByOne() : RequestLog(O_RDONLY) {}

    uint64_t put(TaskId of, Op op) { return job.writer().append(of, op); }
    uint64_t submit(TaskId of, int64_t flags = 0) {
        std::vector<Edge> edges;
        if (taken != UINT64_MAX) {
            edges.push_back({of, EdgeKind::reaped, 100, taken});
        }
        return put(of, {.kind = OpKind::uring_submit,
                        .begin = now,
                        .handle = in,
                        .fd = 3,
                        .offset = int64_t{number} * 4'096,
                        .size = 4'096,
                        .flags = flags,
                        .arg = IORING_OP_READ,
                        .request = ++number,
                        .edges = edges});
    }
    void enter() {
        put(task, {.kind = OpKind::uring_enter,
                   .begin = now,
                   .duration = 2 * kUs,
                   .result = 1,
                   .handle = ring,
                   .fd = 4,
                   .size = 1});
        now += 2 * kUs;
    }
    uint64_t compute(TaskId of, int64_t ns) {
        const uint64_t op = put(of, {.kind = OpKind::compute, .begin = now, .duration = ns, .flags = kComputeWorks});
        now += ns;
        return op;
    }
    uint64_t result(TaskId of) {
        return put(of,
                   {.kind = OpKind::uring_complete, .begin = now, .result = 4'096, .size = 4'096, .request = number});
    }
    /// A request, so much computing until its result is there, and so much after that.
    uint64_t round(int64_t before, int64_t after, bool takes = true) {
        submit(task);
        enter();
        const uint64_t op = compute(task, before);
        const uint64_t done = result(task);
        taken = takes ? done : taken;
        compute(task, after);
        return op;
    }
    Plan plan() {
        submit(task);
        enter();
        return planned();
    }
    static bool has_look(const Plan& plan, TaskId task, uint64_t op, int64_t own_ns = 0) {
        const auto& looks = plan.tasks[task].requests.looks;
        return std::find(looks.begin(), looks.end(), RingWait{op, own_ns}) != looks.end();
    }
    static const RequestNeed* need(const Plan& plan, TaskId task, uint64_t op) {
        const auto& needs = plan.tasks[task].requests.needs;
        const auto found =
            std::find_if(needs.begin(), needs.end(), [&](const RequestNeed& each) { return each.op == op; });
        return found == needs.end() ? nullptr : &*found;
    }
};

}  // namespace

TEST_CASE_FIXTURE(OneByOne, "ring looks: computing that ends just after a result each time was a wait for it") {
    std::vector<uint64_t> computed;
    computed.reserve(20);
    for (int i = 0; i < 20; ++i) {
        computed.push_back(round((500 + 40 * i) * kUs, 3 * kUs));
    }
    const Plan made = plan();
    REQUIRE(made.rings.size() == 1);
    int64_t all = 0;
    for (int i = 0; i < 20; ++i) {
        CAPTURE(i);
        all += (500 + 40 * i) * kUs;
        CHECK(has_look(made, task, computed[static_cast<size_t>(i)]));
        const RequestNeed* const needs = need(made, task, computed[static_cast<size_t>(i)]);
        REQUIRE(needs != nullptr);
        CHECK(needs->looks);
        CHECK(needs->inside);
        CHECK(needs->count == static_cast<uint64_t>(i) + 1);
    }
    CHECK(made.tasks[task].requests.looks.size() == 20);
    CHECK(made.rings[0].looked_ns == all);
    CHECK(made.rings[0].unclear_looks_ns == 0);
    // 17.6 ms of looking become 21 times what a read takes; 3 us after each are the job's own.
    CHECK(predicted(10 * kUs).elapsed_ns < 400 * kUs);
    const int64_t slow = predicted(2 * kMs).elapsed_ns;
    CHECK(slow > 42 * kMs);
    CHECK(slow < 43 * kMs);
    CHECK(predicted(2 * kMs).path.of(PathPart::device) > 39 * kMs);
    CHECK_FALSE(looked_for_results(predicted(10 * kUs).doubts).empty());
}

TEST_CASE_FIXTURE(OneByOne, "ring looks: a job that computes while its requests are in flight goes on computing") {
    // Results come at any moment of 1 ms.
    std::minstd_rand random(1);
    int64_t all = 0;
    for (int i = 0; i < 200; ++i) {
        const int64_t before = 20 * kUs + static_cast<int64_t>(random() % 960) * kUs;
        round(before, kMs - before);
        all += kMs;
    }
    const Plan made = plan();
    CHECK(made.tasks[task].requests.looks.empty());
    CHECK(made.rings.at(0).looked_ns == 0);
    CHECK(made.rings.at(0).unclear_looks_ns == 0);
    CHECK(predicted(10 * kUs).elapsed_ns >= all);
}

TEST_CASE_FIXTURE(OneByOne, "ring looks: a run's log has results where its task got to them, and says nothing") {
    job.writer().header().source = "replay";
    for (int i = 0; i < 40; ++i) {
        round(kMs, 2 * kUs);
    }
    const Plan made = plan();
    CHECK(made.tasks[task].requests.looks.empty());
    CHECK(made.rings.at(0).looked_ns == 0);
    CHECK(made.rings.at(0).unclear_looks_ns == 0);
}

TEST_CASE_FIXTURE(OneByOne, "ring looks: computing after which no result was taken was no look") {
    for (int i = 0; i < 40; ++i) {
        round(kMs, 2 * kUs, i == 0);
    }
    const Plan made = plan();
    CHECK(made.tasks[task].requests.looks.empty());
    CHECK(made.rings.at(0).unclear_looks_ns == 0);
}

TEST_CASE_FIXTURE(OneByOne, "ring looks: a job may look where it waits long, and compute where it does not") {
    std::minstd_rand random(1);
    std::vector<uint64_t> long_ones;
    for (int i = 0; i < 100; ++i) {
        const int64_t before = 20 * kUs + static_cast<int64_t>(random() % 60) * kUs;
        round(before, 100 * kUs - before);
        if (i % 10 == 0) {
            long_ones.push_back(round(90 * kMs, 100 * kUs));
        }
    }
    const Plan made = plan();
    CHECK(made.tasks[task].requests.looks.size() == long_ones.size());
    for (const uint64_t op : long_ones) {
        CHECK(has_look(made, task, op));
    }
}

TEST_CASE_FIXTURE(OneByOne, "ring looks: results that come together are one arrival, as behind a limit in steps") {
    // 16 in flight, which all come every 100 ms; then the job works 500 us on each, and makes another for it.
    constexpr int kDepth = 16;
    std::vector<uint64_t> waits;
    waits.reserve(8);
    for (int i = 0; i < kDepth; ++i) {
        submit(task);
    }
    enter();
    for (uint32_t step = 0; step < 8; ++step) {
        waits.push_back(compute(task, 92 * kMs));
        std::vector<uint64_t> came;
        came.reserve(kDepth);
        for (uint32_t i = 0; i < kDepth; ++i) {
            came.push_back(put(task, {.kind = OpKind::uring_complete,
                                      .begin = now,
                                      .result = 4'096,
                                      .size = 4'096,
                                      .request = step * kDepth + i + 1}));
        }
        for (const uint64_t one : came) {
            taken = one;
            compute(task, 500 * kUs);
            submit(task);
            enter();
        }
    }
    const Plan made = plan();
    CHECK(made.tasks[task].requests.looks.size() == waits.size());
    for (const uint64_t op : waits) {
        CHECK(has_look(made, task, op));
    }
}

TEST_CASE_FIXTURE(OneByOne, "ring looks: too few to tell are a doubt, where they are much of the recording") {
    for (int i = 0; i < 3; ++i) {
        round(900 * kUs, 30 * kUs);
    }
    SUBCASE("much") {
        const Plan made = plan();
        CHECK(made.tasks[task].requests.looks.empty());
        CHECK(made.rings.at(0).unclear_looks_ns == 2'700 * kUs);
        const RecordedDoubts doubts = recorded_doubts(made);
        CHECK(
            looks_for_results(doubts) ==
            "2.70 ms of computing ended as results of requests came or were taken: a job that looks for them in memory "
            "computes as long as when recorded");
        CHECK(looked_for_results(doubts).empty());
    }
    SUBCASE("little") {
        now += 100 * kMs;
        CHECK(looks_for_results(recorded_doubts(plan())).empty());
    }
}

TEST_CASE_FIXTURE(OneByOne, "ring looks: nine that came within a twelfth of the end may be chance, thirty are not") {
    bool many = false;
    SUBCASE("nine") {}
    SUBCASE("thirty") { many = true; }
    for (int i = 0; i < (many ? 30 : 9); ++i) {
        round(920 * kUs, 80 * kUs);
    }
    const Plan made = plan();
    CHECK(made.tasks[task].requests.looks.empty() == !many);
    CHECK((made.rings.at(0).unclear_looks_ns == 0) == many);
}

TEST_CASE_FIXTURE(OneByOne, "ring looks: the last results, after which the job makes no request, are waited for") {
    for (int i = 0; i < 20; ++i) {
        round(kMs, 3 * kUs);
    }
    submit(task);
    enter();
    const uint64_t last = compute(task, kMs);
    result(task);
    compute(task, 5 * kUs);
    job.add(task, {.kind = OpKind::close, .begin = now, .handle = in, .fd = 3});
    const Plan made = planned();
    CHECK(has_look(made, task, last));
    REQUIRE(need(made, task, last) != nullptr);
    CHECK(need(made, task, last)->count == 21);
}

TEST_CASE_FIXTURE(OneByOne, "ring looks: what other calls interrupt is no look") {
    for (int i = 0; i < 40; ++i) {
        submit(task);
        enter();
        compute(task, kMs);
        job.add(
            task,
            {.kind = OpKind::pread, .begin = now, .duration = kUs, .result = 10, .handle = in, .fd = 3, .size = 10});
        now += kUs;
        taken = result(task);
        compute(task, 2 * kUs);
    }
    CHECK(plan().tasks[task].requests.looks.empty());
}

TEST_CASE_FIXTURE(OneByOne, "ring looks: a job whose requests a thread of the kernel takes waits for that thread") {
    const TaskId kernel = job.task(process);
    const uint64_t before =
        job.add(task, {.kind = OpKind::fadvise, .begin = now, .duration = kUs, .handle = in, .fd = 3});
    now += kUs;
    const int64_t begun = now;
    std::vector<uint64_t> looks;
    looks.reserve(20);
    uint64_t first = 0;
    const uint64_t idle = compute(kernel, 70 * kUs);
    for (int i = 0; i < 20; ++i) {
        const uint64_t made = submit(kernel, kUringPolled);
        first = i == 0 ? made : first;
        looks.push_back(compute(kernel, kMs));
        taken = result(kernel);
        compute(kernel, 3 * kUs);
    }
    const uint64_t last = submit(kernel, kUringPolled);
    const int64_t at_last = now;
    const int64_t ended = now + 40 * kUs;
    const uint64_t spins =
        put(task, {.kind = OpKind::compute, .begin = begun, .duration = ended - begun, .flags = kComputeWorks});
    const Plan made = planned();
    REQUIRE(made.rings.size() == 1);
    CHECK(made.rings[0].polled);
    CHECK(made.rings[0].looker == task);
    CHECK(has_look(made, task, spins, ended - at_last));
    CHECK(has_look(made, kernel, idle, 70 * kUs));
    for (const uint64_t op : looks) {
        CHECK(has_look(made, kernel, op));
    }
    const auto waits = [&](TaskId who, uint64_t op, TaskId source, uint64_t of) {
        const auto& all = made.tasks[who].waits;
        return std::any_of(all.begin(), all.end(), [&](const WaitFor& wait) {
            return wait.op == op && wait.task == source && wait.source == of && wait.count != 0;
        });
    };
    CHECK(waits(task, spins, kernel, last));
    CHECK(waits(kernel, first, task, before));
    CHECK(looks_for_results(recorded_doubts(made)).empty());
    CHECK(predicted(10 * kUs).elapsed_ns < kMs);
    CHECK(predicted(2 * kMs).elapsed_ns > 40 * kMs);
}

TEST_CASE("ring looks: times of a hostile log cannot overflow") {
    LookEvidence evidence;
    RingLooks looks;
    for (uint64_t op = 0; op < 40; op += 3) {
        looks.computed(1, op, INT64_MIN, INT64_MAX);
        looks.result(1, op + 1, INT64_MAX);
        looks.request(1, op + 2, INT64_MIN, 0);
    }
    looks.computed(1, 42, 0, INT64_MAX);
    looks.computed(1, 43, 0, INT64_MAX);
    looks.result(1, 44, 0);
    looks.request(1, 45, INT64_MAX, 0);
    looks.finish();
    for (const RingLook& look : looks.looks()) {
        evidence.add(look);
        evidence.add(look);
    }
    evidence.decide();
    CHECK(evidence.unclear_ns() >= 0);
}

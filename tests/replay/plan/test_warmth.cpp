// SPDX-License-Identifier: MIT
// Computing after waits that are shorter or longer than recorded.
#include <doctest/doctest.h>

#include "replay/plan/warmth.h"
#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr WaitCost kCost{.extra_ns = {0, 50'000, 200'000, 500'000, 600'000}, .over_ns = 400'000};

/// A trainer of 40 steps: an accelerator works for 10 ms, the trainer waits for it and computes for 2 ms.
void steps(JobBuilder& job) {
    const TaskId task = job.lone_task();
    for (int64_t step = 0, at = 1'000; step < 40; ++step, at += 12 * kMs + 10 * kUs) {
        job.add(task, {.kind = OpKind::gpu_submit, .begin = at, .size = 10 * kMs});
        job.add(task, {.kind = OpKind::gpu_wait, .begin = at + 10 * kUs, .duration = 10 * kMs - 10 * kUs});
        job.add(task, {.kind = OpKind::compute, .begin = at + 10 * kMs, .duration = 2 * kMs, .flags = 3});
    }
}

}  // namespace

TEST_CASE("warmth: what a wait cost in the recording is taken off, what it costs here is added") {
    Warmth same({kCost, kCost}, 1.0);
    CHECK(same.change(5 * kMs, kMs, 700 * kMs) == 0);  // what was before the first is not known
    same.computed(6 * kMs, 701 * kMs);
    SUBCASE("the same wait") { CHECK(same.change(16 * kMs, 2 * kMs, 711 * kMs) == 0); }
    SUBCASE("a shorter one, then the same again") {
        const int64_t change = same.change(16 * kMs, 8 * kMs, 703 * kMs + 500 * kUs);
        CHECK(change == doctest::Approx(-450 * kUs).epsilon(0.001));
        same.computed(24 * kMs, 711 * kMs);
        CHECK(same.change(24 * kMs, kMs, 711 * kMs) == 0);
    }
    SUBCASE("a longer one") {
        CHECK(same.change(8 * kMs + 500 * kUs, 8 * kMs, 711 * kMs) == doctest::Approx(450 * kUs).epsilon(0.001));
    }
    SUBCASE("short computing pays a part, what follows the rest") {
        const int64_t first = same.change(16 * kMs, 400 * kUs, 703 * kMs + 500 * kUs);
        // Of 500 us it paid 300 at most (three quarters of its time), of 50 us 63 %.
        CHECK(first == doctest::Approx(-300 * kUs + 31'606).epsilon(0.001));
        same.computed(16 * kMs + 400 * kUs, 704 * kMs);
        const int64_t second = same.change(16 * kMs + 401 * kUs, 8 * kMs, 704 * kMs);
        CHECK(first + second == doctest::Approx(-450 * kUs).epsilon(0.001));
    }
    SUBCASE("waits with little computing between them add up") {
        // Here 2.5 ms, then 2.5 ms more; there none. Within 100 us 22 % of 50 us are paid, and of the 2.5 ms 1.95 are
        // left: 4.45 ms cost 167 us.
        int64_t change = same.change(6 * kMs, 100 * kUs, 703 * kMs + 500 * kUs);
        CHECK(change == doctest::Approx(11'060).epsilon(0.001));
        same.computed(6 * kMs + 100 * kUs, 704 * kMs);
        change = same.change(6 * kMs + 100 * kUs, 8 * kMs, 706 * kMs + 500 * kUs);
        CHECK(change == doctest::Approx(166'822).epsilon(0.001));
    }
    SUBCASE("calls that are hardly a wait do not") {
        int64_t change = 0;
        for (int64_t i = 0; i < 400; ++i) {
            change += same.change(6 * kMs + i * 10 * kUs, 10 * kUs, 701 * kMs + i * 109 * kUs);
            same.computed(6 * kMs + (i + 1) * 10 * kUs, 701 * kMs + i * 109 * kUs + 10 * kUs);
        }
        CHECK(change == 0);
    }
    SUBCASE("times of a hostile log") {
        CHECK(same.change(INT64_MIN, 10, INT64_MAX) <= 10);
        CHECK(same.change(0, INT64_MAX, 0) < INT64_MAX);
        CHECK(same.change(16 * kMs, -1, 0) == 0);
    }
}

TEST_CASE("warmth: two machines, a scale, and nothing where one of them is not known") {
    WaitCost other = kCost;
    for (double& one : other.extra_ns) {
        one *= 2;
    }
    Warmth twice({kCost, other}, 1.0);
    twice.computed(0, 0);
    CHECK(twice.change(10 * kMs, 8 * kMs, 10 * kMs) == doctest::Approx(500 * kUs).epsilon(0.001));
    Warmth half({kCost, kCost}, 0.5);  // this machine computes twice as fast, and pays for waits what it pays
    half.computed(0, 0);
    CHECK(half.change(10 * kMs, 8 * kMs, 10 * kMs) == doctest::Approx(250 * kUs).epsilon(0.001));
    Warmth unknown({kCost, {}}, 1.0);
    unknown.computed(0, 0);
    CHECK(unknown.change(10 * kMs, 8 * kMs, 0) == 0);
}

TEST_CASE("warmth: a replay and a prediction with a faster accelerator compute for less, and say so") {
    const TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    steps(job);
    const LogReader log = job.finish();
    std::filesystem::create_directories(dir / "root");
    mark_prepared(dir / "root");
    ReplayOptions options = afap(dir / "root");
    options.pace = Pace::causal;
    options.speeds.gpu = 4;
    options.speeds.waits = {kCost, kCost};
    // Waits of 2.5 in place of 10 ms: 450 us less for each computing but the first, of which 2 ms pay nearly all.
    constexpr double kLess = -39 * 450e3;
    // On a busy machine waits are longer, and less is saved: one undisturbed run of a few will do.
    ReplayResult result;
    for (int run = 0; run < 10; ++run) {
        result = replay(log, options);
        CHECK(result.ended == "complete");
        CHECK(result.fidelity.computing_asked_ns == doctest::Approx(40 * 2e6 + result.fidelity.after_waits_ns));
        if (result.fidelity.after_waits_ns == doctest::Approx(kLess).epsilon(0.3)) {
            break;
        }
    }
    INFO(describe(result));
    CHECK(result.fidelity.after_waits_ns == doctest::Approx(kLess).epsilon(0.3));

    PredictOptions how;
    how.storage.read = {{4096, 0}};
    how.speeds = options.speeds;
    for (const int cpus : {0, 1}) {
        how.cpus = cpus;
        const Prediction predicted = predict(log, how);
        CHECK(static_cast<double>(predicted.after_waits_ns) == doctest::Approx(kLess).epsilon(0.05));
        CHECK(static_cast<double>(predicted.computing_ns) == doctest::Approx(40 * 2e6 + kLess).epsilon(0.05));
    }
    how.speeds.waits = {};
    CHECK(predict(log, how).after_waits_ns == 0);
}

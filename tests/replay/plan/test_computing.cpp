// SPDX-License-Identifier: MIT
// What recorded computing costs here: processor time, or only time.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cmath>

#include "replay/plan/causal_step.h"
#include "replay/plan/computing.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

int64_t processor_ns_of_children() {
    rusage use{};
    getrusage(RUSAGE_CHILDREN, &use);
    const auto ns = [](const timeval& t) { return int64_t{t.tv_sec} * 1'000'000'000 + int64_t{t.tv_usec} * 1'000; };
    return ns(use.ru_utime) + ns(use.ru_stime);
}

struct Run {
    ReplayResult result;
    int64_t processor_ns = 0;
};

/// `tasks` compute at once for 120 ms each.
Run computing(int tasks, int64_t flags, Pace pace, DelayPolicy delay) {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const ProcessId process = job.process();
    for (int i = 0; i < tasks; ++i) {
        job.add(job.task(process), {.kind = OpKind::compute, .begin = 1'000, .duration = 120 * kMs, .flags = flags});
    }
    const LogReader reader = job.finish();
    ReplayOptions options = afap({});
    options.engine = EngineKind::null;
    options.pace = pace;
    options.delay = delay;
    const int64_t before = processor_ns_of_children();
    Run run{replay(reader, options), 0};
    run.processor_ns = processor_ns_of_children() - before;
    CHECK(run.result.ended == "complete");
    CHECK(run.result.elapsed_ns >= 120 * kMs);
    return run;
}

}  // namespace

TEST_CASE("how many processors a recording computed on at once") {
    ComputeLoad none;
    CHECK(none.peak() == 0.0);
    ComputeLoad load(1'000 * kMs);
    load.add(1'000 * kMs, 50 * kMs);
    CHECK(load.peak() == doctest::Approx(0.5));
    load.add(1'000 * kMs, 100 * kMs);
    load.add(1'050 * kMs, 100 * kMs);  // half of it in the next tenth of a second
    CHECK(load.peak() == doctest::Approx(2.0));
    // Times that cannot be true say nothing.
    load.add(0, 1'000'000 * kMs);
    load.add(INT64_MAX - 5, INT64_MAX);
    load.add(1'200 * kMs, -5);
    CHECK(load.peak() == doctest::Approx(2.0));
    // Over longer stretches where the recording is long.
    load.add(90'000'000 * kMs, 100 * kMs);
    CHECK(load.peak() > 0.0);
    CHECK(load.peak() < 0.1);
}

TEST_CASE("what waking up took is made up for, what others took is not") {
    constexpr TimingNoise kNoise;
    CHECK(compute_deadline(1'000, 1'500, 10'000, kNoise.late_wakeup) == 11'000);
    CHECK(compute_deadline(1'000, 5'001'000, 10'000, kNoise.late_wakeup) == 4'811'000);
    CHECK(compute_deadline(1'000, 1'500, 10'000, 0) == 11'500);
    CHECK(compute_passed(11'000, 11'300, kNoise.overshoot) == 11'000);
    CHECK(compute_passed(11'000, 90'000, kNoise.overshoot) == 90'000);
    CHECK(compute_passed(11'000, 11'300, 0) == 11'300);
}

TEST_CASE("computing takes the processor under spin and work, not under sleep") {
    for (const DelayPolicy policy : {DelayPolicy::spin, DelayPolicy::work, DelayPolicy::sleep}) {
        const Run run = computing(1, 3, Pace::causal, policy);
        CAPTURE(policy_name(policy));
        CHECK(run.result.delay == policy);
        CHECK((run.processor_ns >= 100 * kMs) == (policy != DelayPolicy::sleep));
    }
}

TEST_CASE("computing takes the processor at recorded times, too, as far as others leave it") {
    bool more = false;
    for (int turn = 0; turn < 30 && !more; ++turn) {
        const Run slept = computing(1, 3, Pace::timed, DelayPolicy::sleep);
        const Run spun = computing(1, 3, Pace::timed, DelayPolicy::spin);
        more = spun.processor_ns > slept.processor_ns + 8 * kMs;
    }
    CHECK(more);
}

TEST_CASE("auto: what the log does not know to have computed sleeps") {
    CHECK(computing(1, 0, Pace::causal, DelayPolicy::automatic).processor_ns < 100 * kMs);
    CHECK(computing(1, 0, Pace::causal, DelayPolicy::spin).processor_ns >= 100 * kMs);
    CHECK(computing(1, 1, Pace::causal, DelayPolicy::spin).processor_ns < 100 * kMs);  // it slept
    CHECK(computing(1, 3, Pace::causal, DelayPolicy::automatic).processor_ns >= 100 * kMs);
}

TEST_CASE("more computing threads than processors share them; auto sleeps instead and says so") {
    const int tasks = 2 * usable_cpus() + 2;
    const Run spun = computing(tasks, 3, Pace::causal, DelayPolicy::spin);
    CHECK(spun.processor_ns >= tasks * 110 * kMs);
    CHECK(spun.result.elapsed_ns >= 2 * 110 * kMs);
    const Run slept = computing(tasks, 3, Pace::causal, DelayPolicy::automatic);
    CHECK(slept.result.delay == DelayPolicy::sleep);
    CHECK(slept.result.compute_peak == doctest::Approx(tasks));
    REQUIRE(slept.result.notes.size() >= 1);
    CHECK(slept.result.notes[0].find("CPUs for compute at once") != std::string::npos);
}

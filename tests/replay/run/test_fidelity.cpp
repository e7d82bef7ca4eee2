// SPDX-License-Identifier: MIT
// What a run says of itself: kept up, or not and why.
#include <doctest/doctest.h>
#include <sched.h>

#include "replay/run/fidelity.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

bool says(const Fidelity& fidelity, const char* text) {
    for (const std::string& failure : fidelity.failures) {
        if (failure.find(text) != std::string::npos) {
            return true;
        }
    }
    return false;
}

}  // namespace

TEST_CASE("fidelity: a run that kept the time") {
    Fidelity fidelity;
    Histogram lateness;
    for (int i = 0; i < 1000; ++i) {
        lateness.add(100'000);
        fidelity.delay_error.add(50'000);
    }
    fidelity.delays_asked_ns = 2e9;
    fidelity.computing_asked_ns = 10e9;
    fidelity.computing_took_ns = 14.5e9;
    fidelity.recorded_run_queue_ns = 4'000 * kMs;
    fidelity.other_cpus = 1.5;
    fidelity.stolen_cpus = 0.7;
    judge(fidelity, lateness, 8'000 * kMs, 2);
    CHECK(fidelity.failures.empty());
    CHECK(fidelity.delay_total_error() == doctest::Approx(0.025));
}

TEST_CASE("fidelity: late, imprecise, or without a processor") {
    Fidelity fidelity;
    Histogram lateness;
    SUBCASE("late") {
        for (int i = 0; i < 100; ++i) {
            lateness.add(600 * kMs);
        }
        judge(fidelity, lateness, 10'000 * kMs, 2);
        CHECK(says(fidelity, "This machine could not keep up: p99 lateness of ops is 6"));
    }
    SUBCASE("late, as the storage is slower") {
        for (int i = 0; i < 100; ++i) {
            lateness.add(600 * kMs);
        }
        fidelity.calls_longer_ns = 590 * kMs;
        judge(fidelity, lateness, 10'000 * kMs, 2);
        CHECK(says(fidelity, "This storage could not keep up: p99 lateness of ops is 6"));
        CHECK(says(fidelity, "calls on files took 0.59 s longer than recorded"));
    }
    SUBCASE("imprecise") {
        for (int i = 0; i < 100; ++i) {
            fidelity.delay_error.add(6 * kMs);
        }
        fidelity.delays_asked_ns = 10e9;
        judge(fidelity, lateness, 10'000 * kMs, 2);
        CHECK(says(fidelity, "sleep overshoot: 600 ms over 10.00 s"));
    }
    SUBCASE("imprecise where nobody waited for it, and on the way to the end") {
        for (int i = 0; i < 100; ++i) {
            fidelity.delay_error.add(20 * kMs);
        }
        fidelity.delays_asked_ns = 10e9;
        fidelity.path_known = true;
        fidelity.added_ns = 400e6;
        judge(fidelity, lateness, 10'000 * kMs, 2);
        CHECK(fidelity.failures.empty());
        fidelity.added_ns = 600e6;
        judge(fidelity, lateness, 10'000 * kMs, 2);
        CHECK(says(fidelity, "0.60 s of the 10.00 s were added on the critical path"));
    }
    SUBCASE("without a processor") {
        fidelity.computing_asked_ns = 10e9;
        fidelity.computing_took_ns = 20e9;
        fidelity.recorded_run_queue_ns = 3'000 * kMs;
        judge(fidelity, lateness, 10'000 * kMs, 2);
        CHECK(says(fidelity, "compute of 10.00 s waited 10.00 s for a CPU (recorded: 3.00 s); it has only 2 CPUs"));
    }
    SUBCASE("others had it") {
        fidelity.computing_asked_ns = 10e9;
        fidelity.computing_took_ns = 20e9;
        fidelity.other_cpus = 1.25;
        judge(fidelity, lateness, 10'000 * kMs, 2);
        CHECK(says(fidelity, "other programs used 1.2 of 2 CPUs"));
    }
    CHECK(fidelity.failures.size() == 1);
}

TEST_CASE("fidelity: a few milliseconds are no failure, however short the run") {
    Fidelity fidelity;
    Histogram lateness;
    lateness.add(40 * kMs);
    fidelity.delay_error.add(40 * kMs);
    fidelity.delays_asked_ns = 1e6;
    fidelity.computing_asked_ns = 1e6;
    fidelity.computing_took_ns = 40e6;
    judge(fidelity, lateness, 50 * kMs, 2);
    CHECK(fidelity.failures.empty());
}

TEST_CASE("what other programs used of the processors") {
    const ProcessorUse from{10e9, 1e9, 1e9, 0}, to{16e9, 3e9, 3e9, 4'000 * kMs};
    CHECK(others_between(from, to) == doctest::Approx(1.0));
    CHECK(others_between({}, to) == -1.0);
    CHECK(stolen_between(from, to) == doctest::Approx(0.5));
    CHECK(stolen_between({}, to) == -1.0);
    const ProcessorUse now = read_processor_use();
    CHECK(now.machine_ns >= now.own_ns * 0.5);
}

TEST_CASE("what other programs used: only of the processors that a run may use") {
    cpu_set_t all, one;
    REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
    if (CPU_COUNT(&all) < 2) {
        REPRISE_SKIP("one processor only");
    }
    int first = 0;
    while (!CPU_ISSET(first, &all)) {
        ++first;
    }
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    const ProcessorUse of_all = read_processor_use();
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    const ProcessorUse of_one = read_processor_use();
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
    CHECK(of_one.machine_ns > 0);
    CHECK(of_one.machine_ns < 0.9 * of_all.machine_ns);
}

TEST_CASE("fidelity: in a run, delays and computing are counted, and too few processors are told") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const ProcessId process = job.process();
    const int tasks = 3 * usable_cpus() + 3;
    for (int i = 0; i < tasks; ++i) {
        const TaskId task = job.task(process);
        job.add(task, {.kind = OpKind::compute, .begin = 1'000, .duration = 100 * kMs, .flags = 3});
        job.add(task, {.kind = OpKind::wait, .begin = 101 * kMs, .duration = 20 * kMs, .arg = 3});
    }
    const LogReader reader = job.finish();
    ReplayOptions options = afap({});
    options.engine = EngineKind::null;
    options.pace = Pace::causal;
    options.delay = DelayPolicy::spin;
    const ReplayResult result = replay(reader, options);
    CHECK(result.fidelity.delay_error.count() == static_cast<uint64_t>(tasks));
    CHECK(result.fidelity.delays_asked_ns == doctest::Approx(tasks * 20e6).epsilon(0.2));
    CHECK(result.fidelity.computing_asked_ns == doctest::Approx(tasks * 100e6));
    CHECK(says(result.fidelity, "for a CPU"));
    options.pace = Pace::timed;
    CHECK(replay(reader, options).fidelity.delay_error.count() == static_cast<uint64_t>(2 * tasks));
}

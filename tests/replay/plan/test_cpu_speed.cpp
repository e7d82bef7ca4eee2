// SPDX-License-Identifier: MIT
// How much faster this machine computes than the one of a recording, and what is not known of it.
#include <doctest/doctest.h>

#include <ctime>
#include <filesystem>
#include <string>

#include "calibrate/work_profile.h"
#include "formats/oplog/header_facts.h"
#include "replay/plan/cpu_speed.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr WaitCost kWaitsHere{.extra_ns = {1e4, 2e4, 3e4, 4e4, 5e4}, .over_ns = 6e4};

/// A profile of this machine, as if it had just been measured, kept in `dir`.
WorkProfile keep_profile(const TempDir& dir, const WaitCost& waits = kWaitsHere) {
    WorkProfile here = {.identity = machine_identity(), .cpus = 1, .one = {1000, 2000, 3000}, .waits = waits};
    here.spread = {0.01, 0.02, 0.03};
    here.boot = boot_identity();
    here.measured_unix_s = std::time(nullptr);
    write_file(dir / kept_profile_name(), to_json(here));
    return here;
}

MachineSpeed beside(const TempDir& dir, const WorkProfile& there) {
    Header recorded;
    write_fact(recorded, fact::capture_profile, to_json(there));
    return machine_speed_here(recorded, dir.path());
}

}  // namespace

TEST_CASE("the speed of this machine: taken as 1 where nothing is known, and nothing is measured for it") {
    const TempDir dir;
    Header recorded;
    CHECK(machine_speed_here(recorded, dir.path()).cpu.source == CpuSpeed::Source::no_profile);
    CHECK(!recorded_wait_cost(recorded).measured());
    write_fact(recorded, fact::capture_profile, "no profile");
    const MachineSpeed speed = machine_speed_here(recorded, dir.path());
    CHECK(speed.cpu.source == CpuSpeed::Source::no_profile);
    CHECK(!speed.cpu.verified());
    CHECK(!speed.waits.known());
    CHECK(!std::filesystem::exists(dir / kept_profile_name()));
}

TEST_CASE(
    "the speed of this machine: exactly 1 on the same machine where the rates agree as far as they were measured") {
    const TempDir dir;
    const WorkProfile here = keep_profile(dir);
    WorkProfile there = here;
    there.one = {1000 * 1.035, 2000 * 0.945, 3000 * 1.07};  // the spreads of both, and 2 %
    const MachineSpeed same = beside(dir, there);
    CHECK(same.cpu.source == CpuSpeed::Source::same_machine);
    CHECK(same.cpu.verified());
    CHECK(same.cpu.ratio == 1.0);
    CHECK(same.waits.known());
    CHECK(same.waits.here == same.waits.there);
    CHECK(same.doubt.empty());

    SUBCASE("what a profile does not say of itself is a twentieth") {
        there.spread = {};
        there.one = {1000 * 1.08, 2000, 3000};  // 0.01 + 0.05 + 0.02
        CHECK(beside(dir, there).cpu.source == CpuSpeed::Source::same_machine);
        there.one.integer = 1000 * 1.09;
        CHECK(beside(dir, there).cpu.source == CpuSpeed::Source::same_name);
    }
}

TEST_CASE("the speed of this machine: a clone has its name and another speed") {
    const TempDir dir;
    const WorkProfile here = keep_profile(dir);
    for (double WorkRates::*const kind : {&WorkRates::integer, &WorkRates::inflate, &WorkRates::memcpy}) {
        WorkProfile there = here;
        there.boot += 1;
        there.one.*kind *= 2;
        const MachineSpeed other = beside(dir, there);
        CHECK(other.cpu.source == CpuSpeed::Source::same_name);
        CHECK(other.cpu.ratio == doctest::Approx(0.7937).epsilon(0.001));  // the cube root of a half
        CHECK(to_string(other.cpu).find("not the same speed") != std::string::npos);
    }
}

TEST_CASE("the speed of this machine: measured again where it contradicts a recording made since it was booted") {
    const TempDir dir;
    WorkProfile kept = keep_profile(dir);
    kept.measured_unix_s -= 120;
    write_file(dir / kept_profile_name(), to_json(kept));
    WorkProfile there = measure_work_profile();
    CHECK(beside(dir, there).cpu.source != CpuSpeed::Source::same_boot);  // what was kept was wrong
    const auto now = work_profile_of(read_file(dir / kept_profile_name()));
    REQUIRE(now);
    CHECK(now->one.integer != kept.one.integer);
    there.one.integer *= 3;
    const MachineSpeed wrong = beside(dir, there);
    CHECK(wrong.cpu.source == CpuSpeed::Source::same_boot);
    CHECK(to_string(wrong.cpu).find("--cpu-speed 1") != std::string::npos);
}

TEST_CASE("the speed of this machine: the ratio of the profiles on another") {
    const TempDir dir;
    const WorkProfile here = keep_profile(dir);
    WorkProfile there = here;
    there.identity += 1;
    there.waits.extra_ns[4] = 9e4;
    there.one = {here.one.integer / 2, here.one.inflate / 2, here.one.memcpy / 2};
    const MachineSpeed twice = beside(dir, there);
    CHECK(twice.cpu.source == CpuSpeed::Source::profiles);
    CHECK(twice.cpu.ratio == doctest::Approx(2.0).epsilon(0.001));
    CHECK(twice.cpu.uncertainty < 0.001);
    CHECK(twice.waits.there == there.waits);
    CHECK(twice.waits.here == kWaitsHere);
    CHECK(twice.waits.known());
    there.one.memcpy = here.one.memcpy;
    CHECK(beside(dir, there).cpu.uncertainty > 0.2);
    there.waits = {};
    CHECK(!beside(dir, there).waits.known());
    CHECK(beside(dir, there).doubt.empty());  // there is nothing to correct by
}

TEST_CASE("what waits cost does not count where it scatters, and the result says so") {
    const TempDir dir;
    WaitCost scattered = kWaitsHere;
    scattered.extra_ns = {275e3, 276e3, 277e3, 278e3, 279e3};
    scattered.spread_ns[0] = 256e3;
    const WorkProfile here = keep_profile(dir, scattered);
    WorkProfile there = here;
    there.identity += 1;
    there.waits = kWaitsHere;
    const MachineSpeed speed = beside(dir, there);
    CHECK(!speed.waits.known());
    CHECK(speed.doubt.find("here (after 1 ms: 275 us, +-256 us)") != std::string::npos);

    keep_profile(dir);
    there.waits = scattered;
    CHECK(beside(dir, there).doubt.find("on the recording's machine (after 1 ms") != std::string::npos);
}

// SPDX-License-Identifier: MIT
// How much faster this machine computes than the one of a recording, and what is not known of it.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "calibrate/work_profile.h"
#include "formats/oplog/header_facts.h"
#include "replay/plan/cpu_speed.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

TEST_CASE("what waits cost: not known without the recording's, the same on its machine") {
    const TempDir dir;
    Header recorded;
    CHECK(!wait_costs_here(recorded, dir.path()).known());
    CHECK(!recorded_wait_cost(recorded).measured());
    WorkProfile there{.identity = machine_identity(), .cpus = 1, .one = {1, 1, 1}, .waits = {}};
    write_fact(recorded, fact::capture_profile, to_json(there));
    CHECK(!wait_costs_here(recorded, dir.path()).known());
    there.waits = {.extra_ns = {1, 2, 3, 4, 5}, .over_ns = 6};
    write_fact(recorded, fact::capture_profile, to_json(there));
    CHECK(wait_costs_here(recorded, dir.path()).here == there.waits);
    there.identity += 1;
    write_fact(recorded, fact::capture_profile, to_json(there));
    CHECK(recorded_wait_cost(recorded) == there.waits);
    CHECK(!std::filesystem::exists(dir / "work.json"));  // nothing was measured so far
    const WaitCosts both = wait_costs_here(recorded, dir.path());
    CHECK(both.there == there.waits);
    CHECK(both.here == this_work_profile(dir.path()).waits);
    CHECK(both.known());
}

TEST_CASE("the speed of this machine: exactly 1 on the same machine, the ratio on another, 1 where nothing is known") {
    const TempDir dir;
    Header recorded;
    CHECK(cpu_speed_here(recorded, dir.path()).source == CpuSpeed::Source::no_profile);
    write_fact(recorded, fact::capture_profile, "no profile");
    CHECK(cpu_speed_here(recorded, dir.path()).source == CpuSpeed::Source::no_profile);
    CHECK(!std::filesystem::exists(dir / "work.json"));

    const WorkProfile here = this_work_profile(dir.path());
    CHECK(here.identity == machine_identity());
    CHECK(here.one.integer > 0);
    WorkProfile there = here;
    there.one.integer *= 3;
    write_fact(recorded, fact::capture_profile, to_json(there));
    const CpuSpeed same = cpu_speed_here(recorded, dir.path());
    CHECK(same.source == CpuSpeed::Source::same_machine);
    CHECK(same.ratio == 1.0);

    there = here;
    there.identity += 1;
    there.one = {here.one.integer / 2, here.one.inflate / 2, here.one.memcpy / 2};
    write_fact(recorded, fact::capture_profile, to_json(there));
    const CpuSpeed twice = cpu_speed_here(recorded, dir.path());  // this machine's from the cache
    CHECK(twice.source == CpuSpeed::Source::profiles);
    CHECK(twice.ratio == doctest::Approx(2.0).epsilon(0.001));
    CHECK(twice.uncertainty < 0.001);
    there.one.memcpy = here.one.memcpy;
    write_fact(recorded, fact::capture_profile, to_json(there));
    CHECK(cpu_speed_here(recorded, dir.path()).uncertainty > 0.2);
}

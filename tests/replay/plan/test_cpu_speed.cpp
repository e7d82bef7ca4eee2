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

TEST_CASE("a profile of work: as JSON and back; what is none") {
    const WorkProfile profile{.identity = 12'345, .cpus = 8, .one = {100, 200, 300}, .waits = {}};
    const auto back = work_profile_of(to_json(profile));
    REQUIRE(back);
    CHECK(back->identity == 12'345);
    CHECK(back->cpus == 8);
    CHECK(back->one.memcpy == 300);
    CHECK(!back->waits.measured());
    for (const char* const text :
         {"", "null", "{}", "[1]", R"({"identity":1,"cpus":2,"integer":0,"inflate":1,"memcpy":1})",
          R"({"identity":1,"cpus":2,"integer":"x","inflate":1,"memcpy":1})",
          R"({"identity":1,"cpus":2,"integer":1e300,"inflate":1,"memcpy":1})"}) {
        CHECK(!work_profile_of(text));
    }
}

TEST_CASE("a profile of work: what waits cost, and what is no such cost") {
    WorkProfile profile{.identity = 1, .cpus = 1, .one = {1, 1, 1}, .waits = {}};
    profile.waits = {.extra_ns = {0, 60'000, 190'000, 560'000, 630'000}, .over_ns = 470'000};
    const std::string text = to_json(profile);
    CHECK(work_profile_of(text)->waits == profile.waits);
    const auto changed = [&](std::string_view from, std::string_view to) {
        std::string other = text;
        const size_t at = other.find(from);
        REQUIRE(at != std::string::npos);
        other.replace(at, from.size(), to);
        const auto found = work_profile_of(other);
        REQUIRE(found);  // the rest still counts
        return found->waits;
    };
    CHECK(changed("470000.0", "480000.0").over_ns == 480'000);
    CHECK(!changed("[0.0,", "[").measured());
    CHECK(!changed("[0.0,", "[0.0,0.0,").measured());
    CHECK(!changed("470000.0", "0").measured());
    CHECK(!changed("470000.0", "1e300").measured());
    CHECK(!changed("190000.0", "-5").measured());  // longer waits do not cost less
    CHECK(!changed("190000.0", "1e300").measured());
    CHECK(!changed("190000.0", "\"x\"").measured());
    CHECK(!changed("2500000", "2600000").measured());  // of other waits
}

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

TEST_CASE("the kept profile of another machine, or a broken one, is measured anew") {
    const TempDir dir;
    write_file(dir / "work.json", to_json(WorkProfile{.identity = 1, .cpus = 1, .one = {1, 1, 1}, .waits = {}}));
    CHECK(this_work_profile(dir.path()).identity == machine_identity());
    CHECK(work_profile_of(read_file(dir / "work.json"))->identity == machine_identity());
    const WorkProfile earlier{.identity = machine_identity(), .cpus = 1, .one = {1, 1, 1}, .waits = {}};
    write_file(dir / "work.json", to_json(earlier));
    CHECK(this_work_profile(dir.path()).waits.measured());
    write_file(dir / "work.json", "{");
    CHECK(this_work_profile(dir.path()).one.inflate > 1);
}

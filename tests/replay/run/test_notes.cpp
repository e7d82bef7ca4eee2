// SPDX-License-Identifier: MIT
// What is said of a run besides its figures.
#include "replay/run/notes.h"

#include <doctest/doctest.h>
#include <sys/sysmacros.h>

#include <string>

using namespace reprise;

TEST_CASE("notes: root is not told to be another user") {
    CHECK(
        refused_note(1, false) ==
        "The root refused 1 op to this user (EACCES, EPERM): replay as the user who prepared it, or prepare it as this "
        "one.");
    const std::string root = refused_note(2, true);
    CHECK(root.starts_with("The root refused 2 ops to root itself (EACCES, EPERM): "));
    CHECK(root.find("who prepared it") == std::string::npos);
    CHECK(root.find("lsattr") != std::string::npos);
}

TEST_CASE("notes: I/O limits of the control group that this was started in, kept or not") {
    ReplayResult result;
    note_group_limits({}, "", result);
    CHECK(result.notes.empty());
    CHECK(trust_in(result).reason.find("control group") == std::string::npos);
    note_group_limits({{makedev(4000, 1), {80 << 20, 0, 0, 0}}}, "", result);
    REQUIRE(result.notes.size() == 1);
    CHECK(result.notes[0] == "Kept the control group's limit: 4000:1: reads 80.0 MiB/s.");
    CHECK(result.lost_io_limits.empty());
    note_group_limits({}, "whether the group has some cannot be read", result);
    REQUIRE(result.notes.size() == 2);
    CHECK(result.notes[1] == "Whether the group has some cannot be read.");
    note_group_limits(result);
    CHECK(result.notes.size() == 2);
    result.machine.io_limits.reads = 250;
    note_group_limits(result);
    REQUIRE(result.notes.size() == 3);
    CHECK(result.notes[2] == "The control group that this runs in limits the root's disk: reads 250 a second.");
    const Trust trust = trust_in(result);
    CHECK(trust.level == Trust::Level::fair);
    CHECK(trust.reason.find("an I/O limit of the control group may not hold") != std::string::npos);
}

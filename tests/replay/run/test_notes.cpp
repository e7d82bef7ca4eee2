// SPDX-License-Identifier: MIT
// What is said of a run besides its figures.
#include "replay/run/notes.h"

#include <doctest/doctest.h>

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

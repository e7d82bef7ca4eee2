// SPDX-License-Identifier: MIT
// Suites of `regress`: what they say, and what is wrong with them, by line.
#include "experiment/suite.h"

#include <doctest/doctest.h>

#include "formats/support/error.h"
#include "tests/support.h"

using namespace reprise;

namespace {

using Words = std::vector<std::string>;

/// The suite, or what is wrong with it.
std::string wrong(const std::string& text) {
    const test::TempDir folder;
    test::write_file(folder / "s.ini", text);
    try {
        const Suite suite = read_suite(folder / "s.ini");
        check_suite(suite, folder / "s.ini");
    } catch (const Error& error) {
        const std::string what = error.what();
        return what.substr(what.find("s.ini"));
    }
    return {};
}

}  // namespace

TEST_CASE("a suite: jobs, targets and how they are run") {
    const test::TempDir folder;
    test::write_file(folder / "s.ini",
                     "# all of it\n[suite]\nruns = 7\nwarm-up=2\nseed = 5\ncuts = 9\n; jobs\n[job a]\nlog = "
                     "a.oplog\nreplay = --cache cold "
                     "--not '/a b'\nprepare = --map /data=.\n[target x]\nfolder = /mnt/x\nremount = umount /x && mount "
                     "/x\nmake = mkfs.ext4 -q\nsize = 2G\n[target y]\n");
    Suite suite = read_suite(folder / "s.ini");
    CHECK(suite.runs == 7);
    CHECK(suite.warm_up == 2);
    CHECK(suite.seed == 5);
    CHECK(suite.cuts == 9);
    REQUIRE(suite.jobs.size() == 1);
    CHECK(suite.jobs[0].log == folder / "a.oplog");
    CHECK(suite.jobs[0].replay == Words{"--cache", "cold", "--not", "/a b"});
    CHECK(suite.jobs[0].prepare == Words{"--map", "/data=."});
    CHECK(suite.targets[0].remount == "umount /x && mount /x");
    CHECK(suite.targets[0].size == uint64_t{2} << 30);
    add_target(suite, "y=/mnt/y");
    add_target(suite, "z=/mnt/z");
    REQUIRE(suite.targets.size() == 3);
    // What was given first is what the others are compared with.
    CHECK(suite.targets[0].folder == "/mnt/y");
    CHECK(suite.targets[1].folder == "/mnt/z");
    CHECK(suite.targets[2].name == "x");
    CHECK_THROWS_WITH(add_target(suite, "x=/other"),
                      "--target x: its folder is already /mnt/x\n  give it once, here or in the suite");
    CHECK_THROWS_AS(add_target(suite, "x"), Error);
    CHECK_THROWS_AS(add_target(suite, "a/b=/x"), Error);
    CHECK_THROWS_AS(add_target(suite, "x="), Error);
}

TEST_CASE("a suite: what is wrong has its line, and what is near") {
    CHECK(wrong("") == "s.ini: the suite is empty: it has no job\n  add a section: [job NAME] and log = FILE");
    CHECK(wrong("[job a]\nlgo = x\n") ==
          "s.ini:2: 'lgo' is not known here; did you mean log?\n  here are: log, prepare, replay");
    CHECK(wrong("[suite]\n\nrnus = 1\n").starts_with("s.ini:3: 'rnus' is not known here; did you mean runs?"));
    CHECK(wrong("[jobb a]\n").starts_with("s.ini:1: '[jobb a]' is no section; did you mean job?"));
    CHECK(wrong("[job a\n").starts_with("s.ini:1: '[job a' has no ]"));
    CHECK(wrong("[job a/b]\n").starts_with("s.ini:1: 'a/b' is not a name"));
    CHECK(wrong("[job]\n").starts_with("s.ini:1: '' is not a name"));
    CHECK(wrong("[job a]\nlog = x\n[job a]\n").starts_with("s.ini:3: a second [job a]"));
    CHECK(wrong("[job a]\nlog = x\nlog = y\n").starts_with("s.ini:3: a second log"));
    CHECK(wrong("log = x\n").starts_with("s.ini:1: 'log' is in no section"));
    CHECK(wrong("[job a]\nlog =\n").starts_with("s.ini:2: log has no value"));
    CHECK(wrong("[job a]\nhello\n").starts_with("s.ini:2: 'hello' is neither KEY = VALUE nor a section"));
    CHECK(wrong("[suite]\nruns = many\n").starts_with("s.ini:2: 'many' is not a number from 1 to 10000"));
    CHECK(wrong("[suite]\nruns = 0\n").starts_with("s.ini:2: '0' is not a number"));
    CHECK(wrong("[target a]\nsize = big\n").starts_with("s.ini:2: 'big' is not a size"));
    CHECK(wrong("[job a]\nreplay = --not 'x\n").starts_with("s.ini:2: a quotation mark has no counterpart"));
    CHECK(wrong("[job a]\n").starts_with("s.ini: [job a] has no log"));
    const test::TempDir folder;
    CHECK_THROWS_AS(read_suite(folder / "none.ini"), Error);
    Suite suite;
    suite.jobs.push_back({"a", "a.oplog", {}, {}});
    CHECK_THROWS_WITH(check_suite(suite, "s.ini"), "no target\n  name one: --target ext4=/mnt/a");
    suite.targets.emplace_back().name = "x";
    CHECK_THROWS_WITH(check_suite(suite, "s.ini"), "target x has no folder\n  give it one: --target x=DIR");
}

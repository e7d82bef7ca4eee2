// SPDX-License-Identifier: MIT
// What the names of directories cost that a replay keeps open.
#include "replay/run/name_walk.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include "formats/support/unique_fd.h"
#include "tests/replay/job_builder.h"

namespace reprise::test {

TEST_CASE("name walk: measured on a file that is there, two directories down") {
    const TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    const TaskId task = job.lone_task();
    const FileId deep = job.file("/data/a/f"), shallow = job.file("/g"), gone = job.file("/data/a/gone");
    for (const FileId file : {deep, shallow, gone}) {
        job.add(task, {.kind = OpKind::stat, .file = file});
    }
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
    std::filesystem::create_directories(dir / "root/data/a");
    write_file(dir / "root/data/a/f", "x");
    write_file(dir / "root/g", "x");
    const UniqueFd root(::open((dir / "root").c_str(), O_RDONLY | O_DIRECTORY));
    const std::optional<int64_t> ns = name_walk_ns(plan, deep, root.get());
    REQUIRE(ns);
    CHECK(*ns >= 0);
    CHECK_FALSE(name_walk_ns(plan, shallow, root.get()));
    CHECK_FALSE(name_walk_ns(plan, gone, root.get()));
    CHECK_FALSE(name_walk_ns(plan, 0, root.get()));
    CHECK_FALSE(name_walk_ns(plan, 99, root.get()));
}

TEST_CASE("name walk: a doubt where names are not cached and there are many") {
    RecordedDoubts doubts;
    doubts.kept_directories = 1'000;
    constexpr int64_t kS = 1'000'000'000;
    CHECK(
        names_asked_for(doubts, 4'000'000, 5 * kS, kThirdShare) ==
        "no name stays in memory on this file system, each takes 4.00 ms: a job that names files by whole paths takes "
        "up to 4.00 s more, as the replay keeps directories open");
    CHECK(names_asked_for(doubts, 4'000'000, 50 * kS, kSomeShare).empty());
    CHECK(names_asked_for(doubts, 20'000, kS / 1'000, kSomeShare).empty());  // in memory
    CHECK(names_asked_for(doubts, 0, kS, 0.0).empty());
}

}  // namespace reprise::test

// SPDX-License-Identifier: MIT
// Which control groups a process is in, by the texts of proc(5).
#include "calibrate/own_groups.h"

#include <doctest/doctest.h>

#include "tests/support.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

std::string mounted(const fs::path& at, const std::string& root, const std::string& type, const std::string& options) {
    return "35 31 0:32 " + root + " " + at.string() + " rw,relatime shared:9 - " + type + " " + type + " " + options +
           "\n";
}

}  // namespace

TEST_CASE("own group: in each hierarchy, wherever that is mounted") {
    const TempDir dir;
    fs::create_directories(dir / "memory/user/me");
    fs::create_directories(dir / "unified/run.scope");
    const GroupTexts texts{mounted(dir / "cpu", "/", "cgroup", "rw,cpu,cpuacct") +
                               mounted(dir / "memory", "/", "cgroup", "rw,memory") +
                               mounted(dir / "unified", "/", "cgroup2", "rw"),
                           "9:name=systemd:/\n4:memory:/user/me\n3:cpu,cpuacct:/gone\n0::/run.scope\n"};
    CHECK(own_group_of("memory", texts) == OwnGroup{1, dir / "memory", dir / "memory/user/me"});
    CHECK(own_group_of("cpu", texts) == OwnGroup{1, dir / "cpu", dir / "cpu", false});  // it is gone
    CHECK_FALSE(own_group_of("cpus", texts));
    CHECK_FALSE(own_group_of("blkio", texts));
    CHECK(own_unified_group(texts) == OwnGroup{2, dir / "unified", dir / "unified/run.scope"});
    for (const GroupTexts& wrong : {GroupTexts{}, GroupTexts{"garbage\n\n - \n", "garbage\n:\n"}}) {
        CHECK_FALSE(own_group_of("memory", wrong));
        CHECK_FALSE(own_unified_group(wrong));
    }
}

TEST_CASE("own group: a container sees a part of the hierarchy only") {
    const TempDir dir;
    fs::create_directories(dir / "user/me");
    const std::string mounts = mounted(dir.path(), "/docker/abc", "cgroup", "rw,memory");
    const auto folder = [&](const std::string& own) { return own_group_of("memory", {mounts, own})->folder; };
    CHECK(folder("4:cpu,memory:/docker/abc\n") == dir.path());
    CHECK(folder("4:memory:/docker/abc/user/me\n") == dir / "user/me");
    CHECK(folder("4:memory:/docker/other\n") == dir.path());
    CHECK(own_group_of("memory", {mounts, "4:memory:/docker/abc\n"})->shown);
    CHECK_FALSE(own_group_of("memory", {mounts, "4:memory:/docker/other\n"})->shown);
    CHECK(folder("") == dir.path());
}

TEST_CASE("own group: numbers in its files") {
    const TempDir dir;
    write_file(dir / "one", "17\n");
    write_file(dir / "none", "max\n");
    write_file(dir / "stat", "anon 5\nanon_thp 6\nfile x\nlast 7");
    CHECK(number_in(dir / "one") == 17);
    CHECK_FALSE(number_in(dir / "none"));
    CHECK_FALSE(number_in(dir / "gone"));
    CHECK(number_in(dir / "stat", "anon") == 5);
    CHECK(number_in(dir / "stat", "last") == 7);
    CHECK_FALSE(number_in(dir / "stat", "file"));
    CHECK_FALSE(number_in(dir / "stat", "an"));
}

}  // namespace reprise::test

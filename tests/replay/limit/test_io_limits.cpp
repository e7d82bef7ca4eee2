// SPDX-License-Identifier: MIT
// Which I/O limits of control groups a run in a group of its own would get away from.
#include "replay/limit/io_limits.h"

#include <doctest/doctest.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/support.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

const dev_t loop = makedev(7, 0), other = makedev(259, 12);

}  // namespace

TEST_CASE("I/O limits: the stricter of two, each for itself") {
    CHECK(stricter({}, {}) == IoLimits{});
    CHECK(stricter({10, 0, 30, 40}, {20, 5, 0, 4}) == IoLimits{10, 5, 30, 4});
    CHECK(limits_text(IoLimits{}).empty());
    CHECK(limits_text(IoLimits{80 << 20, 0, 1000, 0}) == "reads 80.0 MiB/s, reads 1,000 a second");
    CHECK(limits_text(IoLimits{0, 1 << 20, 0, 5}) == "writes 1.00 MiB/s, writes 5 a second");
    CHECK(limits_text(DiskLimits{{makedev(4000, 1), {1024, 0, 0, 0}}, {makedev(4000, 2), {0, 0, 0, 7}}}) ==
          "4000:1: reads 1.00 KiB/s; 4000:2: writes 7 a second");
}

TEST_CASE("I/O limits of version 1: those of the own group, and no others") {
    const TempDir dir;
    const fs::path root = dir / "blkio", own = root / "user/me";
    fs::create_directories(own);
    CHECK(limits_left_behind(1, own, own) == DiskLimits{});  // a kernel that cannot throttle
    for (const ThrottleFile& file : kThrottleFiles) {
        write_file(root / file.name, "7:0 1\n");  // binds the processes of the root group only
        write_file(own / file.name, "");
    }
    CHECK(limits_left_behind(1, own, own) == DiskLimits{});
    write_file(own / "blkio.throttle.read_bps_device", "7:0 80000000\n259:12 5000\n");
    write_file(own / "blkio.throttle.write_bps_device", "7:0 70000000\n");
    write_file(own / "blkio.throttle.read_iops_device", "259:12 200\n");
    write_file(own / "blkio.throttle.write_iops_device", "7:0 0\n");
    CHECK(limits_left_behind(1, own, own) ==
          DiskLimits{{loop, {80'000'000, 70'000'000, 0, 0}}, {other, {5000, 0, 200, 0}}});
    // Not what can be read.
    write_file(own / "blkio.throttle.write_iops_device", "loop0 5\n");
    CHECK_FALSE(limits_left_behind(1, own, own));
    fs::remove(own / "blkio.throttle.write_iops_device");
    fs::create_directory_symlink("blkio.throttle.write_iops_device", own / "blkio.throttle.write_iops_device");
    CHECK_FALSE(limits_left_behind(1, own, own));
}

TEST_CASE("I/O limits of version 2: of all groups that the new one is not in") {
    const TempDir dir;
    const fs::path root = dir / "unified", slice = root / "user.slice", scope = slice / "run.scope";
    fs::create_directories(scope);
    CHECK(limits_left_behind(2, scope, slice) == DiskLimits{});
    write_file(scope / "io.max", "7:0 rbps=80000000 wbps=max riops=max wiops=50\n259:12 rbps=max wbps=max\n");
    write_file(slice / "io.max", "7:0 rbps=90000000 wbps=7000 riops=max wiops=40\n");
    CHECK(limits_left_behind(2, scope, scope) == DiskLimits{});
    CHECK(limits_left_behind(2, scope, slice) == DiskLimits{{loop, {80'000'000, 0, 0, 50}}});
    CHECK(limits_left_behind(2, scope, root) == DiskLimits{{loop, {80'000'000, 7000, 0, 40}}});
    CHECK(limits_left_behind(2, scope, "/elsewhere") == DiskLimits{{loop, {80'000'000, 7000, 0, 40}}});
}

TEST_CASE("I/O limits of a disk, where this process is") {
    const TempDir dir;
    const fs::path blkio = dir / "blkio", unified = dir / "unified";
    fs::create_directories(blkio / "user/me");
    fs::create_directories(unified / "user.slice/run.scope");
    const auto mounted = [](const fs::path& at, const std::string& type, const std::string& options) {
        return "30 20 0:27 / " + at.string() + " rw - " + type + " none " + options + "\n";
    };
    const GroupTexts texts{mounted(blkio, "cgroup", "rw,blkio") + mounted(unified, "cgroup2", "rw"),
                           "3:blkio:/user/me\n0::/user.slice/run.scope\n"};
    CHECK(limits_on(loop, texts) == IoLimits{});
    write_file(blkio / "blkio.throttle.read_bps_device", "7:0 1\n");
    CHECK(limits_on(loop, texts) == IoLimits{});  // of the root group only
    write_file(blkio / "user/me/blkio.throttle.read_bps_device", "7:0 80000000\n259:12 5000\n");
    CHECK(limits_on(loop, texts) == IoLimits{80'000'000, 0, 0, 0});
    CHECK(limits_on(other, texts) == IoLimits{5000, 0, 0, 0});
    CHECK(limits_on(makedev(8, 0), texts) == IoLimits{});
    write_file(unified / "user.slice/io.max", "7:0 rbps=90000000 wbps=7000 riops=max wiops=max\n");
    CHECK(limits_on(loop, texts) == IoLimits{80'000'000, 7000, 0, 0});
    CHECK(limits_on(loop, GroupTexts{}) == IoLimits{});
}

}  // namespace reprise::test

// SPDX-License-Identifier: MIT
// Where a control group can be made, what it counts, and that none stays.
#include "replay/limit/control_group.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "formats/support/error.h"
#include "formats/support/sanitized.h"
#include "replay/limit/ballast.h"
#include "tests/support.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

#if defined(REPRISE_ASAN) || defined(REPRISE_TSAN)
constexpr uint64_t kOwn = 48 * kMiB;  // what a process itself holds
#else
constexpr uint64_t kOwn = 4 * kMiB;
#endif

std::string mount_line(const fs::path& at, const std::string& root, const std::string& type,
                       const std::string& options) {
    return "35 31 0:32 " + root + " " + at.string() + " rw,relatime shared:9 - " + type + " " + type + " " + options +
           "\n";
}

/// Whether groups with a memory limit can be made here.
bool has_groups() {
    try {
        const ControlGroup group(64 * kMiB);
        return true;
    } catch (const Error&) {
        return false;
    }
}

template <class F>
bool waited(F done) {
    for (int tries = 0; tries < 2'000; ++tries) {
        if (done()) {
            return true;
        }
        ::usleep(5'000);
    }
    return false;
}

}  // namespace

TEST_CASE("control groups of version 1: below this process's own, wherever the hierarchy is mounted") {
    const TempDir dir;
    const fs::path memory = dir / "memory", blkio = dir / "blkio", me = memory / "user" / "me";
    fs::create_directories(me);
    fs::create_directories(blkio);
    const GroupTexts texts{mount_line(dir / "cpu", "/", "cgroup", "rw,cpu") +
                               mount_line(memory, "/", "cgroup", "rw,memory") +
                               mount_line(blkio, "/", "cgroup", "rw,blkio"),
                           "9:name=systemd:/\n7:blkio:/\n4:memory:/user/me\n0::/elsewhere\n"};
    CHECK(find_group_folder(Controller::memory, texts) == GroupFolder{1, me, me, false});
    CHECK(find_group_folder(Controller::io, texts) == GroupFolder{1, blkio, blkio, false});
    CHECK_FALSE(find_group_folder(Controller::memory, {mount_line(dir / "cpu", "/", "cgroup", "rw,cpu"), texts.own}));
    CHECK_FALSE(find_group_folder(Controller::memory, {}));
}

TEST_CASE("control groups of version 2: in the nearest group that hands the controller on") {
    const TempDir dir;
    const fs::path at = dir / "unified", user = at / "user.slice", scope = user / "run.scope";
    fs::create_directories(scope);
    const GroupTexts texts{mount_line(at, "/", "cgroup2", "rw,nsdelegate"), "0::/user.slice/run.scope\n"};
    write_file(at / "cgroup.controllers", "cpu io memory\n");
    CHECK(find_group_folder(Controller::memory, texts) == GroupFolder{2, at, scope, true});
    write_file(at / "cgroup.subtree_control", "memory\n");
    CHECK(find_group_folder(Controller::memory, texts) == GroupFolder{2, at, scope, false});
    CHECK(find_group_folder(Controller::io, texts) == GroupFolder{2, at, scope, true});
    write_file(user / "cgroup.subtree_control", "io memory\n");
    CHECK(find_group_folder(Controller::io, texts) == GroupFolder{2, user, scope, false});
    // Mixed, as on many machines: the controller belongs to version 1.
    write_file(at / "cgroup.controllers", "\n");
    CHECK_FALSE(find_group_folder(Controller::memory, texts));
    const GroupTexts mixed{texts.mounts + mount_line(dir.path(), "/", "cgroup", "rw,memory"), texts.own};
    CHECK(find_group_folder(Controller::memory, mixed) == GroupFolder{1, dir.path(), dir.path(), false});
}

TEST_CASE("control groups that a reprise which is gone left behind are removed, and no others") {
    const TempDir dir;
    struct stat space {};
    REQUIRE(::stat("/proc/self/ns/pid", &space) == 0);
    const std::string here = "reprise-" + std::to_string(space.st_ino) + "-";
    const fs::path gone = dir / (here + "999999999-5-0"), again = dir / (here + std::to_string(::getpid()) + "-1-0"),
                   elsewhere = dir / "reprise-1-999999999-5-0", other = dir / "reprise-mine",
                   full = dir / (here + "999999998-5-0");
    for (const fs::path& each : {gone, again, elsewhere, other, full / "inside"}) {
        fs::create_directories(each);
    }
    CHECK(remove_left_groups(dir.path()) == 2);
    CHECK_FALSE(fs::exists(gone));
    CHECK_FALSE(fs::exists(again));  // the number is another process's now
    CHECK(fs::exists(elsewhere));
    CHECK(fs::exists(other));
    CHECK(fs::exists(full));
    CHECK(remove_left_groups(dir / "nowhere") == 0);
}

TEST_CASE("a control group limits what is in it, says so, and goes") {
    if (!has_groups()) {
        REPRISE_SKIP("no control group can be made here: needs root and the memory controller");
    }
    std::string name;
    {
        ControlGroup group(64 * kMiB);
        name = group.name();
        const std::optional<GroupMemory> empty = group.memory();
        REQUIRE(empty);
        CHECK(empty->killed == 0);
        CHECK(group.held() == 0);
        const pid_t child = ::fork();
        if (child == 0) {
            // More than is allowed: killed.
            if (group.enter()) {
                void* const at = ::mmap(nullptr, 128 * kMiB, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
                (void)at;
            }
            ::_exit(0);
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status));
        const std::optional<GroupMemory> full = group.memory();
        REQUIRE(full);
        CHECK(full->killed == 1);
        CHECK(full->reached > 0);
        CHECK(full->peak > 63 * kMiB);
        CHECK(full->peak <= 64 * kMiB);
        CHECK(group.remove().empty());
        CHECK_FALSE(group.memory());
    }
    // This process in and out again; a group with somebody in it stays, and says why.
    ControlGroup group(64 * kMiB);
    REQUIRE(group.enter());
    group.leave();
    CHECK(group.remove().empty());
}

TEST_CASE("ballast: holds what it is told, in the group, and goes with its maker") {
    if (!has_groups()) {
        REPRISE_SKIP("no control group can be made here: needs root and the memory controller");
    }
    ControlGroup group(200 * kMiB + 2 * kOwn);
    {
        Ballast ballast(group, 200 * kMiB);
        for (const uint64_t bytes : {100 * kMiB, 150 * kMiB, 20 * kMiB, int64_t{0}, 3 * kMiB}) {
            CAPTURE(bytes);
            ballast.want(bytes);
            CHECK(waited([&] { return ballast.held() == bytes; }));
            // The kernel counts in batches, and page tables and the like beside.
            INFO(group.held());
            CHECK(waited([&] {
                const uint64_t held = group.held();
                return held + kMiB >= bytes && held <= bytes + kOwn;
            }));
        }
        CHECK_FALSE(ballast.died());
        ballast.want(uint64_t{1} << 40);  // no more than it was made for
        CHECK(waited([&] { return ballast.held() == 200 * kMiB; }));
    }
    CHECK(waited([&] { return group.held() < kOwn; }));
}

TEST_CASE("ballast: where memory runs out, it is what goes") {
    if (!has_groups()) {
        REPRISE_SKIP("no control group can be made here: needs root and the memory controller");
    }
    ControlGroup group(64 * kMiB);
    Ballast ballast(group, 100 * kMiB);
    ballast.want(100 * kMiB);
    CHECK(waited([&] { return ballast.died(); }));
    CHECK(ballast.died());
    CHECK(group.memory().value_or(GroupMemory()).killed == 1);
}

}  // namespace reprise::test

// SPDX-License-Identifier: MIT
// The lock of a root: who excludes whom, and that it follows the marker when that is replaced.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "replay/prepare/root_lock.h"
#include "tests/replay/prepare/prepare_fixture.h"

namespace reprise::test {
namespace {

using Kind = RootLock::Kind;

struct LockedRoot {
    TempDir dir;
    UniqueFd root{::open(dir.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};

    RootLock take(Kind kind) const { return RootLock::take(root.get(), "DIR", kind); }
    bool free(Kind kind) const {
        try {
            take(kind);
            return true;
        } catch (const Error& error) {
            CHECK(std::string(error.what()).find("the root DIR is in use by another reprise process") == 0);
            return false;
        }
    }
    void write(RootLock& lock, MarkerState state) const {
        Marker marker;
        marker.state = state;
        write_marker(root.get(), "DIR", marker, lock);
    }
};

}  // namespace

TEST_CASE("a root without a marker has no lock") {
    const LockedRoot with;
    const RootLock lock = with.take(Kind::exclusive);
    CHECK_FALSE(lock.has_marker());
    CHECK(with.free(Kind::exclusive));
}

TEST_CASE("one exclusive holder, or many shared ones") {
    const LockedRoot with;
    {
        RootLock first;
        with.write(first, MarkerState::complete);
        CHECK(first.has_marker());
        CHECK_FALSE(with.free(Kind::shared));  // the first marker is locked as it appears
        with.write(first, MarkerState::changed);
        CHECK_FALSE(with.free(Kind::exclusive));  // and so is the next one
        CHECK_FALSE(with.free(Kind::shared));
    }
    CHECK(with.free(Kind::exclusive));
    const RootLock reads = with.take(Kind::shared);
    CHECK(with.free(Kind::shared));
    CHECK_FALSE(with.free(Kind::exclusive));
}

TEST_CASE("of two that find no marker, one makes it") {
    const LockedRoot with;
    RootLock first = with.take(Kind::exclusive), second = with.take(Kind::exclusive);
    with.write(first, MarkerState::incomplete);
    CHECK_THROWS_WITH(
        with.write(second, MarkerState::complete),
        "the root DIR is in use by another reprise process\n  wait until that run has ended, or use a root "
        "of its own for each run");
    CHECK(read_marker(with.root.get(), "DIR")->state == MarkerState::incomplete);
}

TEST_CASE("a holder that is killed leaves no lock behind") {
    const LockedRoot with;
    {
        RootLock lock;
        with.write(lock, MarkerState::complete);
    }
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const RootLock lock = with.take(Kind::exclusive);
        (void)!::write(ready[1], "x", 1);
        ::pause();
        ::_exit(0);
    }
    char byte = 0;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    CHECK_FALSE(with.free(Kind::shared));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    CHECK(with.free(Kind::exclusive));
    ::close(ready[0]);
    ::close(ready[1]);
}

}  // namespace reprise::test

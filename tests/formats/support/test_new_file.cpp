// SPDX-License-Identifier: MIT
// Files of our own making: what may stand in their way, and that nothing else is written to.
#include "formats/support/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "tests/support.h"

namespace reprise::test {
namespace fs = std::filesystem;

TEST_CASE("a new file is empty and of the asked mode, whatever had its name") {
    const TempDir dir;
    const fs::path path = dir / "new";
    SUBCASE("nothing") {}
    SUBCASE("a file") { write_file(path, "old"); }
    SUBCASE("a link to a file") {
        write_file(dir / "precious", "precious");
        fs::create_symlink("precious", path);
    }
    SUBCASE("a link to nothing") { fs::create_symlink("nowhere", path); }
    SUBCASE("another name of a file") {
        write_file(dir / "precious", "precious");
        fs::create_hard_link(dir / "precious", path);
    }
    const UniqueFd file = create_new_file(path, 0640);
    REQUIRE(file.valid());
    CHECK(::write(file.get(), "new", 3) == 3);
    struct stat st {};
    REQUIRE(::lstat(path.c_str(), &st) == 0);
    CHECK(S_ISREG(st.st_mode));
    CHECK((st.st_mode & 07777) == 0640);
    CHECK(st.st_size == 3);
    CHECK_FALSE(fs::exists(dir / "nowhere"));
    if (fs::exists(dir / "precious")) {
        CHECK(read_file(dir / "precious") == "precious");
    }
}

TEST_CASE("a directory is not replaced by a new file") {
    const TempDir dir;
    fs::create_directory(dir / "d");
    CHECK_FALSE(create_new_file(dir / "d").valid());
    CHECK(errno == EISDIR);
    CHECK_FALSE(create_new_file(dir / "no/such/folder").valid());
    CHECK(errno == ENOENT);
}

TEST_CASE("a pipe is opened as it is, and stays") {
    const TempDir dir;
    const fs::path path = dir / "pipe";
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    const UniqueFd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    const UniqueFd writer = create_new_file(path);
    REQUIRE(writer.valid());
    CHECK(::write(writer.get(), "x", 1) == 1);
    CHECK(fs::is_fifo(path));
}

TEST_CASE("a scratch directory is nobody else's, and goes away with what is in it") {
    fs::path path;
    {
        const ScratchDir scratch;
        path = scratch.path();
        CHECK((fs::status(path).permissions() & fs::perms::all) == fs::perms::owner_all);
        write_file(path / "x", "x");
        CHECK(ScratchDir().path() != path);
    }
    CHECK_FALSE(fs::exists(path));
}

}  // namespace reprise::test

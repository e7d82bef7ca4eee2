// SPDX-License-Identifier: MIT
// What is one file, however it is spelled.
#include "cli/named_files.h"

#include <sys/stat.h>

#include <filesystem>

#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

TEST_CASE("one file, there or not yet, by whatever path") {
    const TempDir dir;
    const std::filesystem::path sub = dir / "sub";
    std::filesystem::create_directory(sub);
    write_file(dir / "there", "x");
    std::filesystem::create_hard_link(dir / "there", dir / "hard");
    std::filesystem::create_symlink("../there", sub / "link");
    std::filesystem::create_symlink("new", dir / "to_new");
    std::filesystem::create_symlink(dir / "to_new", sub / "to_to_new");
    std::filesystem::create_symlink("circle", dir / "circle");
    std::filesystem::create_directory_symlink(dir.path(), sub / "up");
    const auto same = [&](const char* a, const char* b) { return cli::same_file(dir / a, dir / b); };
    CHECK(same("there", "sub/../there"));
    CHECK(same("there", "hard"));
    CHECK(same("there", "sub/link"));
    CHECK(same("there", "sub/up/there"));
    CHECK(same("new", "./new"));
    CHECK(same("new", "sub/up/new"));
    CHECK(same("new", "to_new"));
    CHECK(same("sub/to_to_new", "new"));
    CHECK(same("sub", "sub/"));
    CHECK(same("newer/", "newer"));
    CHECK_FALSE(same("new", "newer"));
    CHECK_FALSE(same("new", "sub/new"));
    CHECK_FALSE(same("there", "new"));
    CHECK_FALSE(same("circle", "new"));
    CHECK_FALSE(same("nowhere/new", "nowhere/new"));  // refused for its directory
    CHECK_FALSE(cli::same_file("/dev/null", "/dev/null"));
    REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
    CHECK(same("pipe", "./pipe"));
}

TEST_CASE("relative paths are those of the working directory") {
    const TempDir dir;
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(dir.path());
    CHECK(cli::same_file("new", dir / "new"));
    CHECK(cli::same_file("new", "./new"));
    std::filesystem::current_path(before);
}

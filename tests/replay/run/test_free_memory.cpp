// SPDX-License-Identifier: MIT
// What memory limits leave.
#include "replay/run/free_memory.h"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

void put(const std::filesystem::path& path, const char* text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("free memory: the least that the limits of a group and those above it leave") {
    const TempDir dir;
    SUBCASE("version 2") {
        put(dir / "memory.stat", "anon 5\n");  // the root has no limit
        put(dir / "a/memory.max", "1000\n");
        put(dir / "a/memory.current", "700\n");
        put(dir / "a/memory.stat", "anon 300\nfile 400\n");
        put(dir / "a/b/memory.max", "max\n");
        put(dir / "a/b/memory.current", "900\n");
        put(dir / "c/memory.max", "100\n");
        put(dir / "c/memory.current", "300\n");
        CHECK(free_of_groups({2, dir.path(), dir.path()}) == std::nullopt);
        CHECK(free_of_groups({2, dir.path(), dir.path() / "a"}) == 700);
        CHECK(free_of_groups({2, dir.path(), dir.path() / "a/b"}) == 700);
        CHECK(free_of_groups({2, dir.path(), dir.path() / "c"}) == 0);
        CHECK(free_of_groups({2, dir.path(), dir.path() / "gone"}) == std::nullopt);
    }
    SUBCASE("version 1") {
        put(dir / "a/memory.limit_in_bytes", "1000\n");
        put(dir / "a/memory.usage_in_bytes", "600\n");
        put(dir / "a/memory.stat", "cache 1\ntotal_cache 100\n");
        CHECK(free_of_groups({2, dir.path(), dir.path() / "a"}) == 500);
    }
}

TEST_CASE("free memory: this machine has some") { CHECK(free_memory().value_or(0) > 1 << 20); }

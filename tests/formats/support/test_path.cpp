// SPDX-License-Identifier: MIT
// Paths as text.
#include "formats/support/path.h"

#include "tests/support.h"

using namespace reprise;

TEST_CASE("paths are seen from a directory") {
    CHECK(clean_path("/a/b", "c") == "/a/b/c");
    CHECK(clean_path("/a/b", "../c/./d//e/") == "/a/c/d/e");
    CHECK(clean_path("/a/b", "/c/../d") == "/d");
    CHECK(clean_path("/a", "../../..") == "/");
    CHECK(clean_path("/a", "../../b") == "/b");
    CHECK(clean_path("/", "") == "/");
    CHECK(clean_path("/a/b", "") == "/a/b");
    CHECK(clean_path("/a", "...") == "/a/...");
}

TEST_CASE("paths that may not leave their start") {
    using Clean = std::optional<std::string>;
    CHECK(clean_path_within("/a/./b//c/../d/") == Clean("/a/b/d"));
    CHECK(clean_path_within("a/./b//c/../d/") == Clean("a/b/d"));
    CHECK(clean_path_within("a/..") == Clean("."));
    CHECK(clean_path_within("") == Clean("."));
    CHECK(clean_path_within("/") == Clean("/"));
    CHECK(clean_path_within("/a/..") == Clean("/"));
    CHECK(clean_path_within("/..") == std::nullopt);
    CHECK(clean_path_within("a/../../b") == std::nullopt);
    CHECK(clean_path_within("../a") == std::nullopt);
    CHECK(clean_path_within("a/../../b/c/d") == std::nullopt);
}

TEST_CASE("what lies below a directory") {
    CHECK(lies_below("/a/b", "/a"));
    CHECK(lies_below("/a", "/"));
    CHECK(lies_below("a/b/c", "a"));
    CHECK_FALSE(lies_below("/a", "/a"));
    CHECK_FALSE(lies_below("/ab", "/a"));
    CHECK_FALSE(lies_below("/", "/"));
    CHECK_FALSE(lies_below("/a", "/a/b"));
    CHECK(is_or_lies_below("/a", "/a"));
    CHECK(is_or_lies_below("/a/b", "/a"));
    CHECK(is_or_lies_below("/", "/"));
    CHECK_FALSE(is_or_lies_below("/ab", "/a"));
}

// SPDX-License-Identifier: MIT
// Recorded paths to places below the root, and that the kernel keeps us there.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/support/error.h"
#include "replay/plan/paths.h"
#include "tests/support.h"

namespace reprise {

namespace {

using Map = std::optional<std::string>;
const Map kNowhere = std::nullopt;

int usage_code(const std::vector<std::string>& rules) {
    try {
        PathMap::parse(rules);
    } catch (const Error& error) {
        return static_cast<int>(error.code());
    }
    return 0;
}

/// Opens and closes; 0 or -errno.
int try_open(int root, const char* path, int flags, Links links, mode_t mode = 0600) {
    const int fd = open_beneath(root, path, flags, mode, links);
    if (fd >= 0) {
        ::close(fd);
    }
    return fd >= 0 ? 0 : fd;
}

}  // namespace

TEST_CASE("without rules the leading slash goes") {
    const PathMap map;
    CHECK(map.map("/data/x") == Map("data/x"));
    CHECK(map.map("/data/../y/./z") == Map("y/z"));
    CHECK(map.map("/data/.hidden/x") == Map("data/.hidden/x"));
    CHECK(map.map("/") == Map("."));
    CHECK(map.map("//") == Map("."));
    CHECK(map.map("/a\nb\xff") == Map("a\nb\xff"));
}

TEST_CASE("a comma separates rules where both sides are rules, and is a path's own elsewhere") {
    const auto rules = [](const char* typed) {
        std::vector<std::string> out;
        const PathMap map = PathMap::parse({typed});
        for (const PathMap::Rule& rule : map.rules()) {
            out.push_back(rule.from + "=" + rule.to);
        }
        return out;
    };
    using Rules = std::vector<std::string>;
    CHECK(rules("/w/a,b=q") == Rules{"/w/a,b=q"});
    CHECK(rules("/w/a,/b=q") == Rules{"/w/a,/b=q"});
    CHECK(rules("/aa=x,/b=y") == Rules{"/aa=x", "/b=y"});
    CHECK(rules("/aaa=x,y,/b,c=z") == Rules{"/aaa=x,y", "/b,c=z"});
    CHECK(rules("/aaa=x,y") == Rules{"/aaa=x,y"});
    CHECK(rules("/aaa=x\\,/b=y") == Rules{"/aaa=x,/b=y"});
    CHECK(rules("/aaa\\,b=x") == Rules{"/aaa,b=x"});
    const auto refusal = [](const char* typed) -> std::string {
        try {
            PathMap::parse({typed});
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    };
    CHECK(refusal("/w/a,b").starts_with("--map '/w/a,b': there is no '='\n"));
    CHECK(refusal("/a=x,b=y").starts_with("--map '/a=x,b=y': in 'b=y' OLD is not absolute\n"));
    CHECK(refusal("/a=x,/b").starts_with("--map '/a=x,/b': in '/b' there is no '='\n"));
    CHECK(refusal("/a=x,/a=y").starts_with("--map '/a=x,/a=y': in '/a=y' another --map"));
}

TEST_CASE("parents of a mapped folder that no rule places themselves") {
    const PathMap map = PathMap::parse({"/jobs/deep/dir=.", "/jobs/other=o"});
    for (const char* path : {"/", "/jobs", "/jobs/deep"}) {
        CAPTURE(path);
        CHECK(map.is_above_rule(path));
    }
    for (const char* path : {"/jobs/deep/dir", "/jobs/deep/dir/x", "/jobs/deep/dirx", "/jobs/other", "/j", "/data"}) {
        CAPTURE(path);
        CHECK_FALSE(map.is_above_rule(path));
    }
    CHECK_FALSE(PathMap::parse({"/jobs/deep/dir=.", "/=all"}).is_above_rule("/jobs"));
    CHECK_FALSE(PathMap().is_above_rule("/"));
}

TEST_CASE("what has no place below the root maps nowhere") {
    const PathMap map;
    for (const std::string path : {"", "relative/x", "pipe:[12]", "/..", "/../etc/passwd", "/a/../../b"}) {
        CAPTURE(path);
        CHECK(map.map(path) == kNowhere);
    }
    CHECK(map.map(std::string("/a\0b", 4)) == kNowhere);
    CHECK(map.map("/" + std::string(256, 'x')) == kNowhere);
    CHECK(map.map("/" + std::string(255, 'x')) == Map(std::string(255, 'x')));
    std::string deep;
    while (deep.size() < 5000) {
        deep += "/d";
    }
    CHECK(map.map(deep) == kNowhere);
    CHECK(map.map("/.reprise-prepared") == kNowhere);
    CHECK(map.map("/.reprise-prepared.partial") == kNowhere);
    CHECK(map.map("/x/../.reprise-prepared") == kNowhere);
    CHECK(map.map("/x/.reprise-prepared") == Map("x/.reprise-prepared"));
}

TEST_CASE("the longest rule wins and matches whole components") {
    const PathMap map = PathMap::parse({"/data=d", "/data/wl/=.", "/home/me=u/me/"});
    CHECK(map.map("/data/wl/train/a") == Map("train/a"));
    CHECK(map.map("/data/wl") == Map("."));
    CHECK(map.map("/data/wlx/a") == Map("d/wlx/a"));
    CHECK(map.map("/data") == Map("d"));
    CHECK(map.map("/database/a") == Map("database/a"));
    CHECK(map.map("/home/me/x") == Map("u/me/x"));
    CHECK(map.map("/data/../data/wl/x") == Map("x"));
    CHECK(PathMap::parse({"/=all"}).map("/x/y") == Map("all/x/y"));
    CHECK(PathMap::parse({"/data=."}).map("/data/.reprise-prepared") == kNowhere);
}

TEST_CASE("rules that cannot be meant are refused") {
    CHECK(usage_code({"/a"}) == 2);
    CHECK(usage_code({"a=b"}) == 2);
    CHECK(usage_code({"/a=/b"}) == 2);
    CHECK(usage_code({"/a=../b"}) == 2);
    CHECK(usage_code({"/a/../..=b"}) == 2);
    CHECK(usage_code({"/a=b", "/a/=c"}) == 2);
    CHECK(usage_code({"/a=b", "/a/=b"}) == 0);
}

TEST_CASE("rules survive JSON, whatever bytes they hold") {
    const PathMap map = PathMap::parse({"/data/\xff\xfe%41=x", "/b=."});
    CHECK(PathMap::from_json(nlohmann::json::parse(map.to_json().dump()), "marker") == map);
    for (const char* text : {"[]", "{\"a\":\"b\"}", "{\"/a\":1}", "{\"/a\":\"../b\"}"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(PathMap::from_json(nlohmann::json::parse(text), "marker"), Error);
    }
    CHECK(percent_decode("%4") == "%4");
    CHECK(percent_decode("%zz%41") == "%zzA");
}

TEST_CASE("symbolic links lead to where their recorded target lies now") {
    const PathMap map = PathMap::parse({"/mnt/big=store"});
    CHECK(map.map_link("/data/current", "/mnt/big/v3") == Map("../store/v3"));
    CHECK(map.map_link("/data/current", "v3") == Map("v3"));
    CHECK(map.map_link("/data/a/b/c", "../x") == Map("../x"));
    CHECK(map.map_link("/top", "/") == Map("."));
    CHECK(map.map_link("/data/evil", "../../../../etc/passwd") == kNowhere);
    CHECK(map.map_link("/data/evil", "/etc/passwd") == Map("../etc/passwd"));
    CHECK(map.map_link("/data/empty", "") == kNowhere);
    CHECK(relative_from("a/b", "a/c/d") == "../c/d");
    CHECK(relative_from("a/b", "a/b") == ".");
    CHECK(relative_from("a/bc", "a/b") == "../b");
}

TEST_CASE("nothing opens outside the root") {
    const test::TempDir temp;
    std::filesystem::create_directories(temp / "root/dir");
    test::write_file(temp / "secret", "s");
    test::write_file(temp / "root/dir/file", "f");
    std::filesystem::create_symlink("../../secret", temp / "root/dir/out");
    std::filesystem::create_symlink(temp.path(), temp / "root/up");
    std::filesystem::create_symlink("file", temp / "root/dir/in");
    const int root = ::open((temp / "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(root >= 0);
    for (const Links links : {Links::refuse, Links::follow}) {
        CHECK(try_open(root, "dir/file", O_RDONLY, links) == 0);
        CHECK(try_open(root, ".", O_PATH | O_DIRECTORY, links) == 0);
        CHECK(try_open(root, "../secret", O_RDONLY, links) == -EXDEV);
        CHECK(try_open(root, (temp / "secret").c_str(), O_RDONLY, links) == -EXDEV);
        CHECK(try_open(root, "dir/../../secret", O_RDONLY, links) == -EXDEV);
        CHECK(try_open(root, "dir/new", O_WRONLY | O_CREAT | O_EXCL, links) == 0);
        ::unlink((temp / "root/dir/new").c_str());
    }
    CHECK(try_open(root, "dir/in", O_RDONLY, Links::follow) == 0);
    CHECK(try_open(root, "dir/in", O_RDONLY, Links::refuse) == -ELOOP);
    CHECK(try_open(root, "dir/out", O_RDONLY, Links::follow) == -EXDEV);
    CHECK(try_open(root, "dir/out", O_RDONLY, Links::refuse) == -ELOOP);
    CHECK(try_open(root, "dir/out", O_WRONLY | O_CREAT | O_TRUNC, Links::refuse) == -ELOOP);
    CHECK(try_open(root, "up/secret", O_RDONLY, Links::follow) == -EXDEV);
    CHECK(test::read_file(temp / "secret") == "s");

    std::string_view last;
    const int parent = open_parent(root, "dir/file", Links::refuse, &last);
    CHECK(parent >= 0);
    CHECK(last == "file");
    ::close(parent);
    CHECK(open_parent(root, "up/file", Links::refuse, &last) == -ELOOP);
    ::close(root);
}

}  // namespace reprise

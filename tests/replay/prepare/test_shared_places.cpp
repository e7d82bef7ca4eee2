// SPDX-License-Identifier: MIT
// Path rules that give several recorded files one place.
#include "replay/plan/shared_places.h"

#include "tests/replay/prepare/prepare_fixture.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

struct Rules {
    TempDir dir;
    fs::path root = dir / "root";
    LogBuilder log{dir / "log"};
};

}  // namespace

TEST_CASE_FIXTURE(Rules, "rules that make one file of two are refused, with both and the place") {
    log.file("/c/a", 5);
    log.file("/c/b", 7);
    log.file("/e/b", 7);
    const LogReader reader = log.finish();
    const std::string said = refusal(reader, {.root = root, .maps = PathMap::parse({"/c/a=x", "/c/b=x"})});
    CAPTURE(said);
    CHECK(said.starts_with("2 "));
    for (const char* part : {"/c/a", "/c/b", " at x"}) {
        CHECK(contains(said, part));
    }
    CHECK(contains(refusal(reader, {.root = root, .maps = PathMap::parse({"/c=.", "/e=."})}), " at b"));
    CHECK(contains(refusal(reader, {.root = root, .maps = PathMap::parse({"/c/a=e/b"})}), " at e/b"));
    CHECK_FALSE(fs::exists(root));
    CHECK(prepare(reader, {.root = root, .maps = PathMap::parse({"/c=."})}));
}

TEST_CASE_FIXTURE(Rules, "rules may give names of one inode one place") {
    FileRow row;
    row.type = FileType::regular;
    row.role = Role::dataset;
    row.origin = Origin::existed;
    row.device = 1;
    row.inode = 7;
    log.row(row, "/c/a");
    log.row(row, "/c/b");
    const LogReader reader = log.finish();
    CHECK(prepare(reader, {.root = root, .maps = PathMap::parse({"/c/a=x", "/c/b=x"})}));
}

}  // namespace reprise::test

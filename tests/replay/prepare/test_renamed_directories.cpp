// SPDX-License-Identifier: MIT
// A reset after directories were renamed: as every atomic checkpoint does, in chains, in rotation, and one in the
// other.
#include <doctest/doctest.h>

#include <fcntl.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "replay/prepare/moved_directories.h"
#include "tests/replay/prepare/prepare_fixture.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;
namespace fs = std::filesystem;

namespace {

/// Does to a root what it writes to a log.
class RenamingJob {
public:
    void had_directory(const std::string& name) { log_.directory("/" + name); }
    void had(const std::string& name, uint64_t size) { log_.open(log_.file("/" + name, size), O_RDONLY); }
    void mkdir(const std::string& name) {
        log_.named(OpKind::mkdir, log_.directory("/" + name, Origin::created));
        steps_.emplace_back([name](const fs::path& root) { REQUIRE(fs::create_directory(root / name)); });
    }
    void write(const std::string& name, size_t size) {
        log_.write(log_.open(log_.file("/" + name, 0, Origin::created), O_CREAT | O_WRONLY), 0,
                   static_cast<int64_t>(size));
        steps_.emplace_back(
            [name, size](const fs::path& root) { test::write_file(root / name, std::string(size, 'w')); });
    }
    void rename(const std::string& from, const std::string& to, Origin origin = Origin::created) {
        log_.named(OpKind::rename, log_.directory("/" + from, origin), log_.directory("/" + to, Origin::created));
        steps_.emplace_back([from, to](const fs::path& root) { fs::rename(root / from, root / to); });
    }
    void remove(const std::string& file) {
        log_.named(OpKind::unlink, log_.file("/" + file, 0));
        steps_.emplace_back([file](const fs::path& root) { REQUIRE(fs::remove(root / file)); });
    }
    /// A checkpoint is written beside the last one, and takes its place.
    void replace_last(size_t size) {
        mkdir("tmp");
        write("tmp/model", size);
        rename("tmp", "last");
    }
    void rmdir(const std::string& name) {
        log_.named(OpKind::rmdir, log_.directory("/" + name));
        steps_.emplace_back([name](const fs::path& root) { REQUIRE(fs::remove(root / name)); });
    }

    /// After each run, whole or cut short, a reset brings back what was there at first.
    void check() {
        const LogReader log = log_.finish();
        const fs::path root = temp_ / "root";
        REQUIRE(prepare(log, {.root = root}));
        const auto before = picture(root);
        for (size_t performed = steps_.size(); performed > 0; --performed) {
            INFO("after ", performed, " steps");
            for (size_t i = 0; i < performed; ++i) {
                steps_[i](root);
            }
            Preparation preparation(log, {.root = root, .reset = true, .threads = 2});
            preparation.check();
            WriteState state;
            REQUIRE(preparation.run(state, {}));
            CHECK(state.left.count == 0);
            REQUIRE(picture(root) == before);
        }
        Preparation again(log, {.root = root, .reset = true, .threads = 2});
        CHECK(again.survey().renames_back.empty());
    }

private:
    const TempDir temp_;
    LogBuilder log_{temp_ / "log"};
    std::vector<std::function<void(const fs::path&)>> steps_;
};

}  // namespace

TEST_CASE_FIXTURE(RenamingJob, "a reset removes what the job made and then renamed") {
    SUBCASE("an atomic checkpoint") {
        mkdir("tmp-ck");
        write("tmp-ck/model", 5000);
        rename("tmp-ck", "ck-1");
        write("ck-1/done", 10);
    }
    SUBCASE("one after the other, by the same name") {
        for (const char* const name : {"ck-1", "ck-2", "ck-3"}) {
            mkdir("tmp-ck");
            write("tmp-ck/model", 5000);
            rename("tmp-ck", name);
        }
    }
    SUBCASE("with directories in it") {
        mkdir("tmp");
        mkdir("tmp/shards");
        mkdir("tmp/shards/deep");
        write("tmp/shards/deep/0", 5000);
        rename("tmp", "ck");
        write("ck/shards/deep/1", 10);
    }
    SUBCASE("in a chain") {
        mkdir("a");
        write("a/x", 100);
        rename("a", "b");
        write("b/y", 100);
        rename("b", "c");
        mkdir("c/d");
        rename("c/d", "c/e");
        write("c/e/z", 10);
        rename("c", "f");
    }
    SUBCASE("below a directory that was there, which is renamed too") {
        had("run/config", 300);
        mkdir("run/tmp");
        write("run/tmp/model", 700);
        rename("run/tmp", "run/ck");
        rename("run", "run-1", Origin::existed);
    }
    check();
}

TEST_CASE_FIXTURE(RenamingJob, "a reset gives directories that were there their names back") {
    SUBCASE("one gets the name of another") {
        had("a/x", 3000);
        had("b/y", 4000);
        rename("b", "c", Origin::existed);
        rename("a", "b", Origin::existed);
    }
    SUBCASE("the same, with equal files") {
        had("a/model", 3000);
        had("b/model", 3000);
        rename("b", "c", Origin::existed);
        rename("a", "b", Origin::existed);
    }
    SUBCASE("they exchange their names by way of a third") {
        had("a/x", 3000);
        had("b/y", 4000);
        rename("a", "t", Origin::existed);
        rename("b", "a", Origin::existed);
        rename("t", "b");
    }
    SUBCASE("the last becomes the one before") {
        had("last/model", 3000);
        had("prev/model", 4000);
        remove("prev/model");
        rmdir("prev");
        rename("last", "prev", Origin::existed);
        replace_last(5000);
    }
    SUBCASE("the last becomes the one before, twice") {
        had("last/model", 3000);
        rename("last", "prev", Origin::existed);
        replace_last(3000);
        remove("prev/model");
        rmdir("prev");
        rename("last", "prev");
        replace_last(3000);
    }
    SUBCASE("one in the other") {
        had("p/q/x", 3000);
        had("p/y", 10);
        rename("p/q", "p/r", Origin::existed);
        rename("p", "z", Origin::existed);
        rename("z/r", "s");
    }
    SUBCASE("into one that the job makes") {
        had("a/x", 3000);
        mkdir("old");
        rename("a", "old/a", Origin::existed);
        write("old/a/y", 10);
        rename("old", "older");
    }
    check();
}

TEST_CASE("what an interrupted reset has set aside gets its name back") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    builder.open(builder.file("/in/a/x", 3000), O_RDONLY);
    builder.named(OpKind::rename, builder.directory("/in/a"), builder.directory("/in/b", Origin::created));
    const LogReader log = builder.finish();
    const fs::path root = temp / "root";
    REQUIRE(prepare(log, {.root = root}));
    const auto before = picture(root);
    fs::rename(root / "in/a", root / waiting_name("in/b", "in/a"));
    REQUIRE(prepare(log, {.root = root, .reset = true}));
    CHECK(picture(root) == before);
}

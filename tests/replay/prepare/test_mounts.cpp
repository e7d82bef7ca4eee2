// SPDX-License-Identifier: MIT
// Preparation on file systems that are full, read-only or several at once. Mounting needs root; skipped aloud without.
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/replay/prepare/prepare_fixture.h"

namespace reprise {

using test::contains;
using test::LogBuilder;
using test::picture;
using test::prepare;
using test::refusal;
using test::TempDir;
namespace fs = std::filesystem;

namespace {

/// A tmpfs that goes away.
class Mount {
public:
    Mount(fs::path path, const char* options) : path_(std::move(path)) {
        fs::create_directories(path_);
        error_ = ::mount("reprise-test", path_.c_str(), "tmpfs", 0, options) == 0 ? 0 : errno;
    }
    ~Mount() {
        if (error_ == 0) {
            ::umount2(path_.c_str(), MNT_DETACH);
        }
    }
    Mount(const Mount&) = delete;
    Mount& operator=(const Mount&) = delete;
    bool ok() const { return error_ == 0; }
    std::string why() const { return "cannot mount a tmpfs: " + std::string(std::strerror(error_)); }
    bool again(unsigned long flags, const char* options) const {
        return ::mount("reprise-test", path_.c_str(), "tmpfs", MS_REMOUNT | flags, options) == 0;
    }

private:
    fs::path path_;
    int error_;
};

}  // namespace

TEST_CASE("a reset of a root that a replay has filled frees room before it needs any") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    builder.file("/in", 100'000);
    const FileId journal = builder.file("/data/journal", 1'000);
    builder.write(builder.open(journal, O_WRONLY), 1'000, 50);
    const FileId out = builder.file("/out", 0, Origin::created);
    builder.write(builder.open(out, O_WRONLY | O_CREAT), 0, 50);
    const LogReader log = builder.finish();
    const fs::path root = temp / "root";
    const Mount mount(root, "size=2m");
    if (!mount.ok()) {
        REPRISE_SKIP(mount.why());
        return;
    }
    REQUIRE(prepare(log, {.root = root}));
    const auto fresh = picture(root);
    for (const char* const grown : {"out", "data/journal"}) {
        CAPTURE(grown);
        {
            const UniqueFd file(::open((root / grown).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644));
            const std::vector<char> page(4096);
            while (::write(file.get(), page.data(), page.size()) > 0) {
            }
            REQUIRE(errno == ENOSPC);
        }
        CHECK(refusal(log, {.root = root, .reset = true}) == "");
        CHECK(picture(root) == fresh);
        CHECK(read_marker(UniqueFd(::open(root.c_str(), O_RDONLY | O_DIRECTORY)).get(), "root")->state ==
              MarkerState::complete);
    }
}

TEST_CASE("a root that the replay would fill is refused before anything is written") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    builder.file("/in", 1 << 20);
    builder.write(builder.open(builder.file("/out", 0, Origin::created), O_WRONLY | O_CREAT), 0, 2 << 20);
    const LogReader log = builder.finish();
    const fs::path root = temp / "root";
    const Mount mount(root, "size=2m");
    if (!mount.ok()) {
        REPRISE_SKIP(mount.why());
        return;
    }
    const std::string why = refusal(log, {.root = root});
    CHECK(contains(why, "4 the replay does not fit on the file system of "));
    CHECK(contains(why, "it writes 2097152 bytes beside the 1048576 to be laid out, and 2097152 are free"));
    CHECK(picture(root).empty());
    REQUIRE(mount.again(0, "size=4m"));
    CHECK(prepare(log, {.root = root}));
}

TEST_CASE("a disk that fills up midway ends with a message, and the next run goes on") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    // A file of many writes, one of a few and small ones.
    builder.file("/many", 70 << 20);
    builder.file("/few", 6 << 20);
    for (int i = 0; i < 20; ++i) {
        builder.file("/small" + std::to_string(i), 50'000);
    }
    const LogReader log = builder.finish();
    const fs::path root = temp / "root";
    const Mount mount(root, "size=90m");
    if (!mount.ok()) {
        REPRISE_SKIP(mount.why());
    }
    std::string why;
    {
        Preparation preparation(log, {.root = root, .threads = 2});
        preparation.check();
        test::write_file(root / "hog", std::string(60 << 20, 'h'));
        WriteState state;
        try {
            preparation.run(state, {});
        } catch (const Error& error) {
            CHECK(error.code() == ExitCode::machine);
            why = error.what();
        }
    }
    CHECK(contains(why, "no space left at "));
    CHECK(contains(why, "run the same command again"));
    const int fd = ::open(root.c_str(), O_RDONLY | O_DIRECTORY);
    CHECK(read_marker(fd, root.string())->state == MarkerState::incomplete);
    ::close(fd);
    for (const auto& [name, text] : picture(root)) {
        const auto& this_name = name;  // clang 14 has no capture of bindings
        CAPTURE(this_name);
        if (name == "many" || name == "few") {
            CHECK(fs::file_size(root / name) == (name == "many" ? 70 << 20 : 6 << 20));
        }
    }
    // Still full: refused before anything is written.
    CHECK(contains(refusal(log, {.root = root}), "does not fit"));
    fs::remove(root / "hog");
    REQUIRE(prepare(log, {.root = root}));
    const fs::path other = temp / "other";
    REQUIRE(prepare(log, {.root = other}));
    CHECK(picture(root) == picture(other));
}

TEST_CASE("no room for another file name is seen before writing") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    for (int i = 0; i < 100; ++i) {
        builder.file("/f" + std::to_string(i));
    }
    const LogReader log = builder.finish();
    const Mount mount(temp / "root", "size=1m,nr_inodes=50");
    if (!mount.ok()) {
        REPRISE_SKIP(mount.why());
    }
    CHECK(contains(refusal(log, {.root = temp / "root"}), "100 inodes are needed"));
    CHECK(picture(temp / "root").empty());
}

TEST_CASE("a read-only root is refused") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    builder.file("/a", 10);
    const LogReader log = builder.finish();
    const Mount mount(temp / "root", "size=1m");
    if (!mount.ok()) {
        REPRISE_SKIP(mount.why());
    }
    REQUIRE(mount.again(MS_RDONLY, "size=1m"));
    const std::string why = refusal(log, {.root = temp / "root"});
    CHECK(why.starts_with("4 "));
    CHECK(contains(why, "Read-only file system"));
    REQUIRE(mount.again(0, "size=1m"));
    CHECK(picture(temp / "root").empty());
}

TEST_CASE("a file system mounted below the root is counted for itself") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    builder.file("/here", 5 << 20);
    builder.file("/there/file", 5 << 20);
    const LogReader log = builder.finish();
    const fs::path root = temp / "root";
    fs::create_directories(root);
    const Mount mount(root / "there", "size=1m");
    if (!mount.ok()) {
        REPRISE_SKIP(mount.why());
    }
    CHECK(contains(refusal(log, {.root = root}), "does not fit on the file system of there"));
    REQUIRE(mount.again(0, "size=10m"));
    REQUIRE(prepare(log, {.root = root}));
    CHECK(fs::file_size(root / "there/file") == 5 << 20);
}

TEST_CASE("a file system without direct access is written through the page cache") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    builder.file("/odd", (80 << 20) + 4097);
    builder.file("/middle", (5 << 20) + 1);
    const LogReader log = builder.finish();
    const fs::path root = temp / "root";
    const Mount mount(root, "size=100m");
    if (!mount.ok()) {
        REPRISE_SKIP(mount.why());
    }
    REQUIRE(prepare(log, {.root = root}));
    REQUIRE(prepare(log, {.root = temp / "disk"}));
    CHECK(picture(root) == picture(temp / "disk"));
}

}  // namespace reprise

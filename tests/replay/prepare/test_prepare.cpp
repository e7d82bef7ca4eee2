// SPDX-License-Identifier: MIT
// Preparation: what is laid out, what is refused, and that a reset puts everything back.
#include <sys/mman.h>
#include <sys/xattr.h>
#include <zstd.h>

#include <cstring>
#include <fstream>
#include <set>
#include <thread>

#include "formats/oplog/touched.h"
#include "replay/content/content.h"
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

uint32_t mode_of(const fs::path& path) {
    struct stat status {};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    return status.st_mode & 07777;
}

/// A log with one of everything a recording does to files.
LogReader busy_log(const fs::path& path) {
    LogBuilder log(path);
    log.directory("/data", Origin::existed, 0750);
    log.file("/data/read_only", 100'000, Origin::existed, FileType::regular, 0600);
    log.file("/data/empty");
    log.file("/data/link", 4, Origin::existed, FileType::symlink, 0, "/data/read_only");
    log.file("/data/fifo", 0, Origin::existed, FileType::fifo);
    log.write(log.open(log.file("/data/overwritten", 3'000'000), O_RDWR), 70'000, 10'000);
    log.write(log.open(log.file("/data/appended", 5000), O_WRONLY | O_APPEND), 5000, 300);
    log.open(log.file("/data/truncated", 5000), O_WRONLY | O_TRUNC);
    log.named(OpKind::truncate, log.file("/data/shortened", 9000), 0, 100);
    log.named(OpKind::unlink, log.file("/data/removed", 1234));
    const FileId from = log.file("/data/renamed", 777);
    log.named(OpKind::rename, from, log.file("/data/renamed.new", 777, Origin::created));
    log.named(OpKind::chmod, log.file("/data/locked", 10, Origin::existed, FileType::regular, 0640), 0, 0, 0400);
    // A directory that is renamed, with a file only ever seen under its new name and one made in it later.
    const FileId old_directory = log.directory("/data/old");
    log.file("/data/old/kept", 2000);
    log.named(OpKind::rename, old_directory, log.directory("/data/new", Origin::created));
    log.open(log.file("/data/new/seen_late", 3000), O_RDONLY);
    log.open(log.file("/data/new/made", 5, Origin::created), O_WRONLY | O_CREAT);
    // Made by the recording.
    log.named(OpKind::mkdir, log.directory("/out", Origin::created));
    log.named(OpKind::mkdir, log.directory("/out/deep", Origin::created));
    log.open(log.file("/out/deep/file", 10, Origin::created), O_WRONLY | O_CREAT | O_EXCL);
    log.open(log.file("/logs/run/log", 10, Origin::created), O_WRONLY | O_CREAT);
    log.named(OpKind::symlink, log.file("/data/made_link", 0, Origin::created, FileType::symlink, 0, "empty"));
    return log.finish();
}

/// What a replay of busy_log leaves behind, and more of the kind.
void act_busily(const fs::path& root) {
    const auto put = [&](const char* name, size_t offset, const std::string& bytes) {
        std::fstream file(root / name, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(offset));
        file << bytes;
        REQUIRE(file.good());
    };
    put("data/overwritten", 70'000, std::string(10'000, 'x'));
    put("data/appended", 5000, std::string(300, 'y'));
    fs::resize_file(root / "data/truncated", 0);
    fs::resize_file(root / "data/shortened", 100);
    fs::remove(root / "data/removed");
    fs::rename(root / "data/renamed", root / "data/renamed.new");
    fs::permissions(root / "data/locked", fs::perms::owner_read);
    fs::rename(root / "data/old", root / "data/new");
    test::write_file(root / "data/new/made", "12345");
    fs::create_directories(root / "out/deep");
    test::write_file(root / "out/deep/file", "0123456789");
    test::write_file(root / "logs/run/log", "0123456789");
    fs::create_symlink("empty", root / "data/made_link");
}

}  // namespace

TEST_CASE("what an access check found executable is so, until the log says otherwise") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    const auto check = [&](FileId file) {
        Op op{.kind = OpKind::access, .file = file, .mode = X_OK};
        builder.add(op, 0);
    };
    check(builder.file("/data/tool", 10));
    const FileId later = builder.file("/data/later", 10);
    builder.named(OpKind::chmod, later, 0, 0, 0755);
    check(later);
    check(builder.directory("/data/folder"));
    builder.file("/data/target", 10);
    check(builder.file("/data/link", 0, Origin::existed, FileType::symlink, 0, "target"));
    const LogReader log = builder.finish();
    const fs::path root = temp / "root";
    REQUIRE(prepare(log, {.root = root}));
    CHECK(mode_of(root / "data/tool") == 0755);
    CHECK(mode_of(root / "data/later") == 0644);
    CHECK(mode_of(root / "data/folder") == 0755);
    CHECK(mode_of(root / "data/target") == 0755);

    fs::permissions(root / "data/tool", fs::perms::owner_read | fs::perms::owner_write);
    CHECK_THROWS_WITH_AS(prepare(log, {.root = root}), doctest::Contains("not executable"), Error);
    REQUIRE(prepare(log, {.root = root, .reset = true}));
    CHECK(mode_of(root / "data/tool") == 0755);
}

TEST_CASE("everything the recording found is laid out, and nothing it makes") {
    const TempDir temp;
    const LogReader log = busy_log(temp / "log");
    const fs::path root = temp / "root";
    REQUIRE(prepare(log, {.root = root}));
    std::set<std::string> names;
    for (const auto& [name, text] : picture(root)) {
        names.insert(name);
    }
    CHECK(names == std::set<std::string>{"data", "data/appended", "data/empty", "data/fifo", "data/link", "data/locked",
                                         "data/old", "data/old/kept", "data/old/seen_late", "data/overwritten",
                                         "data/read_only", "data/removed", "data/renamed", "data/shortened",
                                         "data/truncated", "logs", "logs/run"});
    CHECK(fs::file_size(root / "data/overwritten") == 3'000'000);
    CHECK(fs::file_size(root / "data/old/seen_late") == 3000);
    CHECK(fs::read_symlink(root / "data/link") == "read_only");
    CHECK(fs::is_fifo(root / "data/fifo"));
    CHECK(mode_of(root / "data") == 0750);
    CHECK(mode_of(root / "data/read_only") == 0600);
    CHECK(mode_of(root / "data/locked") == 0640);
    CHECK(mode_of(root / "data/empty") == 0644);
    const int fd = ::open(root.c_str(), O_RDONLY | O_DIRECTORY);
    const auto marker = read_marker(fd, root.string());
    ::close(fd);
    REQUIRE(marker);
    CHECK(marker->state == MarkerState::complete);
    CHECK(marker->fingerprint == log_fingerprint(log));
    CHECK(OpFilter::parse(marker->filter) == OpFilter{});
}

TEST_CASE("directories of many files are laid out whole, and seen whole the next time") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    for (int i = 0; i < 4200; ++i) {
        builder.file("/many/" + std::to_string(i), 0);
    }
    for (int i = 0; i < 50; ++i) {
        builder.file("/more/" + std::to_string(i), 1);
    }
    const LogReader log = builder.finish();
    const fs::path root = temp / "root";
    REQUIRE(prepare(log, {.root = root}));
    const auto count = [&](const char* directory) {
        return std::distance(fs::directory_iterator(root / directory), fs::directory_iterator());
    };
    CHECK(count("many") == 4200);
    CHECK(count("more") == 50);
    CHECK(Preparation(log, {.root = root}).nothing_to_do());
    fs::remove(root / "more/49");
    fs::remove(root / "many/4199");
    CHECK_FALSE(Preparation(log, {.root = root}).nothing_to_do());
    REQUIRE(prepare(log, {.root = root}));
    CHECK(count("many") == 4200);
    CHECK(count("more") == 50);
}

TEST_CASE("a second run has nothing to do, and a reset after a busy replay gives the same tree") {
    const TempDir temp;
    const LogReader log = busy_log(temp / "log");
    for (const Content content : {Content::random, Content::zero, Content::sparse}) {
        CAPTURE(content_name(content));
        const fs::path root = temp / content_name(content);
        REQUIRE(prepare(log, {.root = root, .content = content}));
        const auto fresh = picture(root);
        CHECK(Preparation(log, {.root = root}).nothing_to_do());
        REQUIRE(prepare(log, {.root = root}));
        CHECK(picture(root) == fresh);

        act_busily(root);
        CHECK(picture(root) != fresh);
        CHECK(contains(refusal(log, {.root = root}), "--reset"));
        REQUIRE(prepare(log, {.root = root, .reset = true}));
        CHECK(picture(root) == fresh);
        // And once more, from a state in which nothing was changed.
        REQUIRE(prepare(log, {.root = root, .reset = true}));
        CHECK(picture(root) == fresh);
    }
}

TEST_CASE("a reset leaves alone what the log does not name") {
    const TempDir temp;
    const LogReader log = busy_log(temp / "log");
    const fs::path root = temp / "root";
    REQUIRE(prepare(log, {.root = root}));
    act_busily(root);
    test::write_file(root / "mine", "m");
    test::write_file(root / "out/deep/mine", "m");
    test::write_file(root / "data/mine", "m");
    Preparation preparation(log, {.root = root, .reset = true, .threads = 2});
    preparation.check();
    WriteState state;
    REQUIRE(preparation.run(state, {}));
    CHECK(test::read_file(root / "mine") == "m");
    CHECK(test::read_file(root / "out/deep/mine") == "m");
    CHECK(test::read_file(root / "data/mine") == "m");
    CHECK_FALSE(fs::exists(root / "out/deep/file"));
    CHECK(state.left.count == 2);  // out/deep and out
}

TEST_CASE("without a marker nothing is changed, with or without --reset") {
    const TempDir temp;
    const LogReader log = busy_log(temp / "log");
    const fs::path root = temp / "root";
    fs::create_directories(root / "data");

    SUBCASE("a file of another size") {
        test::write_file(root / "data/read_only", "short");
        CHECK(contains(refusal(log, {.root = root}), "4 "));
        CHECK(contains(refusal(log, {.root = root}), "data/read_only (has 5 bytes"));
        CHECK(test::read_file(root / "data/read_only") == "short");
    }
    SUBCASE("a file of the right size that a replay would change") {
        test::write_file(root / "data/truncated", std::string(5000, 'v'));
        CHECK(contains(refusal(log, {.root = root}), "data/truncated (the recording changes it"));
    }
    SUBCASE("a file that the recording makes") {
        fs::create_directories(root / "logs/run");
        test::write_file(root / "logs/run/log", "precious");
        CHECK(contains(refusal(log, {.root = root}), "logs/run/log (the recording makes it"));
        CHECK(test::read_file(root / "logs/run/log") == "precious");
    }
    SUBCASE("a file where a directory is needed") {
        test::write_file(root / "logs", "precious");
        CHECK(contains(refusal(log, {.root = root}), "logs (not a directory"));
        CHECK(test::read_file(root / "logs") == "precious");
    }
    SUBCASE("reset") { CHECK(contains(refusal(log, {.root = root, .reset = true}), "has no marker")); }
    CHECK_FALSE(fs::exists(root / kMarkerName));
    CHECK_FALSE(fs::exists(root / "data/appended"));
}

TEST_CASE("a file that is only read may be there already") {
    const TempDir temp;
    const LogReader log = busy_log(temp / "log");
    const fs::path root = temp / "root";
    fs::create_directories(root / "data");
    test::write_file(root / "data/read_only", std::string(100'000, 'r'));
    REQUIRE(prepare(log, {.root = root}));
    CHECK(test::read_file(root / "data/read_only") == std::string(100'000, 'r'));
}

TEST_CASE("planted symbolic links lead nowhere") {
    const TempDir temp;
    const LogReader log = busy_log(temp / "log");
    const fs::path root = temp / "root";
    const fs::path outside = temp / "outside";
    fs::create_directories(outside / "run");
    test::write_file(outside / "victim", "v");
    SUBCASE("in an unmarked root") {
        fs::create_directories(root);
        fs::create_symlink(outside, root / "data");
        CHECK(contains(refusal(log, {.root = root}), "data (not a directory"));
        CHECK(fs::is_symlink(root / "data"));
    }
    SUBCASE("in a marked root, on reset") {
        REQUIRE(prepare(log, {.root = root}));
        const auto fresh = picture(root);
        fs::remove_all(root / "logs");
        fs::create_symlink(outside, root / "logs");
        test::write_file(outside / "run/log", "precious");
        fs::remove(root / "data/truncated");
        fs::create_symlink(outside / "victim", root / "data/truncated");
        fs::remove(root / "data/overwritten");
        fs::create_hard_link(outside / "victim", root / "data/overwritten");
        REQUIRE(prepare(log, {.root = root, .reset = true}));
        CHECK(picture(root) == fresh);
        CHECK(test::read_file(outside / "run/log") == "precious");
    }
    SUBCASE("a hard link of the right size") {
        REQUIRE(prepare(log, {.root = root}));
        const auto fresh = picture(root);
        test::write_file(outside / "twin", std::string(3'000'000, 't'));
        fs::remove(root / "data/overwritten");
        fs::create_hard_link(outside / "twin", root / "data/overwritten");
        REQUIRE(prepare(log, {.root = root, .reset = true}));
        CHECK(picture(root) == fresh);
        CHECK(test::read_file(outside / "twin") == std::string(3'000'000, 't'));
    }
    CHECK(test::read_file(outside / "victim") == "v");
}

TEST_CASE("hostile paths are left out and counted") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    builder.file("/../../etc/passwd", 10);
    builder.file("relative", 10);
    builder.file("", 10);
    builder.file("/.reprise-prepared", 10);
    builder.file("/x/../../y", 10);
    builder.file("/evil", 0, Origin::existed, FileType::symlink, 0, "../../../etc/passwd");
    builder.file("/through/file", 10);
    builder.file("/through", 0, Origin::existed, FileType::symlink, 0, "../..");
    builder.file("/loop", 0, Origin::existed, FileType::symlink, 0, "loop/x");
    builder.file("/loop/file", 1);
    builder.file("/file", 5);
    builder.file("/file/below", 5);
    builder.file("/new\nline\xff", 5);
    builder.file("/socket", 0, Origin::existed, FileType::socket);
    const LogReader log = builder.finish();
    const fs::path root = temp / "root";
    Preparation preparation(log, {.root = root, .threads = 2});
    preparation.check();
    WriteState state;
    REQUIRE(preparation.run(state, {}));
    std::map<std::string, uint64_t> counters;
    for (const Counter& counter : preparation.layout().counters) {
        counters[counter.name] = counter.value;
    }
    CHECK(counters["paths_outside_root"] == 5);
    CHECK(counters["path_conflicts"] >= 1);
    CHECK(counters["special_files"] == 1);
    CHECK(counters["links_unresolved"] >= 1);
    const auto tree = picture(root);
    CHECK(tree.count("file") == 1);
    CHECK(tree.count("new\nline\xff") == 1);
    CHECK(tree.count("evil") == 0);
    CHECK(fs::exists(root / "file"));
}

TEST_CASE("paths through symbolic links of the recording land where the links lead") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    builder.file("/data/current", 0, Origin::existed, FileType::symlink, 0, "/mnt/v3");
    builder.file("/data/current/train/a", 10);
    const FileId opened = builder.file("/data/index", 9, Origin::existed, FileType::symlink, 0, "/mnt/index.7");
    Op read;
    read.kind = OpKind::pread;
    read.handle = builder.open(opened, O_RDONLY);
    read.offset = 100;
    read.size = 50;
    builder.add(read, 50);
    const LogReader log = builder.finish();
    const fs::path root = temp / "root";
    REQUIRE(prepare(log, {.root = root, .maps = PathMap::parse({"/mnt=store"})}));
    CHECK(fs::read_symlink(root / "data/current") == "../store/v3");
    CHECK(fs::file_size(root / "store/v3/train/a") == 10);
    CHECK(fs::file_size(root / "data/current/train/a") == 10);
    CHECK(fs::file_size(root / "data/index") == 150);
    CHECK_FALSE(fs::is_symlink(root / "store/index.7"));
}

TEST_CASE("rows without an origin are decided by the ops") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    builder.open(builder.file("/read", 10, Origin::unknown), O_RDONLY);
    builder.open(builder.file("/made", 10, Origin::unknown), O_WRONLY | O_CREAT | O_TRUNC);
    builder.open(builder.file("/missing", 0, Origin::unknown, FileType::unknown), O_RDONLY, -ENOENT);
    builder.named(OpKind::mkdir, builder.file("/there", 0, Origin::unknown, FileType::unknown), 0, 0, 0755, -EEXIST);
    builder.handle({.file = builder.file("/inherited", 7, Origin::unknown), .inherited = true});
    builder.file("/absent", 0, Origin::absent);
    // Removed, then made anew: another row of the same path.
    const FileId first = builder.file("/twice", 20);
    builder.named(OpKind::unlink, first);
    builder.open(builder.file("/twice", 40, Origin::created), O_WRONLY | O_CREAT);
    const LogReader log = builder.finish();
    const fs::path root = temp / "root";
    REQUIRE(prepare(log, {.root = root}));
    const auto tree = picture(root);
    CHECK(tree.size() == 4);
    CHECK(fs::file_size(root / "read") == 10);
    CHECK(fs::is_directory(root / "there"));
    CHECK(fs::file_size(root / "inherited") == 7);
    CHECK(fs::file_size(root / "twice") == 20);
}

TEST_CASE("role and path filters") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    FileRow row;
    row.type = FileType::regular;
    row.origin = Origin::existed;
    row.size = 5;
    row.size_exact = true;
    row.role = Role::program;
    builder.row(row, "/usr/lib/x.so");
    row.role = Role::dataset;
    builder.row(row, "/data/a");
    row.role = Role::checkpoint;
    builder.row(row, "/ckpt/b");
    const LogReader log = builder.finish();
    const auto names = [&](const char* name, std::optional<OpFilter> filter) {
        REQUIRE(prepare(log, {.root = temp / name, .filter = filter}));
        std::string out;
        for (const auto& [path, text] : picture(temp / name)) {
            out += path + " ";
        }
        return out;
    };
    CHECK(names("default", std::nullopt) == "ckpt ckpt/b data data/a ");
    CHECK(names("role", OpFilter::from_words({"dataset"}, {})) == "data data/a ");
    CHECK(names("glob", OpFilter::from_words({"/usr/*"}, {})) == "usr usr/lib usr/lib/x.so ");
    CHECK(names("not", OpFilter::from_words({}, {"/ckpt/*"})).find("ckpt") == std::string::npos);
}

TEST_CASE("settings are kept in the marker") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    builder.file("/data/a", 5000);
    const LogReader log = builder.finish();
    const fs::path root = temp / "root";
    REQUIRE(prepare(log, {.root = root, .content = Content::zero, .maps = PathMap::parse({"/data=."})}));
    CHECK(test::read_file(root / "a") == std::string(5000, '\0'));
    CHECK(Preparation(log, {.root = root}).nothing_to_do());
    SUBCASE("another content needs a reset") {
        CHECK(contains(refusal(log, {.root = root, .content = Content::random}), "--content zero, not random"));
        REQUIRE(prepare(log, {.root = root, .content = Content::random, .reset = true}));
        CHECK(test::read_file(root / "a") != std::string(5000, '\0'));
        CHECK(fs::file_size(root / "a") == 5000);
    }
    SUBCASE("another log is said") {
        LogBuilder other(temp / "other");
        other.file("/b", 3);
        const LogReader log2 = other.finish();
        Preparation preparation(log2, {.root = root});
        CHECK(preparation.remarks().size() == 1);
        CHECK(log_fingerprint(log2) != log_fingerprint(log));
    }
    SUBCASE("a replay that changes files is remembered where it matters") {
        const int fd = ::open(root.c_str(), O_RDONLY | O_DIRECTORY);
        RootLock lock = RootLock::take(fd, root.string(), RootLock::Kind::exclusive);
        mark_changed(fd, root.string(), lock);
        CHECK_THROWS_AS(RootLock::take(fd, root.string(), RootLock::Kind::shared), Error);  // moved to the new marker
        lock = {};
        CHECK(read_marker(fd, root.string())->state == MarkerState::changed);
        ::close(fd);
        REQUIRE(prepare(log, {.root = root}));  // this log changes nothing that was there
    }
    SUBCASE("a marker that is not one") {
        test::write_file(root / kMarkerName, "{\"version\": 7}");
        CHECK(contains(refusal(log, {.root = root}), "3 "));
        CHECK(contains(refusal(log, {.root = root}), "version 7, expected 1"));
        test::write_file(root / kMarkerName, "nonsense");
        CHECK(contains(refusal(log, {.root = root}), "not a JSON object"));
    }
}

TEST_CASE("what cannot fit is refused before anything is written") {
    const TempDir temp;
    const fs::path root = temp / "root";
    SUBCASE("more than the disk") {
        LogBuilder builder(temp / "log");
        for (int i = 0; i < 100; ++i) {
            builder.file("/big" + std::to_string(i), uint64_t{1} << 40);
        }
        const LogReader log = builder.finish();
        CHECK(contains(refusal(log, {.root = root}), "does not fit"));
    }
    SUBCASE("beyond 63 bits") {
        LogBuilder builder(temp / "log");
        builder.file("/a", uint64_t{1} << 63);
        builder.file("/b", UINT64_MAX);
        const LogReader log = builder.finish();
        for (const Content content : {Content::random, Content::sparse}) {
            CHECK(contains(refusal(log, {.root = root, .content = content}), "can hold in one file"));
        }
    }
    SUBCASE("a sparse file beyond the file system's limit") {
        LogBuilder builder(temp / "log");
        builder.file("/a", uint64_t{1} << 62);
        const LogReader log = builder.finish();
        const std::string why = refusal(log, {.root = root, .content = Content::sparse});
        if (why.empty()) {
            REPRISE_SKIP("this file system takes files of 2^62 bytes");
        }
        CHECK(why.starts_with("4 "));
        CHECK((contains(why, "can hold in one file") || contains(why, "larger than the file system")));
    }
    CHECK_FALSE(fs::exists(root / "a"));
}

TEST_CASE("the room that the replay's own writes take, at their peak") {
    constexpr int64_t kMiB = 1 << 20;
    const TempDir temp;
    LogBuilder builder(temp / "log");
    const auto writes = [&](FileId file, int64_t offset, int64_t size, int flags = O_WRONLY) {
        builder.write(builder.open(file, flags), offset, size);
    };
    constexpr int kMake = O_WRONLY | O_CREAT | O_TRUNC;
    uint64_t expected = 0;
    SUBCASE("a new file, written in pieces and again") {
        const FileId out = builder.file("/out", 0, Origin::created);
        writes(out, 0, kMiB, kMake);
        writes(out, kMiB, kMiB);
        writes(out, 0, kMiB);
        expected = 2 * kMiB;
    }
    SUBCASE("a file that is there: only what is beyond its end") {
        const FileId journal = builder.file("/journal", 1000);
        writes(journal, 0, 1000);
        writes(journal, 1000, 50);
        expected = 50;
    }
    SUBCASE("holes take nothing") {
        writes(builder.file("/out", 0, Origin::created), int64_t{1} << 40, 4096, kMake);
        expected = 4096;
    }
    SUBCASE("one after the other") {
        for (const char* const name : {"/a", "/b", "/c"}) {
            const FileId file = builder.file(name, 0, Origin::created);
            writes(file, 0, kMiB, kMake);
            builder.named(OpKind::unlink, file);
        }
        expected = kMiB;
    }
    SUBCASE("a checkpoint that replaces the one before") {
        for (int i = 0; i < 3; ++i) {
            // Recordings tell the files of one path apart.
            const FileId partial = builder.file("/c.tmp", 0, Origin::created);
            const FileId whole = builder.file("/c", 0, Origin::created);
            writes(partial, 0, kMiB, kMake);
            builder.named(OpKind::rename, partial, whole);
        }
        expected = 2 * kMiB;
    }
    SUBCASE("cut and written again") {
        const FileId file = builder.file("/a", 10 * kMiB);
        writes(file, 0, 11 * kMiB, kMake);
        builder.named(OpKind::truncate, file, 0, kMiB);
        writes(file, kMiB, 9 * kMiB);
        expected = kMiB;
    }
    SUBCASE("written by memory, before and after the mapping is known") {
        const FileId file = builder.file("/a", 0, Origin::created);
        const HandleId handle = builder.open(file, O_RDWR | O_CREAT | O_TRUNC);
        const auto touches = [&](uint32_t map, int64_t offset, int64_t size, int64_t flags) {
            builder.add({.kind = OpKind::touch, .offset = offset, .size = size, .flags = flags, .map = map});
        };
        const auto maps = [&](uint32_t map, int64_t flags) {
            builder.add({.kind = OpKind::mmap,
                         .handle = handle,
                         .offset = kMiB,
                         .size = 8 * kMiB,
                         .flags = flags,
                         .mode = PROT_READ | PROT_WRITE,
                         .map = map});
        };
        builder.named(OpKind::truncate, file, 0, 16 * kMiB);
        touches(1, 0, kMiB, kTouchWrites);
        maps(1, MAP_SHARED);
        touches(1, 4 * kMiB, kMiB, kTouchWrites);
        touches(1, 5 * kMiB, kMiB, 0);
        maps(2, MAP_PRIVATE);
        touches(2, 6 * kMiB, kMiB, kTouchWrites);
        builder.add({.kind = OpKind::madvise, .offset = 7 * kMiB, .size = kMiB, .arg = MADV_POPULATE_WRITE, .map = 1});
        expected = 3 * kMiB;
    }
    SUBCASE("what lies in memory, and what the filter leaves out") {
        writes(builder.file("/dev/shm/x", 0, Origin::created), 0, kMiB, kMake);
        writes(builder.file("/left/x", 0, Origin::created), 0, kMiB, kMake);
    }
    const LogReader log = builder.finish();
    PrepareOptions options{.root = temp / "root"};
    options.filter = OpFilter::from_words({"all"}, {"/left"});
    const Preparation preparation(log, std::move(options));
    REQUIRE(preparation.survey().demands.size() == 1);
    CHECK(preparation.survey().demands[0].replay_bytes == expected);
}

TEST_CASE("roots that cannot be used") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    builder.file("/a", 1);
    const LogReader log = builder.finish();
    CHECK(contains(refusal(log, {.root = temp / "no/such"}), "neither it nor its parent"));
    CHECK(contains(refusal(log, {.root = temp / "log"}), "not a directory"));
    CHECK(contains(refusal(log, {.root = "/"}), "root of the file system"));
    fs::create_symlink("nowhere", temp / "dangling");
    CHECK(contains(refusal(log, {.root = temp / "dangling"}), "a dangling symbolic link"));
    REQUIRE(prepare(log, {.root = temp / "made/"}));
    CHECK(fs::file_size(temp / "made/a") == 1);
}

TEST_CASE("a stop leaves a marked root with nothing half written, and the next run goes on") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    builder.file("/big", uint64_t{300} << 20);
    for (int i = 0; i < 200; ++i) {
        builder.file("/small/" + std::to_string(i), 100'000);
    }
    const LogReader log = builder.finish();
    const fs::path whole = temp / "whole";
    REQUIRE(prepare(log, {.root = whole}));
    const auto fresh = picture(whole);
    fs::remove_all(whole);
    const fs::path root = temp / "root";
    bool was_stopped = false;
    for (const uint64_t stop_after : {uint64_t{1}, uint64_t{100} << 20, uint64_t{310} << 20}) {
        Preparation preparation(log, {.root = root, .threads = 2});
        preparation.check();
        WriteState state;
        std::atomic<bool> over{false};
        std::thread watcher([&] {
            while (!over && state.bytes < stop_after) {
                std::this_thread::yield();
            }
            state.stop = true;
        });
        const bool complete = preparation.run(state, {});
        over = true;
        watcher.join();
        if (complete) {
            break;
        }
        was_stopped = true;
        const auto tree = picture(root);
        for (const auto& [name, text] : tree) {
            const auto& this_name = name;  // clang 14 has no capture of bindings
            CAPTURE(this_name);
            CHECK(fresh.at(name) == text);
        }
        const int fd = ::open(root.c_str(), O_RDONLY | O_DIRECTORY);
        CHECK(read_marker(fd, root.string())->state == MarkerState::incomplete);
        ::close(fd);
    }
    CHECK(was_stopped);
    // As after a loss of power: one file half there, one with room but not finished.
    fs::create_directories(root / "small");
    test::write_file(root / "small/7", "half");
    fs::resize_file(root / "small/7", 100);
    test::write_file(root / "big", "");
    fs::resize_file(root / "big", (uint64_t{300} << 20) + 1);
    REQUIRE(prepare(log, {.root = root}));
    CHECK(picture(root) == fresh);
}

TEST_CASE("random content does not compress, does not repeat and is a function of path and offset") {
    std::vector<std::byte> a(1 << 20), b(1 << 20), packed(ZSTD_compressBound(2 << 20));
    fill_random(content_seed("a"), 0, a);
    fill_random(content_seed("b"), 0, b);
    CHECK(a != b);
    std::vector<std::byte> both(a);
    both.insert(both.end(), b.begin(), b.end());
    CHECK(ZSTD_compress(packed.data(), packed.size(), both.data(), both.size(), 9) >= both.size());
    std::set<uint64_t> words;
    for (size_t i = 0; i < both.size(); i += 8) {
        uint64_t word;
        std::memcpy(&word, both.data() + i, 8);
        words.insert(word);
    }
    CHECK(words.size() == both.size() / 8);
    for (const size_t size : {size_t{1}, size_t{63}, size_t{64}, size_t{100}, kContentUnit, 3 * kContentUnit + 17}) {
        std::vector<std::byte> part(size);
        fill_random(content_seed("a"), 2 * kContentUnit, part);
        CHECK(std::equal(part.begin(), part.end(), a.begin() + 2 * kContentUnit));
    }
    // The bytes are a promise: a root prepared elsewhere must be resettable here.
    CHECK(static_cast<int>(a[0]) == 44);
    CHECK(content_seed("a") == 6774081908283191102ULL);
    uint64_t hash = 0;
    for (const std::byte each : a) {
        hash = hash * 31 + static_cast<uint64_t>(each);
    }
    CHECK(hash == 7970379829564954691ULL);
}

TEST_CASE("extended attributes that the recording found are there, and again after a reset") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    const FileId a = builder.file("/a", 10), d = builder.directory("/d");
    const StringId x = builder.text("user.x");
    builder.attribute(OpKind::getxattr, a, x, 64, 5);
    builder.attribute(OpKind::setxattr, a, x, 9, 0);
    builder.attribute(OpKind::getxattr, d, x, 64, 3);
    const LogReader log = builder.finish();
    const fs::path root = temp / "root", in_a = root / "a", in_d = root / "d";
    WriteState state;
    {
        Preparation preparation(log, {.root = root, .threads = 1});
        preparation.check();
        REQUIRE(preparation.run(state, {}));
    }
    if (state.attributes_refused.count > 0) {
        CHECK(state.attributes_refused.count == 2);
        REPRISE_SKIP("no user attributes on this file system");
    }
    const auto sizes = [&] {
        return std::pair(::getxattr(in_a.c_str(), "user.x", nullptr, 0),
                         ::getxattr(in_d.c_str(), "user.x", nullptr, 0));
    };
    CHECK(sizes() == std::pair<ssize_t, ssize_t>(5, 3));
    CHECK(Preparation(log, {.root = root}).nothing_to_do());
    REQUIRE(::setxattr(in_a.c_str(), "user.x", "123456789", 9, 0) == 0);
    REQUIRE(::removexattr(in_d.c_str(), "user.x") == 0);
    REQUIRE(prepare(log, {.root = root, .reset = true}));
    CHECK(sizes() == std::pair<ssize_t, ssize_t>(5, 3));
    REQUIRE(::removexattr(in_d.c_str(), "user.x") == 0);
    REQUIRE(prepare(log, {.root = root}));  // as a root that an earlier version prepared
    CHECK(sizes() == std::pair<ssize_t, ssize_t>(5, 3));
}

TEST_CASE("extended attributes that a replay set go away") {
    const TempDir temp;
    LogBuilder builder(temp / "log");
    builder.named(OpKind::setxattr, builder.file("/a", 10));
    const LogReader log = builder.finish();
    const fs::path root = temp / "root";
    REQUIRE(prepare(log, {.root = root}));
    if (::setxattr((root / "a").c_str(), "user.x", "1", 1, 0) != 0) {
        REPRISE_SKIP("no user attributes on this file system");
    }
    REQUIRE(prepare(log, {.root = root, .reset = true}));
    CHECK(::getxattr((root / "a").c_str(), "user.x", nullptr, 0) == -1);
}

}  // namespace reprise

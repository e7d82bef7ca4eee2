// SPDX-License-Identifier: MIT
// Files that are not as large on their device as they seem: holes, and several names of one.
#include <linux/falloc.h>

#include <fstream>

#include "formats/oplog/cached_pages.h"
#include "replay/prepare/cache_plan.h"
#include "replay/prepare/file.h"
#include "replay/prepare/layout.h"
#include "tests/replay/prepare/prepare_fixture.h"
#include "tests/units.h"

namespace reprise {

using test::LogBuilder;
using test::picture;
using test::prepare;
using test::TempDir;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kPage = RangeSet::kPage;

struct stat status_of(const fs::path& path) {
    struct stat status {};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    return status;
}
uint64_t held(const fs::path& path) { return static_cast<uint64_t>(status_of(path).st_blocks) * 512; }

bool keeps_holes(const fs::path& place) {
    std::ofstream(place / "probe") << std::string(1 << 20, 'x');
    const int fd = ::open((place / "probe").c_str(), O_WRONLY);
    punch_hole(fd, 0, 1 << 20);
    ::close(fd);
    const bool keeps = held(place / "probe") < (1 << 20);
    fs::remove(place / "probe");
    return keeps;
}

bool is_zero(const fs::path& path, uint64_t from, uint64_t to) {
    const std::string bytes = test::read_file(path).substr(from, to - from);
    return bytes.size() == to - from && bytes.find_first_not_of('\0') == std::string::npos;
}

/// Files of 64 KiB to 100 MiB, each with a hole in the middle, one that ends in one, one that is nothing else.
LogReader holes_log(const fs::path& path) {
    LogBuilder log(path);
    Holes holes;
    const auto add = [&](const char* name, uint64_t size, uint64_t from, uint64_t to) {
        const FileId file = log.file(name, size);
        holes[file].add(from, to);
        return file;
    };
    add("/d/small", 65'536, 3 * kPage, 9 * kPage);
    add("/d/middle", 3 * kMiB + 17, kMiB + 3 * kPage, 2 * kMiB);
    add("/d/large", 150 * kMiB, 10 * kMiB + kPage, 140 * kMiB);
    add("/d/end", 5 * kMiB + 100, kMiB, 6 * kMiB);
    add("/d/none", 2 * kMiB, 0, 2 * kMiB);
    // Where they are was asked after the job: what it wrote and is a hole, it punched since.
    log.write(log.open(add("/d/written", 4 * kMiB, kMiB, 3 * kMiB), O_RDWR), 2 * kMiB, 100'000);
    log.keep(encode_holes(holes));
    return log.finish();
}

void check_holes(const fs::path& d) {
    CHECK(is_zero(d / "small", 3 * kPage, 9 * kPage));
    CHECK(held(d / "small") == 10 * kPage);
    CHECK(fs::file_size(d / "middle") == 3 * kMiB + 17);
    CHECK(is_zero(d / "middle", kMiB + 3 * kPage, 2 * kMiB));
    CHECK_FALSE(is_zero(d / "middle", kMiB + 2 * kPage, kMiB + 3 * kPage));
    CHECK_FALSE(is_zero(d / "middle", 2 * kMiB, 2 * kMiB + kPage));
    CHECK(held(d / "middle") <= 2 * kMiB + 4 * kPage);
    CHECK(fs::file_size(d / "large") == 150 * kMiB);
    CHECK(held(d / "large") <= 20 * kMiB + 4 * kPage);
    CHECK(held(d / "large") >= 20 * kMiB);
    CHECK(fs::file_size(d / "end") == 5 * kMiB + 100);
    CHECK(held(d / "end") <= kMiB + 2 * kPage);
    CHECK(fs::file_size(d / "none") == 2 * kMiB);
    CHECK(held(d / "none") <= kPage);
}

struct HolesLog {
    TempDir dir{};
    bool possible = keeps_holes(dir / "");
    LogReader log = holes_log(dir / "a.oplog");
    fs::path root = dir / "root", d = root / "d";
};

}  // namespace

TEST_CASE_FIXTURE(HolesLog, "holes are laid out as holes, and a reset makes them again") {
    if (!possible) {
        REPRISE_SKIP("no holes in this file system");
    }
    REQUIRE(prepare(log, {.root = root}));
    check_holes(d);
    CHECK(is_zero(d / "written", kMiB, 2 * kMiB));
    CHECK_FALSE(is_zero(d / "written", 2 * kMiB, 2 * kMiB + kPage));
    const auto before = picture(root);
    std::fstream(d / "written", std::ios::in | std::ios::out).seekp(2 * kMiB) << std::string(100'000, 'x');
    fs::resize_file(d / "middle", 100);
    REQUIRE(prepare(log, {.root = root, .reset = true}));
    CHECK(picture(root) == before);
    check_holes(d);
}

TEST_CASE_FIXTURE(HolesLog, "files that lost their data are named, and a reset writes them again") {
    if (!possible) {
        REPRISE_SKIP("no holes in this file system");
    }
    const auto lost = [&](bool reset) { return Preparation(log, {.root = root, .reset = reset}).survey().lost.count; };
    REQUIRE(prepare(log, {.root = root}));
    const auto before = picture(root);
    CHECK(lost(false) == 0);
    CHECK(lost(true) == 0);
    fs::resize_file(d / "small", 0);
    fs::resize_file(d / "small", 65'536);
    {
        const int fd = ::open((d / "large").c_str(), O_RDWR);
        punch_hole(fd, 141 * kMiB, 142 * kMiB);
        ::close(fd);
    }
    {
        // What a replay writes anyway, a reset writes anyway.
        const int fd = ::open((d / "written").c_str(), O_RDWR);
        punch_hole(fd, 2 * kMiB, 2 * kMiB + 64 * 1024);
        ::close(fd);
    }
    CHECK(lost(false) == 2);
    CHECK(Preparation(log, {.root = root}).survey().nothing_to_do());
    REQUIRE(prepare(log, {.root = root, .reset = true}));
    CHECK(lost(false) == 0);
    CHECK(picture(root) == before);
    check_holes(d);

    // Files without data were asked for.
    const fs::path sparse = dir / "sparse";
    REQUIRE(prepare(log, {.root = sparse, .content = Content::sparse}));
    CHECK(Preparation(log, {.root = sparse}).survey().lost.count == 0);
}

TEST_CASE("what the job punched, cut off or shifted was data before it") {
    const TempDir dir;
    LogBuilder log(dir / "a.oplog");
    Holes holes;
    const auto opened = [&](const char* name) {
        const FileId file = log.file(name, kMiB);
        holes[file].add(0, kMiB);
        return log.open(file, O_RDWR);
    };
    const auto allocate = [&](const char* name, int64_t flags) {
        Op op;
        op.kind = OpKind::fallocate;
        op.handle = opened(name);
        op.offset = 4 * kPage;
        op.size = kMiB / 2;
        op.flags = flags;
        log.add(op);
    };
    allocate("/punched", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
    allocate("/zeroed", FALLOC_FL_ZERO_RANGE);
    allocate("/shifted", FALLOC_FL_COLLAPSE_RANGE);
    const HandleId cut = opened("/cut");
    for (const uint64_t size : {4 * kPage, uint64_t{kMiB}}) {
        Op op;
        op.kind = OpKind::ftruncate;
        op.handle = cut;
        op.size = static_cast<int64_t>(size);
        log.add(op);
    }
    opened("/read");
    log.keep(encode_holes(holes));
    const LogReader reader = log.finish();
    const Layout layout = make_layout(reader, OpFilter::all(), PathMap{});
    const auto holes_of = [&](std::string_view path) {
        for (const auto& [entry, ranges] : layout.holes) {
            if (layout.entries[entry].path == path) {
                return ranges.bytes();
            }
        }
        return uint64_t{0};
    };
    CHECK(holes_of("punched") == kMiB / 2);
    CHECK(holes_of("zeroed") == kMiB / 2);
    CHECK(holes_of("shifted") == 4 * kPage);
    CHECK(holes_of("cut") == 4 * kPage);
    CHECK(holes_of("read") == kMiB);
}

TEST_CASE("what is needed counts no hole") {
    const TempDir dir;
    const LogReader log = holes_log(dir / "a.oplog");
    Preparation preparation(log, {.root = dir / "root"});
    CHECK(preparation.survey().bytes <= (20 + 2 + 1 + 2) * kMiB + 40 * kPage);
    CHECK(preparation.survey().bytes >= (20 + 2 + 1 + 2) * kMiB);
}

TEST_CASE("what was written counts no hole, and those are counted apart") {
    const TempDir dir;
    LogBuilder log(dir / "a.oplog");
    Holes holes;
    const FileId file = log.file("/d/many", 8 * kMiB);
    for (uint64_t page = 1; page < 8 * kMiB / kPage; page += 2) {
        holes[file].add(page * kPage, (page + 1) * kPage);  // data and hole in turn: every unit of content is written
    }
    log.write(log.open(file, O_RDWR), 0, kMiB);
    log.keep(encode_holes(holes));
    const LogReader reader = log.finish();
    for (const bool reset : {false, true}) {
        // What the log writes was data before, for all that is known; a reset fills that.
        const uint64_t data = reset ? kMiB : kMiB + 7 * kMiB / 2, holes_there = reset ? 0 : 7 * kMiB / 2;
        Preparation preparation(reader, {.root = dir / "root", .reset = reset});
        CHECK(preparation.survey().bytes == data);
        preparation.check();
        WriteState state;
        REQUIRE(preparation.run(state, [] {}));
        CHECK(state.bytes == data);
        CHECK(state.holes == holes_there);
    }
}

TEST_CASE("several names of one file are one file; a reset makes them one again") {
    const TempDir dir;
    LogBuilder log(dir / "a.oplog");
    const auto name = [&](const char* path, uint64_t inode, Origin origin = Origin::existed) {
        FileRow row;
        row.device = 5;
        row.inode = inode;
        row.size = 2 * kMiB;
        row.size_exact = true;
        row.type = FileType::regular;
        row.role = Role::dataset;
        row.origin = origin;
        return log.row(row, path);
    };
    name("/d/a", 7);
    name("/d/deep/b", 7);
    const FileId c = name("/d/c", 7);
    name("/d/other", 8);
    name("/d/no_inode", 0);
    name("/d/no_inode_either", 0);
    name("/d/reused", 8, Origin::created);
    const FileId old = name("/d/old", 9);
    log.named(OpKind::rename, old, name("/d/new", 9, Origin::created));
    log.write(log.open(c, O_RDWR), 0, 100);
    const LogReader reader = log.finish();
    const fs::path root = dir / "root";
    const auto one = [&] {
        const ino_t inode = status_of(root / "d/a").st_ino;
        CHECK(status_of(root / "d/deep/b").st_ino == inode);
        CHECK(status_of(root / "d/c").st_ino == inode);
        CHECK(status_of(root / "d/a").st_nlink == 3);
        CHECK(status_of(root / "d/other").st_nlink == 1);
        CHECK(status_of(root / "d/no_inode").st_nlink == 1);
        CHECK(status_of(root / "d/old").st_nlink == 1);
        CHECK_FALSE(fs::exists(root / "d/new"));
        CHECK_FALSE(fs::exists(root / "d/reused"));
    };
    Preparation look(reader, {.root = root});
    CHECK(look.survey().bytes == 5 * 2 * kMiB);
    REQUIRE(prepare(reader, {.root = root}));
    one();
    const auto before = picture(root);
    SUBCASE("written by one name") { test::write_file(root / "d/c", std::string(2 * kMiB, 'x')); }
    SUBCASE("a name is gone") { fs::remove(root / "d/c"); }
    SUBCASE("the first name is gone") { fs::remove(root / "d/a"); }
    SUBCASE("shorter by one name") { fs::resize_file(root / "d/deep/b", 1); }
    REQUIRE(prepare(reader, {.root = root, .reset = true}));
    one();
    CHECK(picture(root) == before);
}

TEST_CASE("what the recording fetched counts neither holes nor further names") {
    const TempDir dir;
    LogBuilder log(dir / "a.oplog");
    const auto name = [&](const char* path) {
        FileRow row;
        row.device = 5;
        row.inode = 7;
        row.size = 100 * kPage;
        row.size_exact = true;
        row.type = FileType::regular;
        row.role = Role::dataset;
        row.origin = Origin::existed;
        const FileId file = log.row(row, path);
        const HandleId handle = log.open(file, O_RDONLY);
        log.add({.kind = OpKind::pread, .handle = handle, .size = 100 * kPage}, 100 * kPage);
        return file;
    };
    FetchedPages fetched;
    Holes holes;
    for (const FileId file : {name("/d/a"), name("/d/b")}) {
        fetched[file].add(0, 100 * kPage);
        holes[file].add(20 * kPage, 60 * kPage);
    }
    log.keep(encode_fetched(fetched));
    log.keep(encode_holes(holes));
    const LogReader reader = log.finish();
    const CachePlan plan = plan_cache(make_plan(reader, OpFilter{}, PathMap{}), reader);
    CHECK(plan.recorded.read_bytes == 60 * kPage);
    CHECK(plan.recorded.fetched_bytes == 60 * kPage);
    CHECK(plan.targets.size() == 2);
}

}  // namespace reprise

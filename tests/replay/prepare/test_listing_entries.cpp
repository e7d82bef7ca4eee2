// SPDX-License-Identifier: MIT
// Empty files that make the listing of a directory as long as it was in the recording.
#include <sys/syscall.h>

#include <array>
#include <cstdint>
#include <cstdlib>

#include "tests/replay/prepare/prepare_fixture.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

/// What getdents64 returns for a directory, all calls together.
int64_t bytes_listed(const fs::path& directory) {
    const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY);
    REQUIRE(fd >= 0);
    alignas(8) std::array<char, 32'768> buffer{};
    int64_t sum = 0;
    for (int64_t got = 1; got > 0; sum += got) {
        got = ::syscall(SYS_getdents64, fd, buffer.data(), buffer.size());
        REQUIRE(got >= 0);
    }
    ::close(fd);
    return sum;
}

struct Listed {
    TempDir dir;
    fs::path root = dir / "root";
    LogBuilder log{dir / "log"};

    /// Opens and lists a directory by calls with these results.
    void list(FileId directory, std::initializer_list<int64_t> results) {
        const HandleId handle = log.open(directory, O_RDONLY | O_DIRECTORY);
        for (const int64_t result : results) {
            log.add({.kind = OpKind::getdents, .handle = handle, .size = 32'768}, result);
        }
    }
};

}  // namespace

TEST_CASE_FIXTURE(Listed, "a directory lists as long as in the recording; what the log makes later does not count") {
    const FileId directory = log.directory("/d");
    log.file("/d/image-000017.jpg", 5);
    log.file("/d/image-000018.jpg", 5);
    list(directory, {32'752, 7'000, 0});
    list(directory, {112, 0});  // before others came
    log.open(log.file("/d/made-later.jpg", 0, Origin::created), O_WRONLY | O_CREAT);
    const LogReader reader = log.finish();
    REQUIRE(prepare(reader, {.root = root}));
    constexpr int64_t kRecord = 40;  // of image-000017.jpg
    CHECK(std::abs(bytes_listed(root / "d") - 39'752) <= kRecord);
    CHECK_FALSE(fs::exists(root / "d/made-later.jpg"));
    CHECK(bytes_listed(root / "d") / kRecord > 980);  // as many names, too

    SUBCASE("a second run has nothing to do") {
        CHECK(Preparation(reader, {.root = root}).nothing_to_do());
        CHECK(Preparation(reader, {.root = root, .reset = true}).survey().nothing_to_do());
    }
    SUBCASE("a reset brings back one that is gone") {
        const int64_t before = bytes_listed(root / "d");
        REQUIRE(fs::remove(root / "d/.reprise00000000000a"));
        REQUIRE(bytes_listed(root / "d") < before);
        REQUIRE(prepare(reader, {.root = root, .reset = true}));
        CHECK(bytes_listed(root / "d") == before);
    }
    SUBCASE("a reset without them removes them, and the root remembers") {
        REQUIRE(prepare(reader, {.root = root, .listing_entries = false, .reset = true}));
        CHECK(bytes_listed(root / "d") == 48 + 2 * kRecord);
        REQUIRE(prepare(reader, {.root = root, .reset = true}));
        CHECK(bytes_listed(root / "d") == 48 + 2 * kRecord);
    }
}

TEST_CASE_FIXTURE(Listed, "listing entries: what needs none, and what must have none") {
    const FileId full = log.directory("/full");
    log.file("/full/a", 1);
    list(full, {72, 0});
    const FileId removed = log.directory("/removed");
    list(removed, {4'800, 0});
    log.named(OpKind::rmdir, removed);
    const FileId made = log.directory("/made", Origin::created);
    log.named(OpKind::mkdir, made);
    list(made, {4'800, 0});
    list(log.directory("/dev/shm/d"), {4'800, 0});
    list(log.directory("/left/out"), {4'800, 0});
    const LogReader reader = log.finish();
    OpFilter without = OpFilter::all();
    without.not_paths = {"/left/*"};
    Preparation preparation(reader, {.root = root, .filter = without});
    CHECK(preparation.survey().listing_entries == 0);
    Preparation all(reader, {.root = root});
    CHECK(all.survey().listing_entries == (4'800 - 48) / 32 + 1);
    CHECK(Preparation(reader, {.root = root, .listing_entries = false}).survey().listing_entries == 0);
}

TEST_CASE_FIXTURE(Listed,
                  "listing entries: an unfinished listing counts, a removed file does not, the top has its marker") {
    const FileId top = log.directory("/top");
    const FileId gone = log.file("/top/gone-before-anyone-looked", 1);
    log.named(OpKind::unlink, gone);
    list(top, {480});
    const LogReader reader = log.finish();
    REQUIRE(prepare(reader, {.root = root, .maps = PathMap::parse({"/top=."})}));
    fs::remove(root / "gone-before-anyone-looked");
    CHECK(std::abs(bytes_listed(root) - 480) <= 32);
}

TEST_CASE_FIXTURE(Listed, "listing entries: a log cannot ask for more than so many") {
    if (kSanitized) {
        REPRISE_SKIP("two million entries, in plain builds only");
    }
    for (int i = 0; i < 20; ++i) {
        const FileId directory = log.directory("/d" + std::to_string(i));
        const HandleId handle = log.open(directory, O_RDONLY | O_DIRECTORY);
        for (int call = 0; call < 4; ++call) {
            log.add({.kind = OpKind::getdents, .handle = handle, .size = 0}, INT64_MAX);
        }
    }
    const LogReader reader = log.finish();
    const Layout layout = make_layout(reader, OpFilter::all(), PathMap{});
    CHECK(layout.entries.size() < (size_t{1} << 21) + 1'000);
    bool told = false;
    for (const Counter& counter : layout.counters) {
        told |= counter.name == "listing_entries_left_out" && counter.value > 400'000;
    }
    CHECK(told);
}

}  // namespace reprise::test

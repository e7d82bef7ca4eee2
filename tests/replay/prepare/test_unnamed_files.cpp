// SPDX-License-Identifier: MIT
// Empty files between those of a log, where recorded inode numbers leave room for them.
#include <atomic>
#include <thread>

#include "formats/oplog/header_facts.h"
#include "tests/replay/prepare/prepare_fixture.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

struct Unnamed {
    TempDir dir;
    fs::path root = dir / "root";
    LogBuilder log{dir / "log"};

    explicit Unnamed(const char* type = "ext4") {
        log.header().extra.emplace(std::string(fact::file_systems.key), R"({"8:1": ")" + std::string(type) + R"("})");
    }
    FileId at(std::string_view path, uint64_t inode, uint64_t size = 5, Origin origin = Origin::existed) {
        FileRow row;
        row.device = 0x801;
        row.inode = inode;
        row.size = size;
        row.size_exact = true;
        row.type = FileType::regular;
        row.role = Role::dataset;
        row.origin = origin;
        return log.row(row, path);
    }
    /// Every tenth file of a directory, in another order than that of the inodes.
    void every_tenth(const std::string& directory, int count, uint64_t first = 1'000) {
        for (int i = 0; i < count; ++i) {
            const int n = i * 7 % count;  // each once, unless 7 divides count
            at(directory + "/" + std::to_string(100'000 + n), first + 10 * static_cast<uint64_t>(n));
        }
    }
    void list(FileId directory, int64_t bytes) {
        const HandleId handle = log.open(directory, O_RDONLY | O_DIRECTORY);
        log.add({.kind = OpKind::getdents, .handle = handle, .size = 32'768}, bytes);
        log.add({.kind = OpKind::getdents, .handle = handle, .size = 32'768}, 0);
    }
};

Layout layout_of(const LogReader& reader, ListingEntries listing = ListingEntries::add) {
    return make_layout(reader, OpFilter::all(), PathMap{}, listing);
}

/// What is made in a directory, in that order: a named file as its name, empty ones as "+count".
std::string order_in(const Layout& layout, std::string_view directory) {
    const auto found = std::find_if(layout.entries.begin(), layout.entries.end(),
                                    [&](const LayoutEntry& entry) { return entry.path == directory; });
    REQUIRE(found != layout.entries.end());
    const auto [begin, end] = layout.children_of(static_cast<uint32_t>(found - layout.entries.begin()));
    std::string out;
    int empty = 0;
    const auto flush = [&] {
        out += empty == 0 ? "" : " +" + std::to_string(empty);
        empty = 0;
    };
    for (const uint32_t* child = begin; child != end; ++child) {
        const LayoutEntry& entry = layout.entries[*child];
        if (entry.listing) {
            ++empty;
            continue;
        }
        flush();
        out += " " + std::string(entry.name());
    }
    flush();
    return out.empty() ? out : out.substr(1);
}

uint64_t empty_files(const Layout& layout) {
    return static_cast<uint64_t>(std::count_if(layout.entries.begin(), layout.entries.end(),
                                               [](const LayoutEntry& entry) { return entry.listing; }));
}

}  // namespace

TEST_CASE_FIXTURE(Unnamed, "unnamed files: as many as lay between, in the order of the inodes") {
    every_tenth("/d", 8);
    const LogReader reader = log.finish();
    const Layout layout = layout_of(reader);
    CHECK(order_in(layout, "d") ==
          "+9 100000 +9 100001 +9 100002 +9 100003 +9 100004 +9 100005 +9 100006 +9 100007 +9");
    CHECK(layout.unnamed_files == 81);
    CHECK(layout.in_order.size() == 1);
    for (const LayoutEntry& entry : layout.entries) {
        if (entry.listing) {
            CHECK(entry.name().starts_with(".reprise"));
            CHECK(entry.name().size() == 10);  // as short as can be, the files' names being shorter
        }
    }
    CHECK(empty_files(layout_of(reader, ListingEntries::none)) == 0);
    CHECK(order_in(layout_of(reader, ListingEntries::none), "d") ==
          "100000 100001 100002 100003 100004 100005 100006 100007");
}

TEST_CASE_FIXTURE(Unnamed, "unnamed files: laid out once, put back, and removed without listing entries") {
    every_tenth("/d", 9);
    const LogReader reader = log.finish();
    const auto count = [&] { return std::distance(fs::directory_iterator(root / "d"), fs::directory_iterator()); };
    REQUIRE(prepare(reader, {.root = root}));
    CHECK(count() == 9 + 90);
    for (int n = 0; n < 9; ++n) {
        CHECK(fs::file_size(root / "d" / std::to_string(100'000 + n)) == 5);
    }
    const auto before = picture(root);
    CHECK(Preparation(reader, {.root = root}).nothing_to_do());
    for (const auto& item : fs::directory_iterator(root / "d")) {
        if (item.path().filename().string().ends_with('3')) {
            fs::remove(item.path());
        }
    }
    REQUIRE(picture(root) != before);
    REQUIRE(prepare(reader, {.root = root, .reset = true}));
    CHECK(picture(root) == before);
    REQUIRE(prepare(reader, {.root = root, .listing_entries = false, .reset = true}));
    CHECK(count() == 9);
}

TEST_CASE_FIXTURE(Unnamed, "unnamed files: an interrupted run leaves no file half made, and the next one goes on") {
    constexpr int kNamed = 1'000;
    every_tenth("/d", kNamed);
    const LogReader reader = log.finish();
    constexpr uint64_t kEmpty = 9 * (kNamed + 1);
    {
        Preparation first(reader, {.root = root, .threads = 2});
        first.check();
        WriteState state;
        std::atomic<bool> over{false};
        std::thread watcher([&] {
            while (!over && state.entries < kEmpty + 10) {
                std::this_thread::yield();
            }
            state.stop = true;
        });
        first.run(state, {});
        over = true;
        watcher.join();
    }
    const auto named = [&](bool all) {
        for (int n = 0; n < kNamed; ++n) {
            const fs::path path = root / "d" / std::to_string(100'000 + n);
            if (all || fs::exists(path)) {
                CHECK(fs::file_size(path) == 5);
            }
        }
    };
    named(false);
    REQUIRE(prepare(reader, {.root = root}));
    named(true);
    CHECK(std::distance(fs::directory_iterator(root / "d"), fs::directory_iterator()) == kNamed + kEmpty);
}

TEST_CASE_FIXTURE(Unnamed, "unnamed files: what has none") {
    every_tenth("/few", 5, 1'000);
    for (int i = 0; i < 100; ++i) {
        at("/all/" + std::to_string(i), 20'000 + static_cast<uint64_t>(i));
        at("/far/" + std::to_string(i), 1'000'000 + 100'000 * static_cast<uint64_t>(i));
        at("/none/" + std::to_string(i), 0);
        at("/made/" + std::to_string(i), 40'000 + 10 * static_cast<uint64_t>(i), 0, Origin::created);
        at("/dev/shm/d/" + std::to_string(i), 60'000 + 10 * static_cast<uint64_t>(i));
    }
    every_tenth("/removed", 11, 80'000);
    log.named(OpKind::rmdir, log.directory("/removed"));
    every_tenth("/moved", 11, 90'000);
    log.named(OpKind::rename, log.directory("/moved"), log.directory("/there", Origin::created));
    const Layout layout = layout_of(log.finish());
    CHECK(empty_files(layout) == 0);
    CHECK(layout.in_order.empty());
}

TEST_CASE_FIXTURE(Unnamed, "unnamed files: a directory that was listed has as many as the listing says, spread alike") {
    const FileId directory = log.directory("/d");
    every_tenth("/d", 8);
    list(directory, 48 + 8 * 32 + 36 * 32);
    const Layout layout = layout_of(log.finish());
    CHECK(empty_files(layout) == 36);
    CHECK(layout.unnamed_files == 0);
    CHECK(order_in(layout, "d") ==
          "+4 100000 +4 100001 +4 100002 +4 100003 +4 100004 +4 100005 +4 100006 +4 100007 +4");
}

TEST_CASE_FIXTURE(Unnamed, "unnamed files: none where a listing returned nothing but what the log names") {
    const FileId directory = log.directory("/d");
    every_tenth("/d", 8);
    list(directory, 48 + 8 * 32);
    CHECK(empty_files(layout_of(log.finish())) == 0);
}

TEST_CASE_FIXTURE(Unnamed, "unnamed files: a log cannot ask for more than so many") {
    if (kSanitized) {
        REPRISE_SKIP("two million entries, in plain builds only");
    }
    uint64_t inode = 1'000;
    for (int directory = 0; directory < 10; ++directory) {
        const std::string path = "/d" + std::to_string(directory) + "/";
        for (int i = 0; i < 1'000; ++i) {
            at(path + std::to_string(i), inode += 250);
        }
        inode += 10'000;
    }
    const Layout layout = layout_of(log.finish());
    CHECK(empty_files(layout) == uint64_t{1} << 21);
    uint64_t left_out = 0;
    for (const Counter& counter : layout.counters) {
        left_out += counter.name == "listing_entries_left_out" ? counter.value : 0;
    }
    CHECK(left_out == 10 * 249 * 1'001 - (uint64_t{1} << 21));
}

TEST_CASE_FIXTURE(Unnamed, "unnamed files: none beside files that somebody else placed") {
    every_tenth("/d", 9);
    const LogReader reader = log.finish();
    fs::create_directories(root / "d");
    write_file(root / "d/100003", "there");
    {
        Preparation preparation(reader, {.root = root});
        CHECK(preparation.survey().listing_entries == 0);
        CHECK(preparation.survey().files == 8);
        REQUIRE(preparation.remarks().size() == 1);
        CHECK(contains(preparation.remarks()[0], "no empty files are added"));
    }
    REQUIRE(prepare(reader, {.root = root}));
    CHECK(std::distance(fs::directory_iterator(root / "d"), fs::directory_iterator()) == 9);
    REQUIRE(prepare(reader, {.root = root, .reset = true}));  // remembers
    CHECK(std::distance(fs::directory_iterator(root / "d"), fs::directory_iterator()) == 9);
    CHECK(Preparation(reader, {.root = root, .listing_entries = true}).survey().listing_entries == 90);
}

TEST_CASE("unnamed files: chunks of XFS") {
    Unnamed xfs("xfs");
    for (uint64_t chunk = 0; chunk < 4; ++chunk) {
        for (uint64_t i = 0; i < 64; i += 4) {
            xfs.at("/d/" + std::to_string(1'000 + chunk * 64 + i), 128 + chunk * 5'000 * 64 + i);
        }
    }
    const Layout layout = layout_of(xfs.log.finish());
    CHECK(empty_files(layout) == 4 * 48 + 3);  // 3 between two, 3 before the first one
}

}  // namespace reprise::test

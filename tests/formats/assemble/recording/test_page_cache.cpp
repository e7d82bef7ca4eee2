// SPDX-License-Identifier: MIT
// Which pages were in memory when a recording began: the first event of each says it.
#include "formats/assemble/recording/page_cache.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <map>
#include <string>

#include "formats/assemble/recording/facts.h"
#include "tests/formats/assemble/recording/raw_builder.h"

namespace reprise::test {
namespace {

constexpr uint64_t kPage = RangeSet::kPage;
constexpr const char* kAllGroups = R"({"command":["job"],"cwd":"/","groups":["calls","pagecache"],"absent":[]})";

raw_page_cache pages(uint64_t inode, uint64_t first, uint64_t count, bool evicted, uint32_t device) {
    raw_page_cache record{};
    record.inode = inode;
    record.device = device;
    record.offset = first * kPage;
    record.bytes = count * kPage;
    record.evicted = evicted ? 1 : 0;
    record.in_nr = 0xffff;
    return record;
}

RangeSet range(uint64_t first, uint64_t end) {
    RangeSet set;
    set.add(first * kPage, end * kPage);
    return set;
}

}  // namespace

TEST_CASE("the first event of a page says whether it was in memory") {
    RawPageCache cache;
    Tables tables;
    FileRow row;
    row.inode = 7;
    row.device = 0x801;  // major 8, minor 1, as stat has it
    tables.files.push_back(row);
    constexpr uint32_t kDevice = 8u << 20 | 1;
    cache.see(pages(7, 0, 4, false, kDevice));
    cache.see(pages(7, 10, 4, true, kDevice));   // was there
    cache.see(pages(7, 2, 4, true, kDevice));    // 2, 3 came before; 4, 5 were there
    cache.see(pages(7, 3, 10, false, kDevice));  // 3 came before; 4, 5 and 10 to 12 were there
    RangeSet expected = range(0, 4);
    expected.add(6 * kPage, 10 * kPage);
    CHECK(cache.of(tables).at(1) == expected);
    raw_page_cache written = pages(7, 20, 4, false, kDevice);
    written.in_nr = SYS_pwrite64;
    cache.see(written);
    cache.see(pages(7, 20, 4, true, kDevice));
    cache.see(pages(7, 22, 2, false, kDevice));  // fetched, but the job's own
    CHECK(cache.of(tables).at(1) == expected);
    // 3, 4 and 5, 10 to 12; and of its own 22 and 23.
    const RefetchedPages again = cache.refetched(tables);
    CHECK(again == RefetchedPages{{1, 8}});
    CHECK(RawPageCache::data_bytes(again, tables) == 8 * kPage);
    tables.files[1].role = Role::program;
    CHECK(RawPageCache::data_bytes(again, tables) == 0);
    tables.files[1].role = Role::unknown;
    tables.files[1].origin = Origin::created;
    CHECK(cache.of(tables).empty());
    CHECK(cache.refetched(tables) == again);  // its own file came from the device all the same
    tables.files[1] = row;
    tables.files.push_back(row);  // the number used again: counted once
    CHECK(cache.refetched(tables) == RefetchedPages{{2, 8}});
    tables.files.pop_back();
    tables.files[1].inode = 8;
    CHECK(cache.of(tables).empty());
    CHECK(cache.refetched(tables).empty());
}

TEST_CASE("a copy writes pages of a file that was truncated: nobody fetched them again") {
    constexpr uint32_t kDevice = 8u << 20 | 1;
    Tables tables;
    FileRow row;
    row.inode = 7;
    row.device = 0x801;
    tables.files.push_back(row);
    RefetchedPages again;
    raw_page_cache copied = pages(7, 0, 4, false, kDevice);
    SUBCASE("copy_file_range") { copied.in_nr = SYS_copy_file_range; }
    SUBCASE("sendfile") { copied.in_nr = SYS_sendfile; }
    SUBCASE("read") {
        copied.in_nr = SYS_read;
        again = {{1, 4}};
    }
    RawPageCache cache;
    cache.see(pages(7, 0, 4, false, kDevice));
    cache.see(pages(7, 0, 4, true, kDevice));
    cache.see(copied);
    CHECK(cache.refetched(tables) == again);
}

namespace {

// A job that opens a file of `size` bytes of which nothing is in memory, and writes [from, to).
FetchedPages fetched_by_write(uint64_t size, uint64_t from, uint64_t to, uint32_t info = RAW_FD_CACHED) {
    RawJob job(kAllGroups);
    raw_fd fd = RawJob::fd_of(3, 0xf1, 7, size);
    fd.info = info;
    job.call(SYS_openat, {uint64_t(-100), 0x1000, info & RAW_FD_CREATED ? 0102U : 2U, 0}, 3)
        .path(1, "/d/a")
        .fd(RAW_WHICH_RESULT, fd);
    const uint64_t enter = job.now + 9000;
    const uint64_t first = from / kPage, last = (to + kPage - 1) / kPage;
    raw_page_cache record = pages(7, first, last - first, false, fd.device);
    record.in_nr = SYS_pwrite64;
    record.head.time = enter + 500;
    job.add(RawBytes(RAW_PAGE_CACHE, record));
    fd.size = std::max(size, to);
    fd.info = 0;
    job.call_at(enter, enter + 1000, SYS_pwrite64, {3, 0x1000, to - from, from}, static_cast<int64_t>(to - from))
        .fd(0, fd);
    return fetched_pages(job.assemble().reader).value_or(FetchedPages());
}

}  // namespace

TEST_CASE("a page of which a part is written had to be read first, where it had data") {
    constexpr uint64_t kSize = 10 * kPage;
    CHECK(fetched_by_write(kSize, 0, 4 * kPage).empty());
    CHECK(fetched_by_write(kSize, 2 * kPage, 2 * kPage + 100) == FetchedPages{{1, range(2, 3)}});
    CHECK(fetched_by_write(kSize, 2 * kPage + 7, 2 * kPage + 8) == FetchedPages{{1, range(2, 3)}});
    RangeSet both = range(2, 3);
    both.add(5 * kPage, 6 * kPage);
    CHECK(fetched_by_write(kSize, 2 * kPage + 1, 5 * kPage + 1) == FetchedPages{{1, both}});
    CHECK(fetched_by_write(kSize, 9 * kPage + 1, 12 * kPage + 1) == FetchedPages{{1, range(9, 10)}});  // grows
    CHECK(fetched_by_write(kSize, 11 * kPage + 1, 12 * kPage).empty());
    CHECK(fetched_by_write(kSize, 2 * kPage, 2 * kPage + 100, RAW_FD_CACHED | RAW_FD_SPARSE).empty());  // may be a hole
    CHECK(fetched_by_write(kSize, 2 * kPage, 2 * kPage + 100, RAW_FD_CACHED | RAW_FD_CREATED).empty());
}

namespace {

// A job that opens a sparse file, `between`, and then its recorder looks at it.
template <class Between>
Holes holes_of_sparse(uint64_t size_then, const Between& between, uint32_t info = RAW_FD_SPARSE | RAW_FD_CACHED) {
    constexpr uint64_t kSize = 100 * kPage;
    RawJob job(kAllGroups);
    raw_fd fd = RawJob::fd_of(3, 0xf1, 7, kSize);
    fd.info = info;
    job.call(SYS_openat, {uint64_t(-100), 0x1000, info & RAW_FD_CREATED ? 0100U : 0U, 0}, 3)
        .path(1, "/d/a")
        .fd(RAW_WHICH_RESULT, fd);
    between(job, fd);
    for (const auto& [from, to] : {std::pair<int64_t, int64_t>{0, 20}, {40, 120}}) {
        raw_holes record{};
        record.inode = 7;
        record.device = fd.device;
        record.size = size_then;
        record.head.time = job.now + 1000;
        job.add(RawBytes(RAW_HOLES, record).numbers(RAW_PART_LIST, 0, {from * int64_t{kPage}, to * int64_t{kPage}}));
    }
    job.pread(3, 0xf1, 7, 0, 100);
    raw_holes later{};  // somebody filled it meanwhile
    later.inode = 7;
    later.device = fd.device;
    later.size = size_then;
    later.head.time = job.now + 1000;
    job.add(RawBytes(RAW_HOLES, later));
    job.pread(3, 0xf1, 7, 0, 100);
    return holes_before(job.assemble().reader);
}

}  // namespace

TEST_CASE("holes of a file are those that the first look at it found, unless the job may have made them") {
    constexpr uint64_t kSize = 100 * kPage;
    const auto nothing = [](RawJob&, const raw_fd&) {};
    const auto call = [](uint16_t nr) {
        return [nr](RawJob& job, const raw_fd& fd) { job.call(nr, {3, 0, 0, 4096}, 0).fd(0, fd); };
    };
    RangeSet expected = range(0, 20);
    expected.add(40 * kPage, kSize);
    CHECK(holes_of_sparse(kSize, nothing) == Holes{{1, expected}});
    CHECK(holes_of_sparse(kSize + 20 * kPage, nothing) == Holes{{1, expected}});
    CHECK(holes_of_sparse(kSize, call(SYS_fsync)) == Holes{{1, expected}});
    CHECK(holes_of_sparse(kSize - kPage, nothing).empty());
    CHECK(holes_of_sparse(kSize, call(SYS_ftruncate)).empty());
    CHECK(holes_of_sparse(kSize, call(SYS_fallocate)).empty());
    CHECK(holes_of_sparse(kSize, nothing, RAW_FD_CACHED).empty());
    CHECK(holes_of_sparse(kSize, nothing, RAW_FD_SPARSE | RAW_FD_CACHED | RAW_FD_CREATED).empty());
}

TEST_CASE("a recording keeps what was dropped and came again, by file") {
    RawJob job(kAllGroups);
    job.open("/d/a", 3, 0xf1, 7);
    const auto event = [&](uint64_t count, bool evicted) {
        raw_page_cache record = pages(7, 0, count, evicted, RawJob::fd_of(3, 0xf1, 7).device);
        record.head.time = job.now + 1000;
        job.add(RawBytes(RAW_PAGE_CACHE, record));
        job.pread(3, 0xf1, 7, 0, 100);
    };
    event(8, true);  // it was in memory, and was dropped
    event(8, false);
    event(8, true);
    event(8, false);
    const AssembledLog log = job.assemble();
    const auto fetched = fetched_pages(log.reader);
    REQUIRE(fetched);
    CHECK(fetched->empty());
    const auto again = refetched_pages(log.reader);
    REQUIRE(again);
    REQUIRE(again->size() == 1);
    CHECK(log.tables().path(again->begin()->first) == "/d/a");
    CHECK(again->begin()->second == 16);
}

TEST_CASE("pages of a file on overlayfs are those of the file below") {
    constexpr uint32_t kOverlay = 30, kDisk = 8u << 20 | 1;
    Tables tables;
    FileRow row;
    row.inode = 7;
    row.device = 30;
    tables.files.push_back(row);
    raw_backing record{};
    record.inode = 7;
    record.device = kOverlay;
    {
        RawPageCache cache;
        cache.see(pages(99, 0, 4, false, kDisk));
        CHECK(cache.of(tables).empty());  // nobody said whose they are
        record.below = 99;
        record.device_below = kDisk;
        cache.see(record);
        cache.see(record);
        CHECK(cache.of(tables).at(1) == range(0, 4));
        record.below = 100;  // copied up
        cache.see(record);
        cache.see(pages(100, 8, 2, false, kDisk));
        cache.see(pages(101, 9, 5, false, kDisk));  // another file's
        RangeSet expected = range(0, 4);
        expected.add(8 * kPage, 10 * kPage);
        CHECK(cache.of(tables).at(1) == expected);
        CHECK(cache.unknown(tables) == 0);
    }
    RawPageCache cache;
    record.below = 0;
    cache.see(record);
    CHECK(cache.unknown(tables) == 1);
    tables.files[1].origin = Origin::created;
    CHECK(cache.unknown(tables) == 0);
}

TEST_CASE("a recording on overlayfs that did not find the file below says nothing of pages") {
    const auto assemble = [](uint64_t below) {
        RawJob job(kAllGroups);
        raw_backing record{};
        record.head.time = job.now + 1;
        record.inode = 7;
        record.below = below;
        record.device = RawJob::fd_of(3, 0xf1, 7).device;
        job.add(RawBytes(RAW_BACKING, record));
        job.open("/d/a", 3, 0xf1, 7);
        job.pread(3, 0xf1, 7, 0, 100);
        const AssembledLog log = job.assemble();
        return std::pair(fetched_pages(log.reader).has_value(), log.counter("cache_files_unknown"));
    };
    CHECK(assemble(0) == std::pair(false, uint64_t{1}));
    CHECK(assemble(9) == std::pair(true, uint64_t{0}));
}

TEST_CASE("a recording says which pages it fetched, where it recorded the page cache") {
    const auto assemble = [](const char* meta, bool events) {
        RawJob job(meta);
        job.open("/d/a", 3, 0xf1, 7);
        if (events) {
            raw_page_cache record = pages(7, 0, 2, false, RawJob::fd_of(3, 0xf1, 7).device);
            record.head.time = job.now + 1000;
            job.add(RawBytes(RAW_PAGE_CACHE, record));
        }
        job.pread(3, 0xf1, 7, 0, 100);
        const AssembledLog log = job.assemble();
        return fetched_pages(log.reader);
    };
    const auto fetched = assemble(kAllGroups, true);
    REQUIRE(fetched);
    REQUIRE(fetched->size() == 1);
    CHECK(fetched->begin()->second == range(0, 2));
    const auto warm = assemble(kAllGroups, false);
    REQUIRE(warm);
    CHECK(warm->empty());
    CHECK_FALSE(assemble(R"({"command":["job"],"cwd":"/","groups":["calls"],"absent":[]})", false));
    CHECK_FALSE(assemble(
        R"({"command":["job"],"cwd":"/","groups":["pagecache"],"absent":["mm_filemap_add_to_page_cache"]})", false));
    CHECK_FALSE(assemble(R"({"command":["job"],"cwd":"/"})", false));
}

TEST_CASE("pages that go once a call has returned are its own doing") {
    // A close of 11 us, then 2.5 ms of freeing, then 3 ms of the program's own.
    const auto closed = [](bool told) {
        RawJob job(kAllGroups);
        job.open("/d/a", 3, 0xf1, 7);
        job.call(SYS_close, {3}, 0, 11'000).fd(0, RawJob::fd_of(3, 0xf1, 7));
        const uint64_t end = job.now;
        if (told) {
            for (const uint64_t at : {1'500'000, 2'500'000}) {  // two runs
                raw_page_cache record = pages(7, 0, 2, true, RawJob::fd_of(3, 0xf1, 7).device);
                record.after = end;
                record.first = end + 10'000;
                record.last = end + at;
                job.now = end + at;
                record.head.time = job.now;
                job.add(RawBytes(RAW_PAGE_CACHE, record));
            }
        }
        job.now = end + 5'500'000;
        job.open("/d/a", 3, 0xf1, 7);
        return job.assemble();
    };
    const auto time_of = [](const AssembledLog& log, OpKind kind) {
        int64_t sum = 0;
        for (const Op& op : log.of_kind(kind)) {
            sum += op.duration;
        }
        return sum;
    };
    const AssembledLog told = closed(true), silent = closed(false);
    CHECK(time_of(silent, OpKind::close) == 11'000);
    CHECK(time_of(told, OpKind::close) == 2'511'000);
    CHECK(time_of(silent, OpKind::compute) - time_of(told, OpKind::compute) == 2'500'000);
    CHECK(told.of_kind(OpKind::open).at(1).begin == silent.of_kind(OpKind::open).at(1).begin);
}

TEST_CASE("deferred work: of the right call, and no damage") {
    DeferredWork work;
    RecorderCosts costs;
    raw_page_cache record = pages(7, 0, 2, true, 1);
    record.folios = 10;
    raw_call call{};
    call.head.tid = record.head.tid = 5;
    call.head.time = 1'000;
    CHECK(work.after(call, costs) == 0);
    record.after = 1'000;
    record.last = 900;
    work.see(record);
    record.last = UINT64_MAX;
    work.see(record);
    record.after = 0;
    record.last = 2'000;
    work.see(record);
    CHECK(work.after(call, costs) == 0);
    record.after = 1'000;
    work.see(record);
    record.last = 1'500;
    work.see(record);
    CHECK(work.after(call, costs) == 1'000);
    costs.folio = 20;  // ns of each, and of the two runs
    costs.folio_run = 50;
    CHECK(work.after(call, costs) == 1'000 - 20 * 20 - 2 * 50);
    costs.folio = 200;
    CHECK(work.after(call, costs) == 0);
    costs = {};
    call.head.tid = 6;
    CHECK(work.after(call, costs) == 0);
    call.head.tid = 5;
    call.head.time = 1'001;
    CHECK(work.after(call, costs) == 0);
}

TEST_CASE("a recording says how much of a file was in memory when it was first opened") {
    const auto seen = [](int fd, uint64_t file, uint64_t inode, uint64_t cached) {
        raw_fd out = RawJob::fd_of(fd, file, inode);
        out.info |= RAW_FD_CACHED;
        out.peer_or_pages = cached;
        return out;
    };
    const auto open = [&](RawJob& job, const char* path, const raw_fd& fd, uint64_t flags = O_RDONLY) {
        job.call(SYS_openat, {uint64_t(-100), 0x1000, flags, 0644}, fd.fd).path(1, path).fd(RAW_WHICH_RESULT, fd);
    };
    RawJob job(R"({"command":["job"],"cwd":"/","groups":["calls"],"absent":[]})");
    open(job, "/d/a", seen(3, 0xf1, 7, 0));
    open(job, "/d/b", seen(4, 0xf2, 8, 2));
    open(job, "/d/a", seen(5, 0xf3, 7, 2));  // by then it was
    open(job, "/d/c", RawJob::fd_of(6, 0xf4, 9));
    raw_fd made = seen(7, 0xf5, 10, 0);
    made.info |= RAW_FD_CREATED;
    open(job, "/d/made", made, O_RDWR | O_CREAT);
    const AssembledLog log = job.assemble();
    const auto cached = cached_pages(log.reader);
    REQUIRE(cached);
    const Tables& tables = log.tables();
    std::map<std::string, uint64_t> by_path;
    for (const auto& [file, pages] : *cached) {
        by_path.emplace(tables.path(file), pages);
    }
    CHECK(by_path == std::map<std::string, uint64_t>{{"/d/a", 0}, {"/d/b", 2}});
    CHECK_FALSE(fetched_pages(log.reader));

    RawJob silent(kAllGroups);
    silent.open("/d/a", 3, 0xf1, 7);
    CHECK_FALSE(cached_pages(silent.assemble().reader));
}

}  // namespace reprise::test

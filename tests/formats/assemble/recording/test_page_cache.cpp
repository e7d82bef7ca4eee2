// SPDX-License-Identifier: MIT
// Which pages were in memory when a recording began: the first event of each says it.
#include "formats/assemble/recording/page_cache.h"

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
    record.bytes = static_cast<uint32_t>(count * kPage);
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
    tables.files[1].origin = Origin::created;
    CHECK(cache.of(tables).empty());
    tables.files[1] = row;
    tables.files[1].inode = 8;
    CHECK(cache.of(tables).empty());
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

}  // namespace reprise::test

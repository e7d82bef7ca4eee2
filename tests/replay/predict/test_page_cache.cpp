// SPDX-License-Identifier: MIT
// Which pages leave a full page cache.
#include "replay/predict/page_cache.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

using namespace reprise;

namespace {

constexpr int64_t kBlock = 16;  // pages of a piece at most

struct Cache {
    explicit Cache(PageCachePolicy policy, int64_t pages = INT64_MAX)
        : cache(
              policy,
              [this](const PageCache::Piece& piece) {
                  for (int64_t page = 0; page < kBlock; ++page) {
                      if ((piece.mask >> page & 1) != 0) {
                          CHECK(there.erase({piece.file, piece.page + page}) == 1);
                          left.push_back((piece.page + page) / kBlock);
                      }
                  }
                  ++pieces_left;
              },
              [this](FileId file, int64_t now) {
                  asked_to_write.push_back(file);
                  return std::max(now, clean_at);
              }) {
        cache.resize(pages, 0);
    }
    /// Whole blocks of file 1.
    void add(int64_t from, int64_t to, int64_t at = 0, int64_t now = 0) {
        pages(1, from * kBlock, to * kBlock, at, now);
    }
    void pages(FileId file, int64_t from, int64_t to, int64_t at = 0, int64_t now = 0) {
        for (int64_t page = from; page < to; ++page) {
            there.insert({file, page});
        }
        cache.add(file, from, to, at, now);
    }
    void write(int64_t from, int64_t to, int64_t now = 0) {
        for (int64_t page = from * kBlock; page < to * kBlock; ++page) {
            there.insert({1, page});
        }
        cache.write(1, from * kBlock, to * kBlock, now);
    }
    void use(int64_t from, int64_t to) { cache.use(1, from * kBlock, to * kBlock); }
    /// Added, used, and used again.
    void activate(int64_t from, int64_t to) {
        add(from, to);
        use(from, to);
        use(from, to);
    }
    void map(int64_t from, int64_t to, uint32_t map) { cache.map(1, from * kBlock, to * kBlock, map); }
    bool has(int64_t block) const { return there.count({1, block * kBlock}) != 0; }
    std::vector<int64_t> blocks() const {
        std::set<int64_t> all;
        for (const auto& [file, page] : there) {
            all.insert(page / kBlock);
        }
        return {all.begin(), all.end()};
    }

    std::set<std::pair<FileId, int64_t>> there;
    std::vector<int64_t> left;  // blocks, one for each page
    std::vector<FileId> asked_to_write;
    size_t pieces_left = 0;
    int64_t clean_at = 0;
    PageCache cache;
};

using Blocks = std::vector<int64_t>;

}  // namespace

TEST_CASE("LRU: what was not used for longest leaves") {
    Cache c(PageCachePolicy::lru, 4 * kBlock);
    c.add(0, 4);
    CHECK(c.left.empty());
    c.use(0, 1);
    c.add(4, 5);
    CHECK(c.blocks() == Blocks{0, 2, 3, 4});
    c.map(2, 3, 7);
    c.add(5, 7);
    CHECK(c.blocks() == Blocks{2, 4, 5, 6});
    c.use(1, 2);  // not there: nothing happens
    c.cache.resize(2 * kBlock, 0);
    CHECK(c.blocks() == Blocks{5, 6});
    CHECK(c.cache.pages() == 2 * kBlock);
}

TEST_CASE("pages that came in together leave together, others by themselves") {
    Cache c(PageCachePolicy::lru, 20);
    c.pages(1, 0, 10);
    c.pages(1, 10, 20);  // the same block, and the next one
    CHECK(c.left.empty());
    c.cache.use(1, 3, 4);
    c.pages(1, 100, 101);
    CHECK(c.left.size() == 6);  // 10 to 15
    CHECK(c.there.count({1, 9}) == 1);
    CHECK(c.there.count({1, 16}) == 1);
    // What is there already takes no more room.
    c.pages(1, 0, 10);
    CHECK(c.left.size() == 6);
}

TEST_CASE("two lists: what was used twice outlives what was used once") {
    for (const bool lists : {true, false}) {
        Cache c(lists ? PageCachePolicy::two_lists : PageCachePolicy::lru, 20 * kBlock);
        c.add(0, 4);
        c.use(0, 4);
        CHECK(c.cache.active() == 0);
        c.use(0, 4);
        CHECK(c.cache.active() == (lists ? 4 * kBlock : 0));
        for (int64_t block = 100; block < 160; ++block) {  // a stream that is read once
            c.add(block, block + 1);
            c.use(block, block + 1);
        }
        CHECK(c.has(0) == lists);
        CHECK(c.has(3) == lists);
        CHECK(!c.has(110));
        CHECK(c.has(159));
    }
}

TEST_CASE("small reads of different pages of one piece are no second use") {
    Cache c(PageCachePolicy::two_lists, 20 * kBlock);
    c.add(0, 1);
    for (int64_t page = 0; page < kBlock; ++page) {
        c.cache.use(1, page, page + 1);
    }
    CHECK(c.cache.active() == 0);
    c.cache.use(1, 5, 6);
    CHECK(c.cache.active() == kBlock);
}

TEST_CASE("two lists: a longer active list gives way until both are as long") {
    Cache c(PageCachePolicy::two_lists, 40 * kBlock);
    c.activate(0, 36);
    CHECK(c.cache.active() == 36 * kBlock);
    for (int64_t block = 100; block < 200; ++block) {
        c.add(block, block + 1);
    }
    CHECK(c.cache.active() <= 20 * kBlock + kBlock);
    CHECK(c.cache.active() >= 15 * kBlock);
    // From then on the stream takes the inactive part only.
    const int64_t active = c.cache.active();
    for (int64_t block = 200; block < 300; ++block) {
        c.add(block, block + 1);
    }
    CHECK(c.cache.active() == active);
}

TEST_CASE("two lists: from a GiB on the active list may be the longer one") {
    if (test::kSanitized) {
        REPRISE_SKIP("a GiB of pages, in plain builds only");
    }
    constexpr int64_t kAll = (int64_t{3} << 29) / 4096 / kBlock;  // 1.5 GiB: three times as long
    Cache c(PageCachePolicy::two_lists, kAll * kBlock);
    c.activate(0, kAll - 10);
    for (int64_t block = 2 * kAll; block < 4 * kAll; block += 100) {
        c.add(block, block + 100);
    }
    CHECK(c.cache.active() >= kAll * kBlock * 74 / 100);
    CHECK(c.cache.active() <= kAll * kBlock * 76 / 100);
}

TEST_CASE("two lists: what comes back soon enough to have stayed in the active list's place gets active at once") {
    Cache c(PageCachePolicy::two_lists, 20 * kBlock);
    c.activate(0, 8);
    REQUIRE(c.cache.active() == 8 * kBlock);
    for (int64_t block = 100; !c.left.empty() ? c.left.size() < 2 * kBlock : true; ++block) {
        c.add(block, block + 1);
    }
    const int64_t gone = c.left.front();
    CHECK(gone == 100);
    c.add(gone, gone + 1);
    CHECK(c.cache.active() == 9 * kBlock);
    // Not what left long ago: more pages left since than the active list has.
    for (int64_t block = 300; block < 340; ++block) {
        c.add(block, block + 1);
    }
    const int64_t active = c.cache.active();
    REQUIRE(!c.has(101));
    c.add(101, 102);
    CHECK(c.cache.active() <= active);
    // However much has left by now, what did so last comes back.
    for (int64_t block = 1'000; block < 2'000; ++block) {
        c.add(block, block + 1);
    }
    const int64_t before = c.cache.active();
    REQUIRE(before > 2 * kBlock);
    c.add(c.left.back(), c.left.back() + 1);
    CHECK(c.cache.active() == before + kBlock);
    // Nothing is active: nothing comes back to that.
    Cache none(PageCachePolicy::two_lists, 8 * kBlock);
    for (int round = 0; round < 3; ++round) {
        none.add(0, 10);
    }
    CHECK(none.cache.active() == 0);
}

TEST_CASE("two lists: mapped pages are spared once, and active the second time; the end of a mapping is a use") {
    Cache c(PageCachePolicy::two_lists, 10 * kBlock);
    c.add(0, 2);
    c.map(0, 1, 7);
    c.add(2, 12);  // the turn of 0 comes, then that of 1
    CHECK(c.has(0));
    CHECK(!c.has(1));
    c.map(0, 1, 7);  // again
    c.add(12, 24);
    CHECK(c.has(0));
    CHECK(c.cache.active() == kBlock);
    CHECK(c.cache.left_mapped() == 0);

    Cache d(PageCachePolicy::two_lists, 10 * kBlock);
    d.add(0, 1);
    d.map(0, 1, 7);
    d.cache.unmap(7);
    CHECK(d.cache.active() == 0);
    d.map(0, 1, 8);
    CHECK(d.cache.active() == 0);
    d.cache.unmap(8);
    CHECK(d.cache.active() == kBlock);
    d.cache.unmap(8);
    d.cache.unmap(99);

    for (const PageCachePolicy policy : {PageCachePolicy::lru, PageCachePolicy::two_lists}) {
        Cache e(policy, 10 * kBlock);
        e.add(0, 4);
        e.map(0, 2, 7);
        e.map(2, 4, 8);
        e.cache.unmap(8);
        e.add(4, 40);
        e.add(40, 80);
        CHECK(!e.has(0));
        CHECK(e.cache.left_mapped() == 2 * kBlock);
    }
}

TEST_CASE("what is on its way stays until it is there") {
    Cache c(PageCachePolicy::two_lists, 10 * kBlock);
    c.add(0, 4, 1'000);
    c.add(4, 14, 0, 500);
    CHECK(c.has(0));
    CHECK(c.has(3));
    CHECK(!c.has(4));
    c.add(14, 30, 0, 1'000);
    CHECK(!c.has(0));
    // Where there is nothing else, it goes all the same.
    c.add(100, 130, 9'000, 2'000);
    CHECK(c.cache.used() <= 10 * kBlock);
}

TEST_CASE("written pages leave when they are on the device") {
    Cache c(PageCachePolicy::lru, 10 * kBlock);
    c.clean_at = 5'000;
    c.write(0, 2);
    c.add(2, 13, 0, 1'000);
    CHECK(c.has(0));
    CHECK(c.has(1));
    CHECK(!c.asked_to_write.empty());
    c.add(13, 40, 0, 6'000);
    CHECK(!c.has(0));
    // All of it is written, and there is no room: some leave all the same.
    c.clean_at = 1'000'000;
    c.write(100, 120, 7'000);
    CHECK(c.cache.used() <= 10 * kBlock);
    CHECK(c.blocks().size() == 10);
    // Pages that are written anew do not come back from anywhere.
    Cache d(PageCachePolicy::two_lists, 20 * kBlock);
    d.add(0, 8);
    d.use(0, 8);
    d.use(0, 8);
    d.add(100, 114);
    REQUIRE(!d.has(100));
    d.write(100, 101);
    CHECK(d.cache.active() == 8 * kBlock);
}

TEST_CASE("data that goes away leaves its room to others") {
    Cache c(PageCachePolicy::two_lists, 10 * kBlock);
    c.add(0, 9);
    c.cache.forget(1, 0, 5 * kBlock);
    CHECK(c.left.empty());
    CHECK(c.cache.pages() == 4 * kBlock);
    c.add(20, 25);
    CHECK(c.left.empty());
}

TEST_CASE("every file costs memory besides its pages") {
    Cache c(PageCachePolicy::lru, 1'000);
    for (FileId file = 1; file <= 1'000; ++file) {
        c.pages(file, 0, 1);
    }
    CHECK(c.cache.used() <= 1'000);
    CHECK(c.cache.pages() == 667);
}

TEST_CASE("there is never more than there is room for, and what left is what came") {
    for (const PageCachePolicy policy : {PageCachePolicy::lru, PageCachePolicy::two_lists}) {
        for (uint64_t seed = 1; seed <= test::rounds(40, 8); ++seed) {
            CAPTURE(seed);
            std::mt19937_64 random(seed);
            const auto upto = [&](uint64_t most) { return static_cast<int64_t>(random() % most); };
            Cache c(policy, 1 + upto(400));
            int64_t now = 0;
            bool fits = true;
            for (int step = 0; step < 2'000; ++step) {
                now += upto(100);
                c.clean_at = now + upto(2) * upto(300);
                const auto file = static_cast<FileId>(1 + upto(4));
                const int64_t from = upto(600), to = from + 1 + upto(60);
                switch (upto(8)) {
                    case 0:
                    case 1:
                    case 2: c.pages(file, from, to, now + upto(2) * upto(200), now); break;
                    case 3:
                        for (int64_t page = from; page < to; ++page) {
                            c.there.insert({file, page});
                        }
                        c.cache.write(file, from, to, now);
                        break;
                    case 4: c.cache.use(file, from, to); break;
                    case 5: c.cache.map(file, from, to, static_cast<uint32_t>(1 + upto(3))); break;
                    case 6:
                        upto(4) == 0 ? c.cache.resize(upto(500), now)
                                     : c.cache.unmap(static_cast<uint32_t>(1 + upto(3)));
                        break;
                    default:
                        if (upto(10) == 0) {
                            c.cache.forget(file, from / kBlock * kBlock, (to / kBlock + 1) * kBlock);
                            std::erase_if(c.there, [&](const auto& page) {
                                return page.first == file && page.second >= from / kBlock * kBlock &&
                                       page.second < (to / kBlock + 1) * kBlock;
                            });
                        }
                }
                fits = fits && c.cache.used() <= c.cache.capacity() &&
                       c.cache.pages() == static_cast<int64_t>(c.there.size());
            }
            CHECK(fits);
            CHECK(c.cache.active() >= 0);
        }
    }
}

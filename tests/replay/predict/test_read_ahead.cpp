// SPDX-License-Identifier: MIT
// What is read ahead: windows that Linux 6.18 was seen to ask for (tracepoints readahead:* and block:block_bio_queue,
// ext4), in the order of its faults and reads.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "replay/predict/read_ahead.h"

using namespace reprise;

namespace {

using Windows = std::vector<std::pair<int64_t, int64_t>>;  // first page, pages

struct Rules {
    VirtualPages cache;
    ReadAhead state{.pages = 32};
    Windows asked;
    int64_t end = 24'576, most_io = 320;
    bool large = true;

    ReadAheadRules rules() { return {cache, state, end, {most_io, large}, ask}; }
    std::function<void(int64_t, int64_t)> ask = [this](int64_t from, int64_t to) {
        asked.emplace_back(from, to - from);
        cache.add(from, to, 0, 0);
    };
    Windows take() { return std::exchange(asked, {}); }
    /// As a fault does it, without waiting.
    Windows fault(int64_t page, MapAdvice advice = {}) {
        if (!cache.has(page)) {
            rules().fault_missed(page, advice);
        } else if (cache.is_marked(page)) {
            rules().met_mark(page, state.pages);
        }
        return take();
    }
    /// As a read does it.
    Windows read(int64_t from, int64_t pages) {
        for (int64_t page = from; page < from + pages; ++page) {
            if (!cache.has(page)) {
                rules().missed(page, from + pages - page);
            } else if (cache.is_marked(page)) {
                rules().met_mark(page, from + pages - page);
            }
        }
        state.previous = from + pages;
        return take();
    }
};

}  // namespace

TEST_CASE_FIXTURE(Rules, "a mapping that is read in order: around the first fault, then whole windows") {
    CHECK(fault(0) == Windows{{0, 32}});
    CHECK(fault(16).empty());
    CHECK(fault(24) == Windows{{32, 32}});
    CHECK(fault(32) == Windows{{64, 32}});
    CHECK(fault(48).empty());
    CHECK(fault(64) == Windows{{96, 32}});
    CHECK(fault(64).empty());  // its mark is gone
}

TEST_CASE_FIXTURE(Rules, "faults here and there: around each, less what is there") {
    CHECK(fault(1'000) == Windows{{984, 32}});
    CHECK(fault(1'020) == Windows{{1'016, 20}});
    CHECK(fault(1'005).empty());
    CHECK(fault(5) == Windows{{0, 32}});
    CHECK(fault(24'570) == Windows{{24'554, 22}});  // to the file's end
    cache.add(2'000, 2'001, 0, 0);
    CHECK(fault(2'004) == Windows{{1'988, 12}, {2'001, 19}});  // a request on each side
}

TEST_CASE_FIXTURE(Rules, "two streams through one instance take each other's window for none of theirs") {
    const auto begin = [&] {
        CHECK(fault(0) == Windows{{0, 32}});
        CHECK(fault(12'288) == Windows{{12'272, 32}});
        CHECK(fault(24) == Windows{{32, 32}});
        CHECK(fault(12'296) == Windows{{12'304, 32}});
    };
    SUBCASE("where pages are cached several as one") {
        begin();
        CHECK(fault(32).empty());  // a full window lies ahead: Linux does not look beyond
        CHECK(fault(12'304) == Windows{{12'336, 16}});
        CHECK(fault(64) == Windows{{64, 16}});
        CHECK(fault(12'336) == Windows{{12'353, 31}});  // a page too far
        CHECK(fault(12'352) == Windows{{12'352, 1}});
        CHECK(fault(72) == Windows{{80, 32}});
    }
    SUBCASE("where each page is cached alone") {
        large = false;
        begin();
        CHECK(fault(32) == Windows{{64, 32}});
        CHECK(fault(12'304) == Windows{{12'336, 32}});
        CHECK(fault(64) == Windows{{96, 32}});
    }
}

TEST_CASE_FIXTURE(Rules, "advice for faults") {
    CHECK(fault(100, {.random = true}).empty());
    CHECK(!cache.has(100));  // the fault reads its page alone
    CHECK(fault(200, {.sequential = true}) == Windows{{200, 32}});
    CHECK(fault(600, {.huge = true}) == Windows{{512, 1'024}});
    CHECK(fault(3'000, {.random = true, .huge = true}) == Windows{{2'560, 512}});
    state.pages = 0;
    CHECK(fault(4'000).empty());
}

TEST_CASE_FIXTURE(Rules, "a run of pages, then every seventh, by advice") {
    MapAdvice advice;
    Windows all;
    const auto visit = [&](int64_t page) {
        for (const auto& window : fault(page, advice)) {
            all.push_back(window);
        }
        if (!cache.has(page)) {
            ask(page, page + 1);  // as the fault itself does
            all.push_back(take().front());
        }
    };
    const auto run = [&] {
        for (int64_t page = 256; page < 352; ++page) {
            visit(page);
        }
        for (int64_t page = 5'000; page < 5'070; page += 7) {
            visit(page);
        }
    };
    SUBCASE("none") {
        run();
        CHECK(all == Windows{{240, 32},
                             {272, 32},
                             {304, 32},
                             {336, 16},
                             {352, 32},
                             {4'984, 32},
                             {5'016, 21},
                             {5'037, 21},
                             {5'058, 21}});
    }
    SUBCASE("sequential") {
        advice.sequential = true;
        run();
        CHECK(all == Windows{{256, 32}, {288, 32}, {320, 32}, {5'000, 32}, {5'035, 32}});
    }
    SUBCASE("huge") {
        advice.huge = true;
        run();
        CHECK(all == Windows{{0, 1'024}, {4'608, 1'024}});
    }
    SUBCASE("random") {
        advice.random = true;
        run();
        CHECK(all.size() == 96 + 10);
        CHECK(all.front() == std::pair<int64_t, int64_t>{256, 1});
    }
    SUBCASE("will be needed") {
        rules().wanted(0, 16'384);
        CHECK(take() == Windows{{0, 320}});
    }
}

TEST_CASE_FIXTURE(Rules, "a file whose faults find nothing is not read around any more") {
    for (int64_t i = 0; i < 100; ++i) {
        CHECK(fault(i * 100) == Windows{{std::max<int64_t>(i * 100 - 16, 0), 32}});
    }
    CHECK(fault(10'000).empty());
    state.misses = 99;
    CHECK(fault(10'000).size() == 1);
}

TEST_CASE_FIXTURE(Rules, "small reads in order: windows that grow, and end at round pages") {
    Windows all;
    for (int64_t page = 0; page < 128; ++page) {
        for (const auto& window : read(page, 1)) {
            all.push_back(window);
        }
    }
    CHECK(all == Windows{{0, 4}, {4, 8}, {12, 4}, {16, 8}, {24, 8}, {32, 16}, {48, 16}, {64, 32}, {96, 32}, {128, 32}});
    large = false;
    cache = {};
    state = {.pages = 32};
    all.clear();
    for (int64_t page = 0; page < 64; ++page) {
        for (const auto& window : read(page, 1)) {
            all.push_back(window);
        }
    }
    CHECK(all == Windows{{0, 4}, {4, 8}, {12, 16}, {28, 32}, {60, 32}, {92, 32}});
}

TEST_CASE_FIXTURE(Rules, "reads of a window's size, larger ones, and small ones anywhere") {
    CHECK(read(0, 32) == Windows{{0, 32}, {32, 32}});
    CHECK(read(32, 32) == Windows{{64, 32}});
    CHECK(read(1'000, 2) == Windows{{1'000, 2}});
    CHECK(read(1'002, 2) == Windows{{1'002, 4}});
    CHECK(read(5'000, 256) == Windows{{5'000, 256}});  // at once, as the device takes more than a window
    CHECK(read(6'000, 400).front() == std::pair<int64_t, int64_t>{6'000, 320});
    state.random = true;
    CHECK(read(8'000, 3) == Windows{{8'000, 3}});
    CHECK(read(8'003, 3) == Windows{{8'003, 3}});
    CHECK(read(9'000, 400) == Windows{{9'000, 320}, {9'320, 80}});
    state.pages = 0;
    CHECK(read(10'000, 3) == Windows{{10'000, 1}, {10'001, 1}, {10'002, 1}});
}

TEST_CASE_FIXTURE(Rules, "a stream whose state is lost is known by its pages") {
    CHECK(read(0, 32).size() == 2);
    state = {.pages = 32};       // another descriptor
    CHECK(read(32, 4).empty());  // its mark, which tells where the window ends, but a page too late
    CHECK(read(64, 4) == Windows{{64, 32}});
    state = {.pages = 32};
    cache.add(500, 516, 0, 0);
    CHECK(read(516, 2) == Windows{{516, 18}});
    cache = {};
    cache.add(0, 8, 0, 0);
    CHECK(read(8, 2) == Windows{{8, 18}});  // from the file's begin: twice as far
    CHECK(read(100, 2) == Windows{{100, 2}});
}

TEST_CASE("pages of a file: what is missing, on its way, marked") {
    VirtualPages pages;
    CHECK(!pages.has(0));
    pages.add(500, 600, 90, 10);
    CHECK(pages.has(511));
    CHECK(pages.has(512));
    CHECK(!pages.has(600));
    CHECK(pages.next_missing(500, 1'000) == 600);
    CHECK(pages.next_missing(500, 550) == 550);
    CHECK(pages.next_missing(499, 550) == 499);
    CHECK(pages.run_before(600, 1'000) == 100);
    CHECK(pages.run_before(600, 7) == 7);
    CHECK(pages.run_before(0, 7) == 0);
    CHECK(pages.there(550, 10) == 90);
    CHECK(!pages.is_ready(550, 89));
    CHECK(pages.is_ready(550, 90));
    pages.mark(512, true);
    CHECK(pages.is_marked_large(512));
    CHECK(!pages.is_ready(512, 100));
    pages.unmark(512);
    CHECK(!pages.is_marked(512));
    CHECK(!pages.is_marked_large(512));
    CHECK(pages.is_ready(512, 100));
    // What came long ago is forgotten, what is on its way is not.
    for (int64_t i = 0; i < 1'000; ++i) {
        pages.add(10'000 + 2 * i, 10'001 + 2 * i, 1'000 + i, i);
    }
    CHECK(pages.there(11'998, 999) == 1'999);
    CHECK(pages.there(10'000, 999) == 1'000);
    CHECK(pages.there(10'000, 1'000) == 1'000);
}

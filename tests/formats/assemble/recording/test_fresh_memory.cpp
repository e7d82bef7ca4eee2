// SPDX-License-Identifier: MIT
// Which memory no call has filled since it was mapped.
#include <doctest/doctest.h>

#include "formats/assemble/recording/memory.h"

using reprise::FreshMemory;

namespace {
constexpr uint64_t kPage = 4096;
}

TEST_CASE("memory is fresh from its mapping until a call fills it") {
    FreshMemory memory;
    CHECK_FALSE(memory.fill(16 * kPage, kPage));
    memory.mapped(16 * kPage, 4 * kPage);
    CHECK_FALSE(memory.fill(16 * kPage, 0));
    CHECK_FALSE(memory.fill(15 * kPage, kPage));
    CHECK_FALSE(memory.fill(20 * kPage, kPage));
    CHECK(memory.fill(17 * kPage + 100, 200));  // its whole page
    CHECK_FALSE(memory.fill(17 * kPage, kPage));
    CHECK(memory.fill(16 * kPage, 1));
    CHECK(memory.fill(18 * kPage, 2 * kPage));
    CHECK_FALSE(memory.fill(16 * kPage, 4 * kPage));
}

TEST_CASE("a call pays for fresh memory where at least half of what it fills is fresh") {
    FreshMemory memory;
    memory.mapped(10 * kPage, kPage);
    CHECK(memory.fill(10 * kPage, 2 * kPage));
    memory.mapped(10 * kPage, kPage);
    CHECK_FALSE(memory.fill(10 * kPage, 3 * kPage));
    CHECK_FALSE(memory.fill(10 * kPage, kPage));  // filled all the same
    memory.mapped(10 * kPage, kPage);
    memory.mapped(12 * kPage, kPage);
    CHECK(memory.fill(9 * kPage, 4 * kPage));
    memory.mapped(10 * kPage, kPage);
    memory.mapped(12 * kPage, kPage);
    CHECK_FALSE(memory.fill(9 * kPage, 5 * kPage));
}

TEST_CASE("mappings taken away in the middle, at the ends, across several") {
    FreshMemory memory;
    memory.mapped(10 * kPage, 10 * kPage);
    memory.unmapped(13 * kPage, 2 * kPage);
    memory.unmapped(9 * kPage, 2 * kPage);
    memory.unmapped(19 * kPage, 2 * kPage);
    for (uint64_t page = 8; page < 22; ++page) {
        CAPTURE(page);
        const bool left = page == 11 || page == 12 || (page >= 15 && page <= 18);
        FreshMemory copy = memory;
        CHECK(copy.fill(page * kPage, kPage) == left);
    }
    memory.mapped(30 * kPage, kPage);
    memory.unmapped(12 * kPage, 18 * kPage);  // up to the page before
    CHECK(memory.fill(30 * kPage, kPage));
    CHECK_FALSE(memory.fill(12 * kPage, kPage));
    CHECK(memory.fill(11 * kPage, kPage));
}

TEST_CASE("neighbours become one, and mapping anew makes fresh again") {
    FreshMemory memory;
    memory.mapped(10 * kPage, kPage);
    memory.mapped(12 * kPage, kPage);
    memory.mapped(11 * kPage, kPage);
    CHECK(memory.fill(10 * kPage, 3 * kPage));
    memory.mapped(11 * kPage, kPage);
    CHECK_FALSE(memory.fill(10 * kPage, kPage));
    CHECK_FALSE(memory.fill(12 * kPage, kPage));
    CHECK(memory.fill(11 * kPage, kPage));
}

TEST_CASE("the heap grows fresh and shrinks") {
    FreshMemory memory;
    memory.break_at(100 * kPage);
    CHECK_FALSE(memory.fill(99 * kPage, kPage));  // what was there before is not known
    memory.break_at(102 * kPage + 1);
    CHECK_FALSE(memory.fill(103 * kPage, kPage));
    CHECK_FALSE(memory.fill(50 * kPage, kPage));
    CHECK(memory.fill(102 * kPage, kPage));
    CHECK(memory.fill(100 * kPage, 2 * kPage));
    memory.break_at(106 * kPage);
    memory.break_at(104 * kPage);
    CHECK(memory.fill(103 * kPage, kPage));
    CHECK_FALSE(memory.fill(104 * kPage, 2 * kPage));
    memory.clear();
    memory.break_at(200 * kPage);
    CHECK_FALSE(memory.fill(150 * kPage, kPage));
}

TEST_CASE("extreme addresses do not overflow") {
    FreshMemory memory;
    memory.mapped(UINT64_MAX - 10, UINT64_MAX);
    memory.mapped(0, UINT64_MAX);
    CHECK(memory.fill(kPage, uint64_t{1} << 62));
    CHECK_FALSE(memory.fill(0x100 * kPage, kPage));
}

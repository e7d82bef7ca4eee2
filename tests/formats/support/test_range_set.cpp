// SPDX-License-Identifier: MIT
// Ranges of a file beside a plain array of its pages.
#include <doctest/doctest.h>

#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "formats/support/range_set.h"

using reprise::RangeSet;

namespace {

constexpr uint64_t kPage = RangeSet::kPage;
using Ranges = std::map<uint64_t, uint64_t>;

Ranges ranges_of(const RangeSet& set) { return {set.ranges().begin(), set.ranges().end()}; }

}  // namespace

TEST_CASE("ranges: whole pages, and what touches is one") {
    RangeSet set;
    CHECK(set.empty());
    set.add(10, 20);
    CHECK(ranges_of(set) == Ranges{{0, kPage}});
    set.add(2 * kPage, 2 * kPage);  // nothing
    set.add(3 * kPage, 4 * kPage + 1);
    CHECK(ranges_of(set) == Ranges{{0, kPage}, {3 * kPage, 5 * kPage}});
    CHECK(set.bytes() == 3 * kPage);
    set.add(kPage, 3 * kPage);
    CHECK(ranges_of(set) == Ranges{{0, 5 * kPage}});
    CHECK(set.contains(0));
    CHECK(set.contains(5 * kPage - 1));
    CHECK_FALSE(set.contains(5 * kPage));
    set.clip(kPage + 100);
    CHECK(ranges_of(set) == Ranges{{0, kPage + 100}});
    set.clip(0);
    CHECK(set.empty());
}

TEST_CASE("ranges: the end of the number range") {
    constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();
    RangeSet set;
    set.add(kEnd - 5, kEnd);
    set.add(0, kEnd);
    CHECK(ranges_of(set) == Ranges{{0, kEnd / kPage * kPage}});
    set.remove(kPage, kEnd);
    CHECK(set.bytes() == kPage);
}

TEST_CASE("ranges: the same as an array of pages") {
    constexpr size_t kPages = 64;
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        RangeSet set, other;
        std::vector<bool> pages(kPages), others(kPages);
        for (int i = 0; i < 12; ++i) {
            const auto pick = [&] { return static_cast<size_t>(random() % kPages); };
            const size_t from = pick(), to = std::max(from, pick());
            const unsigned what = random() % 3;
            for (size_t page = from; page < to; ++page) {
                (what == 2 ? others : pages)[page] = what != 1;
            }
            what == 0   ? set.add(from * kPage, to * kPage)
            : what == 1 ? set.remove(from * kPage, to * kPage)
                        : other.add(from * kPage, to * kPage);
        }
        const RangeSet left = set.without(other);
        uint64_t count = 0;
        for (size_t page = 0; page < kPages; ++page) {
            CHECK(set.contains(page * kPage) == pages[page]);
            CHECK(left.contains(page * kPage) == (pages[page] && !others[page]));
            count += pages[page] ? 1 : 0;
        }
        CHECK(set.bytes() == count * kPage);
        CHECK(set.count() == ranges_of(set).size());
        CHECK(set.empty() == (count == 0));
        RangeSet built;
        for (size_t page = kPages; page-- > 0;) {
            if (pages[page]) {
                built.add(page * kPage, (page + 1) * kPage);
            }
        }
        CHECK(built == set);
        CHECK((other == set) == (others == pages));
        for (size_t page = 0; page < kPages; ++page) {
            const Ranges all = ranges_of(set);
            auto at = all.upper_bound(page * kPage);
            at = at == all.begin() ? at : std::prev(at);
            const auto from = set.ranges_from(page * kPage);
            CHECK(Ranges(from.begin(), from.end()) == Ranges(at, all.end()));
        }
        uint64_t last = 0;
        bool first = true;
        for (const auto& [from, to] : set.ranges()) {
            CHECK(from < to);
            CHECK((first || from > last));
            last = to;
            first = false;
        }
    }
}

TEST_CASE("ranges: bounded, in larger units, and nothing is lost") {
    RangeSet set;
    for (uint64_t i = 0; i < RangeSet::kMost + 10; ++i) {
        set.add(3 * i * kPage, (3 * i + 1) * kPage);
        REQUIRE(set.count() < RangeSet::kMost);
    }
    CHECK(set.unit() > kPage);
    for (uint64_t i = 0; i < RangeSet::kMost + 10; i += 97) {
        CHECK(set.contains(3 * i * kPage));
    }
    CHECK(set.bytes() <= 3 * (RangeSet::kMost + 20) * kPage + 2 * set.unit());
}

TEST_CASE("ranges: one range takes nothing beside the set, and sets are values") {
    static_assert(sizeof(RangeSet) <= 24);
    for (const uint64_t more : {0, 1}) {
        RangeSet set;
        set.add(0, kPage);
        set.add(2 * kPage * more, 2 * kPage * more + kPage);
        const RangeSet copy = set;
        RangeSet moved = std::move(set);
        CHECK(set.empty());  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move): as promised
        CHECK(moved == copy);
        moved.remove(0, kPage);
        CHECK(copy.contains(0));
        moved = copy;
        CHECK(moved == copy);
        CHECK(moved.count() == 1 + more);
    }
}

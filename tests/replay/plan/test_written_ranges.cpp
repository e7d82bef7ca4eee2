// SPDX-License-Identifier: MIT
// Who wrote which bytes last: beside a table of bytes.
#include "replay/plan/written_ranges.h"

#include <array>
#include <random>
#include <set>

#include "tests/support.h"

namespace reprise::test {

TEST_CASE("written ranges: each byte is whose who wrote it last") {
    std::mt19937 random(4);
    for (int round = 0; round < 50; ++round) {
        WrittenRanges ranges;
        std::array<uint64_t, 64> last{};
        for (uint64_t op = 1; op <= 40; ++op) {
            const int64_t from = static_cast<int64_t>(random() % 64), to = from + static_cast<int64_t>(random() % 20);
            ranges.write(from, to, {1, op, 0});
            for (int64_t byte = from; byte < std::min<int64_t>(to, 64); ++byte) {
                last[static_cast<size_t>(byte)] = op;
            }
            const int64_t begin = static_cast<int64_t>(random() % 64),
                          end = begin + 1 + static_cast<int64_t>(random() % 9);
            std::set<uint64_t> expected, found;
            for (int64_t byte = begin; byte < std::min<int64_t>(end, 64); ++byte) {
                expected.insert(last[static_cast<size_t>(byte)]);
            }
            expected.erase(0);
            ranges.each(begin, std::min<int64_t>(end, 64), [&](const WrittenRanges::By& by) { found.insert(by.op); });
            CHECK(found == expected);
        }
        ranges.clear();
        ranges.each(0, 64, [](const WrittenRanges::By&) { FAIL("cleared"); });
    }
}

TEST_CASE("written ranges: of very many some are forgotten, and what comes then is known") {
    WrittenRanges ranges;
    constexpr int64_t kMany = 10'000;
    for (int64_t i = 0; i < kMany; ++i) {
        ranges.write(2 * i, 2 * i + 1, {1, static_cast<uint64_t>(i), 0});
    }
    size_t known = 0;
    ranges.each(0, 2 * kMany, [&](const WrittenRanges::By&) { ++known; });
    CHECK(known > 0);
    CHECK(known <= 4096);
    ranges.each(2 * kMany - 2, 2 * kMany, [](const WrittenRanges::By& by) { CHECK(by.op == kMany - 1); });
    ranges.write(-5, 3, {1, 1, 0});  // no place in a file
    ranges.write(7, 7, {1, 1, 0});
}

}  // namespace reprise::test

// SPDX-License-Identifier: MIT
// Where the power is cut.
#include "cli/power_cut.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace reprise;
using namespace reprise::cli;

TEST_CASE("power cuts: half of them right after syncs, ascending, always the same ones") {
    std::vector<int64_t> arrived, synced;
    for (int64_t i = 0; i < 1000; ++i) {
        arrived.push_back(i * 10'000'000);
    }
    for (int64_t i = 0; i < 50; ++i) {
        synced.push_back(i * 200'000'000 + 5'000'000);
    }
    const std::vector<PowerCut> cuts = choose_cuts(arrived, synced, 20, 1);
    REQUIRE(cuts.size() == 20);
    CHECK(std::is_sorted(cuts.begin(), cuts.end(), [](const auto& a, const auto& b) { return a.write < b.write; }));
    // The write after a sync at 5 ms is the one at 10 ms.
    const auto after_sync = [](const PowerCut& cut) { return cut.write % 20 == 1; };
    CHECK(std::count_if(cuts.begin(), cuts.end(), after_sync) >= 10);
    CHECK(std::count_if(cuts.begin(), cuts.end(), [](const PowerCut& cut) { return cut.loses_cache; }) == 10);
    const std::vector<PowerCut> again = choose_cuts(arrived, synced, 20, 1);
    CHECK(std::equal(cuts.begin(), cuts.end(), again.begin(),
                     [](const auto& a, const auto& b) { return a.write == b.write; }));
    // Without syncs, and without writes.
    CHECK(choose_cuts(arrived, {}, 3, 1).size() == 3);
    CHECK(choose_cuts({}, synced, 3, 1).back().write == 0);
}

// SPDX-License-Identifier: MIT
// The parts of an analysis, each on something made by hand whose answer is known.
#include <cmath>
#include <numeric>
#include <random>

#include "analyze/job/access_stream.h"
#include "analyze/job/accesses.h"
#include "analyze/job/bursts.h"
#include "analyze/job/reuse.h"
#include "analyze/job/sample_order.h"
#include "analyze/job/skew.h"
#include "analyze/job/time_grid.h"
#include "tests/support.h"

using namespace reprise;

namespace {

AccessOrders orders_of(const std::vector<std::pair<int64_t, int64_t>>& accesses) {
    AccessStream stream;
    AccessOrders out;
    for (const auto& [offset, bytes] : accesses) {
        stream.see(offset, bytes, out);
    }
    return out;
}

/// Reads of one file, one after the other: (page, bytes).
Reuse reuse_of_pages(const std::vector<std::pair<int64_t, int64_t>>& reads, size_t most = 1 << 20) {
    AccessSample sample(most);
    int64_t at = 0;
    for (const auto& [page, bytes] : reads) {
        sample.add(++at, 1, page * 4096, bytes, 1, false);
    }
    const std::vector<Access> accesses = sample.finish();
    return reuse_of(accesses, sample.share());
}

std::vector<SampleRead> by_one(const std::vector<uint32_t>& ranks) {
    std::vector<SampleRead> out;
    for (const uint32_t rank : ranks) {
        out.push_back({rank, 1});
    }
    return out;
}

/// As tf.data and others shuffle: a buffer of `window` samples, of which a random one goes out and the next comes in.
std::vector<uint32_t> shuffled_in_window(uint32_t count, uint32_t window, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint32_t> buffer, out;
    for (uint32_t next = 0; next < count || !buffer.empty();) {
        while (buffer.size() < window && next < count) {
            buffer.push_back(next++);
        }
        const size_t chosen = random() % buffer.size();
        out.push_back(buffer[chosen]);
        buffer.erase(buffer.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    return out;
}

}  // namespace

TEST_CASE("access order: sequential, strided, random") {
    CHECK(orders_of({{0, 10}, {10, 10}, {20, 5}, {25, 10}}) == AccessOrders{4, 0, 0});
    // The first jump of a row of equal ones is seen to be one once the second comes.
    CHECK(orders_of({{0, 10}, {100, 10}, {200, 10}, {300, 10}}) == AccessOrders{1, 3, 0});
    CHECK(orders_of({{0, 10}, {100, 10}}) == AccessOrders{1, 0, 1});
    // Records that are read in two pieces, from one to the next but one.
    CHECK(orders_of({{0, 10}, {10, 10}, {100, 10}, {110, 10}, {200, 10}, {210, 10}}) == AccessOrders{4, 2, 0});
    CHECK(orders_of({{5000, 10}, {70, 10}, {912, 10}, {300, 10}}) == AccessOrders{0, 0, 4});
    // Backwards at equal distances, too.
    CHECK(orders_of({{900, 10}, {600, 10}, {300, 10}}) == AccessOrders{0, 2, 1});
    // The same place again and again is none of them.
    CHECK(orders_of({{0, 10}, {0, 10}, {0, 10}}) == AccessOrders{1, 0, 2});
}

TEST_CASE("re-use distance: the other bytes between two reads of a place") {
    const Reuse once = reuse_of_pages({{0, 4096}, {1, 4096}, {2, 4096}});
    CHECK(once.first_bytes == 3 * 4096);
    CHECK(once.again_bytes == 0);
    CHECK(once.median() == 0);
    CHECK(once.within(1e12) == 0);
    // A B C A: 2 other places between. B again right after: none.
    const Reuse again = reuse_of_pages({{0, 4096}, {1, 4096}, {2, 8192}, {0, 4096}, {0, 4096}});
    CHECK(again.first_bytes == 4 * 4096);
    CHECK(again.again_bytes == 2 * 4096);
    CHECK(again.longest == 4096 + 8192);
    CHECK(again.again_by[0] == 4096);
    CHECK(again.within(1) == doctest::Approx(0.5));
    CHECK(again.within(16384) == doctest::Approx(1));
    CHECK(again.by_file.at(1) == doctest::Approx(0));
    // What is read twice in between counts once.
    const Reuse twice = reuse_of_pages({{0, 4096}, {1, 4096}, {1, 4096}, {1, 4096}, {0, 4096}});
    CHECK(twice.longest == 4096);
}

TEST_CASE("re-use distance: two passes over a set are its size apart, also where most places are left out") {
    std::vector<std::pair<int64_t, int64_t>> reads;
    constexpr int64_t kPages = 50'000;
    for (int pass = 0; pass < 2; ++pass) {
        for (int64_t page = 0; page < kPages; ++page) {
            reads.emplace_back(page, 4096);
        }
    }
    const Reuse whole = reuse_of_pages(reads);
    CHECK(whole.longest == doctest::Approx((kPages - 1) * 4096.0));
    CHECK(whole.again_bytes == kPages * 4096.0);
    const Reuse part = reuse_of_pages(reads, 5000);
    CHECK(part.longest == doctest::Approx(kPages * 4096.0).epsilon(0.1));
    CHECK(part.again_bytes == doctest::Approx(kPages * 4096.0).epsilon(0.1));
}

TEST_CASE("sample order: in order, shuffled, and in a window, whose size is found") {
    std::vector<uint32_t> order(2000);
    std::iota(order.begin(), order.end(), 0U);
    CHECK(order_of(by_one(order)).kind == SampleOrder::Kind::in_order);
    std::mt19937_64 random(7);
    std::vector<uint32_t> shuffled = order;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    CHECK(order_of(by_one(shuffled)).kind == SampleOrder::Kind::shuffled);
    for (const uint32_t window : {16U, 100U, 400U}) {
        const SampleOrder found = order_of(by_one(shuffled_in_window(2000, window, window)));
        CHECK(found.kind == SampleOrder::Kind::windowed);
        CHECK(found.window == doctest::Approx(window).epsilon(0.15));
    }
    CHECK(order_of(by_one({3, 1, 2})).kind == SampleOrder::Kind::too_few);
    CHECK(order_of({}).kind == SampleOrder::Kind::too_few);
}

TEST_CASE("sample order: workers that take batches in turn read in order, though all together do not") {
    std::vector<SampleRead> reads;
    constexpr uint32_t kBatch = 32;
    for (uint32_t pair = 0; pair < 30; ++pair) {
        for (uint32_t i = 0; i < kBatch; ++i) {
            reads.push_back({pair * 2 * kBatch + kBatch + i, 2});
            reads.push_back({pair * 2 * kBatch + i, 1});
        }
    }
    const SampleOrder found = order_of(reads);
    CHECK(found.kind == SampleOrder::Kind::in_order);
    CHECK(found.forward_share == 1);
}

TEST_CASE("names with numbers are in the order of the numbers") {
    CHECK(natural_less("img_2.jpg", "img_10.jpg"));
    CHECK_FALSE(natural_less("img_10.jpg", "img_2.jpg"));
    CHECK(natural_less("a/2", "a/02b"));
    CHECK(natural_less("a", "b"));
    CHECK(natural_less("a", "a1"));
    CHECK_FALSE(natural_less("a1", "a1"));
    CHECK(natural_less("x1", "x01") != natural_less("x01", "x1"));
}

TEST_CASE("bursts: what stands apart, and how often it comes") {
    std::vector<double> bytes(1000);
    for (const size_t at : {100U, 300U, 500U, 700U}) {
        bytes[at] = 50;
        bytes[at + 5] = 50;
    }
    bytes[900] = 1;  // a line of a log
    const Bursts found = find_bursts(bytes, 1e6);
    REQUIRE(found.bursts.size() == 4);
    CHECK(found.bursts[1].begin_ns == 300'000'000);
    CHECK(found.bursts[1].end_ns == 306'000'000);
    CHECK(found.bursts[1].bytes == 100);
    CHECK(found.period_ns == 200'000'000);
    CHECK(found.bytes == 401);
    CHECK(find_bursts(std::vector<double>(1000, 5.0), 1e6).bursts.empty());
    CHECK(find_bursts(std::vector<double>(1000), 1e6).bursts.empty());
    CHECK(find_bursts({}, 1e6).bursts.empty());
}

TEST_CASE("skew: equal shares, one that has everything, and one that has twice as much") {
    CHECK(skew_of({}).count == 0);
    const Skew equal = skew_of({5, 5, 5, 5});
    CHECK(equal.gini == doctest::Approx(0));
    CHECK(equal.most_over_mean() == 1);
    const Skew one = skew_of({0, 0, 7});
    CHECK(one.count == 1);
    CHECK(one.top_share == 1);
    const Skew twice = skew_of({1, 1, 1, 2});
    CHECK(twice.most_over_mean() == doctest::Approx(1.6));
    CHECK(twice.gini == doctest::Approx(0.15));
    CHECK(twice.top_share == doctest::Approx(0.4));
}

TEST_CASE("time grid: what lies across intervals is shared out") {
    const TimeGrid grid(1000, 2000, 10);
    CHECK(grid.width_ns() == 100);
    CHECK(grid.at(999) == 0);
    CHECK(grid.at(1100) == 1);
    CHECK(grid.at(5000) == 9);
    std::vector<double> sums(10);
    grid.spread(1050, 1320, [&](size_t at, double ns) { sums[at] += ns; });
    CHECK(sums[0] == 50);
    CHECK(sums[1] == 100);
    CHECK(sums[3] == 20);
    grid.spread(INT64_MIN, INT64_MAX, [&](size_t at, double ns) { sums[at] += ns; });
    CHECK(std::accumulate(sums.begin(), sums.end(), 0.0) == doctest::Approx(1270));
    CHECK(TimeGrid(0, 0, 5).width_ns() > 0);
    TimeGrid(INT64_MIN, INT64_MAX, 5).spread(0, 10, [](size_t at, double) { CHECK(at < 5); });
}

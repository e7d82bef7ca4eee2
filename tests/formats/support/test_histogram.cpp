// SPDX-License-Identifier: MIT
// Percentiles against sorted values.
#include "formats/support/histogram.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "formats/support/percentile.h"
#include "tests/support.h"

using namespace reprise;

TEST_CASE("percentiles are at most 0.8 % above the sorted values, over nine decades") {
    std::mt19937_64 random(11);
    std::vector<int64_t> values;
    Histogram histogram, left, right;
    for (int i = 0; i < 100000; ++i) {
        const auto value = static_cast<int64_t>(std::exp(std::uniform_real_distribution<double>(0, 21)(random)));
        values.push_back(value);
        histogram.add(value);
        (i % 3 ? left : right).add(value);
    }
    left.merge(right);
    std::sort(values.begin(), values.end());
    for (const double share : {0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
        const auto exact = static_cast<double>(percentile(values, share));
        INFO(share);
        const auto found = static_cast<double>(histogram.percentile(share));
        CHECK(found >= exact);
        CHECK(found <= exact * 1.008);
        CHECK(histogram.percentile(share) == left.percentile(share));
    }
    CHECK(histogram.min() == values.front());
    CHECK(histogram.max() == values.back());
    CHECK(histogram.count() == values.size());
}

TEST_CASE("a histogram takes nothing, zero, negative and the greatest value") {
    Histogram histogram;
    CHECK(histogram.percentile(0.5) == 0);
    CHECK(histogram.max() == 0);
    histogram.add(-5);
    CHECK(histogram.max() == 0);
    histogram.add(std::numeric_limits<int64_t>::max());
    CHECK(histogram.percentile(1) == std::numeric_limits<int64_t>::max());
    CHECK(histogram.max() == std::numeric_limits<int64_t>::max());
    Histogram small;
    for (int64_t value = 0; value < 256; ++value) {
        small.add(value);
    }
    for (int64_t value = 0; value < 256; ++value) {
        CHECK(small.percentile(static_cast<double>(value + 1) / 256) == value);
    }
}

TEST_CASE("a percentile is a value that occurred, and does not depend on the order of merging") {
    std::mt19937_64 random(3);
    for (int round = 0; round < 100; ++round) {
        std::vector<int64_t> values(1 + random() % 200);
        Histogram parts[3], forth, back;
        double sum = 0;
        for (int64_t& value : values) {
            value = static_cast<int64_t>(random() >> (1 + random() % 63));
            parts[random() % 3].add(value);
            sum += static_cast<double>(value);
        }
        for (int i = 0; i < 3; ++i) {
            forth.merge(parts[i]);
            back.merge(parts[2 - i]);
        }
        REQUIRE(forth.count() == values.size());
        CHECK(forth.sum() == doctest::Approx(sum));
        CHECK(forth.percentile(0) >= forth.min());
        CHECK(forth.percentile(1) == forth.max());
        int64_t last = 0;
        for (const double share : {0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
            const int64_t found = forth.percentile(share);
            CHECK(found == back.percentile(share));
            CHECK(std::find(values.begin(), values.end(), found) != values.end());
            CHECK(found >= last);
            last = found;
        }
    }
}

TEST_CASE("many of one value are told from the few beside them exactly") {
    Histogram histogram;
    histogram.add(1'000'003, 990);
    histogram.add(77'000'001, 9);
    histogram.add(5'000'000'000);
    CHECK(histogram.percentile(0.5) == 1'000'003);
    CHECK(histogram.percentile(0.99) == 1'000'003);
    CHECK(histogram.percentile(0.991) == 77'000'001);
    CHECK(histogram.percentile(0.999) == 77'000'001);
    CHECK(histogram.percentile(0.9995) == 5'000'000'000);
    CHECK(histogram.mean() == doctest::Approx((1'000'003.0 * 990 + 77'000'001.0 * 9 + 5e9) / 1000));
}

TEST_CASE("a histogram is the same after it was packed, and bytes that contradict themselves are refused") {
    Histogram counts;
    for (const int64_t value : {int64_t{0}, int64_t{5}, int64_t{300}, int64_t{301}, int64_t{1} << 40, INT64_MAX}) {
        counts.add(value, static_cast<uint64_t>(value % 7 + 1));
    }
    for (const Histogram& each : {Histogram{}, counts}) {
        Bytes bytes, again;
        each.pack(bytes);
        ByteReader in(bytes);
        const Histogram back = Histogram::unpack(in);
        CHECK(in.left() == 0);
        back.pack(again);
        CHECK(again == bytes);
        CHECK(back.sum() == each.sum());
        CHECK(back.min() == each.min());
        CHECK(back.percentile(0.5) == each.percentile(0.5));
        for (size_t size = 0; size < bytes.size(); ++size) {
            ByteReader cut(ByteView(bytes).first(size));
            CHECK_THROWS_AS(Histogram::unpack(cut), Corrupt);
        }
    }
    Bytes wrong;
    put_varint(wrong, 3);  // values
    put_fixed(wrong, 10.0);
    put_varint(wrong, 5);  // least
    put_varint(wrong, 1);  // bucket
    put_varint(wrong, 5);
    put_varint(wrong, 2);  // of them in it
    ByteReader in(wrong);
    CHECK_THROWS_AS(Histogram::unpack(in), Corrupt);
}

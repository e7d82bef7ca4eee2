// SPDX-License-Identifier: MIT
// The bytes of a file by where they come from, and the content that tells who wrote it.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "replay/content/content.h"
#include "replay/content/differences.h"
#include "replay/content/file_model.h"
#include "replay/content/written.h"

using namespace reprise;

namespace {

Source by(uint64_t op) { return {Source::Is::written, write_seed(1, op), 0, 1, op, 0}; }

}  // namespace

TEST_CASE("extents: any order of puts and cuts leaves what an array of bytes would hold") {
    constexpr uint64_t kSize = 200;
    std::mt19937_64 random(3);
    Extents extents;
    std::vector<uint64_t> plain(kSize);  // by byte: who wrote it; 0: nobody
    for (uint64_t op = 1; op < 2000; ++op) {
        const uint64_t from = random() % kSize, to = from + random() % (kSize - from + 1);
        if (random() % 10 == 0) {
            extents.cut(from);
            std::fill(plain.begin() + static_cast<std::ptrdiff_t>(from), plain.end(), 0);
        } else {
            extents.put(from, to, by(op));
            std::fill(plain.begin() + static_cast<std::ptrdiff_t>(from),
                      plain.begin() + static_cast<std::ptrdiff_t>(to), op);
        }
        const uint64_t begin = random() % kSize, end = begin + 1 + random() % (kSize - begin);
        uint64_t at = begin;
        for (const Extent& one : extents.of(begin, end)) {
            REQUIRE(one.from == at);
            REQUIRE(one.to > one.from);
            for (; at < one.to; ++at) {
                REQUIRE(one.source.op == plain[at]);
            }
        }
        REQUIRE(at == end);
    }
    CHECK(extents.of(5, 5).empty());
}

TEST_CASE("content: any piece is a piece of the whole, and no two writes have the same") {
    std::vector<std::byte> whole(3 * kContentUnit), piece;
    for (const Source::Is is : {Source::Is::prepared, Source::Is::written}) {
        const Source source{is, 17, 0, 0, 0, 0};
        fill_from(source, 0, whole);
        for (const auto& [from, size] : {std::pair<uint64_t, size_t>{0, 10},
                                         {1, 7},
                                         {kContentUnit - 3, 6},
                                         {kContentUnit + 5, kContentUnit},
                                         {70'001, 100}}) {
            piece.assign(size, std::byte{0});
            fill_from(source, from, piece);
            CHECK(std::memcmp(piece.data(), whole.data() + from, size) == 0);
            Source moved = source;
            moved.shift = 1;
            fill_from(moved, from - 1, piece);
            CHECK(std::memcmp(piece.data(), whole.data() + from, size) == 0);
        }
    }
    std::vector<std::byte> one(64), other(64);
    fill_written(write_seed(1, 2), 0, one);
    fill_written(write_seed(2, 1), 0, other);
    CHECK(one != other);
    fill_written(write_seed(1, 3), 0, other);
    CHECK(one != other);
    fill_written(write_seed(1, 2), 64, other);
    CHECK(one != other);
}

TEST_CASE("differences: runs, with what is right by chance; the first ones of many") {
    const auto runs = [](std::string got, std::string want, size_t most) {
        std::string out;
        each_difference(
            std::as_bytes(std::span(got)), std::as_bytes(std::span(want)), most,
            [&](size_t begin, size_t end) { out += std::to_string(begin) + "-" + std::to_string(end) + " "; });
        return out;
    };
    CHECK(runs("abcdef", "abcdef", 9).empty());
    CHECK(runs("Xbcdef", "abcdef", 9) == "0-1 ");
    CHECK(runs("abcdeX", "abcdef", 9) == "5-6 ");
    CHECK(runs("XbcdXf", "abcdef", 9) == "0-5 ");
    CHECK(runs("XbcdeXghij", "abcdefghij", 9) == "0-1 5-6 ");
    CHECK(runs("XbcdeXghij", "abcdefghij", 1) == "0-1 ");
    CHECK(runs("", "", 9).empty());
}

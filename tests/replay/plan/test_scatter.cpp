// SPDX-License-Identifier: MIT
// How many files lay between those of a log, by the inode numbers that they had.
#include "replay/plan/scatter.h"

#include <doctest/doctest.h>

#include <numeric>
#include <random>

namespace reprise::test {
namespace {

using Files = std::vector<RecordedInode>;
using Counts = std::vector<uint64_t>;

/// Files of one directory; the n-th one's entry is n.
Files files_at(const Counts& inodes, uint32_t directory = 7, uint64_t device = 1) {
    Files out;
    for (const uint64_t inode : inodes) {
        out.push_back({device, inode, directory, static_cast<uint32_t>(out.size())});
    }
    return out;
}

std::map<uint32_t, InodeScatter> scatter_on(std::string_view type, Files files) {
    return find_scatter(std::move(files), [&](uint64_t) { return type; });
}

InodeScatter one_on(std::string_view type, const Counts& inodes) { return scatter_on(type, files_at(inodes)).at(7); }

Counts every(uint64_t first, uint64_t step, size_t count) {
    Counts out;
    for (size_t i = 0; i < count; ++i) {
        out.push_back(first + i * step);
    }
    return out;
}

}  // namespace

TEST_CASE("scatter: gaps are files, in the order of the inodes, and as many before the first and after the last") {
    const InodeScatter scatter = one_on("ext4", {1'050, 1'000, 1'010, 1'020, 1'030, 1'031, 1'040, 1'060});
    CHECK(scatter.entries == std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 0, 7});
    CHECK(scatter.others == Counts{8, 9, 9, 9, 0, 8, 9, 9, 8});
    CHECK(scatter.all_others == 69);
    CHECK(scatter.dense);
    CHECK(scatter.tells_count());
}

TEST_CASE("scatter: files side by side have none between, and a few files tell nothing of their number") {
    const InodeScatter all = one_on("ext4", every(12, 1, 100));
    CHECK(all.all_others == 0);
    CHECK(all.dense);
    CHECK_FALSE(all.tells_count());
    CHECK_FALSE(one_on("ext4", every(12, 10, 7)).tells_count());
    CHECK(one_on("ext4", every(12, 10, 8)).tells_count());
}

TEST_CASE("scatter: numbers that lie far apart mean nothing") {
    for (const std::string_view type : {"ext4", "xfs", "fuse", ""}) {
        CAPTURE(type);
        std::mt19937_64 random(1);
        Counts inodes;
        for (int i = 0; i < 500; ++i) {
            inodes.push_back(random() | 1);
        }
        const InodeScatter scatter = one_on(type, inodes);
        CHECK(scatter.all_others <= 500 * 2 * 64);
        CHECK(scatter.tells_count() == (type == "xfs"));  // each file has its own chunk there
    }
    CHECK_FALSE(one_on("ext4", every(12, 1'000, 100)).dense);  // 1000 for each file
    CHECK(one_on("ext4", every(12, InodeScatter::kMostGap + 1, 100)).all_others == 0);
    CHECK(one_on("", {1, UINT64_MAX, 1, 2, 3, 5, 9, 70, 90, 95}).dense);
}

TEST_CASE("scatter: a group of files that lies elsewhere is a group of its own") {
    Counts inodes = every(100, 10, 10);
    const Counts more = every(1'000'000, 10, 10);
    inodes.insert(inodes.end(), more.begin(), more.end());
    const InodeScatter scatter = one_on("btrfs", inodes);
    CHECK(scatter.others[5] == 9);
    CHECK(scatter.others[10] == 18);  // half after the one, half before the other
    CHECK(scatter.all_others == 18 * 9 + 18 + 2 * 9);
}

TEST_CASE("scatter: what lies between files of two directories is half the one's and half the other's") {
    Files files = files_at(every(1'000, 10, 10), 1);
    const Files after = files_at(every(1'095, 10, 10), 2);  // 4 between the last and the first
    files.insert(files.end(), after.begin(), after.end());
    const auto apart = scatter_on("ext4", files);
    CHECK(apart.at(1).others.back() == 2);
    CHECK(apart.at(2).others.front() == 2);
    CHECK(apart.at(2).others.back() == 9);
    // Made in turn: each has half of all.
    files = files_at(every(1'000, 20, 50), 1);
    const Files turns = files_at(every(1'010, 20, 50), 2);
    files.insert(files.end(), turns.begin(), turns.end());
    const auto mixed = scatter_on("ext4", files);
    CHECK(mixed.at(1).others[5] == 8);
    CHECK(mixed.at(2).others[5] == 8);
    CHECK(mixed.at(1).tells_count());
    // Made in turn, all named: none has others.
    for (const std::string_view type : {"ext4", "xfs", ""}) {
        CAPTURE(type);
        files.clear();
        for (uint32_t directory = 0; directory < 10; ++directory) {
            const Files in_turn = files_at(every(13'221'900 + directory, 10, 200), directory);
            files.insert(files.end(), in_turn.begin(), in_turn.end());
        }
        for (const auto& [directory, scatter] : scatter_on(type, files)) {
            CHECK(scatter.all_others == 0);
        }
    }
}

TEST_CASE("scatter: further names of an inode lie nowhere") {
    Counts inodes = every(100, 4, 10);
    inodes.push_back(104);
    const InodeScatter scatter = one_on("ext4", inodes);
    CHECK(scatter.entries.size() == 10);
    CHECK(scatter.others.size() == 11);
}

TEST_CASE("scatter: chunks of 64 inodes lie apart, and as many as files show") {
    // 20,000 files in 313 chunks with data in between, of which 500 are named.
    std::mt19937 random(3);
    Counts all(20'000);
    for (uint64_t i = 0; i < all.size(); ++i) {
        all[i] = 128 + i / 64 * 1'088 + i % 64;
    }
    std::shuffle(all.begin(), all.end(), random);
    all.resize(500);
    for (const std::string_view type : {"xfs", "nfs"}) {
        CAPTURE(type);
        const InodeScatter scatter = one_on(type, all);
        CHECK(scatter.tells_count());
        CHECK(scatter.all_others > 17'000);
        CHECK(scatter.all_others < 22'000);
    }
    // The first ones of a directory.
    CHECK(one_on("xfs", every(128, 1, 300)).all_others == 0);
    // Two whole chunks, wherever they lie.
    Counts two = every(128, 1, 64);
    const Counts far = every(1 << 20, 1, 64);
    two.insert(two.end(), far.begin(), far.end());
    CHECK(one_on("xfs", two).all_others == 0);
}

TEST_CASE("scatter: a known number of others is spread by the proportions") {
    InodeScatter scatter = one_on("ext4", {100, 101, 111, 112, 122});
    CHECK(scatter.others == Counts{5, 0, 9, 0, 9, 5});
    const Counts spread = scatter.spread(280);
    CHECK(std::accumulate(spread.begin(), spread.end(), uint64_t{0}) == 280);
    CHECK(spread == Counts{50, 0, 90, 0, 90, 50});
    CHECK(scatter.spread(0) == Counts(6, 0));
    CHECK(one_on("ext4", {100}).spread(9) == Counts{4, 5});
    CHECK(one_on("ext4", {100, 101}).spread(9) == Counts{0, 0, 9});
}

}  // namespace reprise::test

// SPDX-License-Identifier: MIT
// Which mapping an address belongs to, after mappings were made, cut, replaced and moved.
#include "formats/assemble/address_map.h"

#include <doctest/doctest.h>

#include <string>

namespace reprise::test {
namespace {

// "map@offset+size" of each piece.
std::string text(const std::vector<AddressMap::Piece>& pieces) {
    std::string out;
    for (const AddressMap::Piece& piece : pieces) {
        out += std::to_string(piece.map) + "@" + std::to_string(piece.offset) + "+" + std::to_string(piece.size) + " ";
    }
    return out;
}

constexpr uint64_t kPage = 4096, kAll = UINT64_MAX;

}  // namespace

TEST_CASE("mappings are of whole pages, and a new one replaces what it covers") {
    AddressMap map;
    map.add(10 * kPage, 1, 1);
    map.add(20 * kPage, 0, 2);
    map.add(30 * kPage, 2 * kPage + 1, 3);
    CHECK(text(map.find(0, kAll)) == "1@0+4096 3@0+12288 ");
    CHECK(text(map.find(10 * kPage + 4095, 1)) == "1@4095+1 ");
    CHECK(text(map.find(11 * kPage, 1)) == "");
    CHECK(text(map.find(31 * kPage, 1)) == "3@4096+4096 ");
    CHECK(text(map.find(29 * kPage, kPage)) == "");
    CHECK(text(map.find(29 * kPage, kPage + 1)) == "3@0+4096 ");
    CHECK(text(map.find(31 * kPage, 0)) == "");
    map.add(31 * kPage, kPage, 4);
    CHECK(text(map.find(0, kAll)) == "1@0+4096 3@0+4096 4@0+4096 3@8192+4096 ");
    map.add(5 * kPage, 100 * kPage, 5);
    CHECK(text(map.find(0, kAll)) == "5@0+409600 ");
}

TEST_CASE("what is removed is given back in the order of addresses, and cuts what it lies in") {
    AddressMap map;
    map.add(10 * kPage, 4 * kPage, 1);
    map.add(14 * kPage, 4 * kPage, 2);
    map.add(20 * kPage, kPage, 3);
    CHECK(text(map.remove(0, 10 * kPage)) == "");
    CHECK(text(map.remove(18 * kPage, 2 * kPage)) == "");
    CHECK(text(map.remove(12 * kPage, 3 * kPage)) == "1@8192+8192 2@0+4096 ");
    CHECK(text(map.find(0, kAll)) == "1@0+8192 2@4096+12288 3@0+4096 ");
    CHECK(text(map.remove(10 * kPage, 1)) == "1@0+4096 ");
    CHECK(text(map.remove(16 * kPage, kPage)) == "2@8192+4096 ");
    CHECK(text(map.find(0, kAll)) == "1@4096+4096 2@4096+4096 2@12288+4096 3@0+4096 ");
    CHECK(text(map.remove(0, kAll)) == "1@4096+4096 2@4096+4096 2@12288+4096 3@0+4096 ");
    CHECK(text(map.find(0, kAll)) == "");
}

TEST_CASE("a mapping that moves keeps its offsets") {
    AddressMap map;
    AddressMap::Piece moved;
    map.add(10 * kPage, 4 * kPage, 1);
    CHECK_FALSE(map.move(20 * kPage, kPage, 30 * kPage, kPage, false, moved));
    CHECK(map.move(12 * kPage, 2 * kPage, 30 * kPage, 3 * kPage, false, moved));
    CHECK(text({moved}) == "1@8192+8192 ");
    CHECK(text(map.find(0, kAll)) == "1@0+8192 1@8192+12288 ");
    CHECK(map.move(30 * kPage, 3 * kPage, 50 * kPage, 3 * kPage, true, moved));  // stays
    CHECK(text(map.find(0, kAll)) == "1@0+8192 1@8192+12288 1@8192+12288 ");
    CHECK(map.move(11 * kPage, 0, 70 * kPage, kPage, false, moved));  // a second mapping of the same pages
    CHECK(text({moved}) == "1@4096+4096 ");
    CHECK(text(map.find(0, 20 * kPage)) == "1@0+8192 ");
    CHECK(text(map.find(70 * kPage, kAll)) == "1@4096+4096 ");
    CHECK(map.move(10 * kPage, 2 * kPage, 10 * kPage, kPage, false, moved));  // shrinks where it is
    CHECK(text(map.find(0, 20 * kPage)) == "1@0+4096 ");
}

TEST_CASE("the end of the address space is no border to step over") {
    AddressMap map;
    const uint64_t last = UINT64_MAX - (kPage - 1);
    map.add(last - kPage, 5 * kPage, 1);
    CHECK(text(map.find(last, kAll)) == "1@4096+4095 ");
    CHECK(text(map.find(last - kPage, kPage)) == "1@0+4096 ");
    map.add(last, kPage, 2);
    CHECK(text(map.find(0, kAll)) == "1@0+4096 2@0+4095 ");
    CHECK(text(map.remove(last + 1, 1)) == "2@1+4094 ");
}

}  // namespace reprise::test

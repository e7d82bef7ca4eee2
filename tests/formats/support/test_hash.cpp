// SPDX-License-Identifier: MIT
// The hash is XXH64 of the bytes in a row, the same on every machine.
#include "formats/support/hash.h"

#include <string>

#include "tests/support.h"

using namespace reprise;

namespace {

uint64_t hash_of(std::initializer_list<std::string_view> texts) {
    Hash hash;
    for (const std::string_view text : texts) {
        hash.text(text);
    }
    return hash.value();
}

}  // namespace

TEST_CASE("a hash is that of XXH64") {
    CHECK(Hash().value() == 0xef46db3751d8e999ULL);  // of no bytes, seed 0
    Hash one;
    one.number(7);
    const uint64_t bytes = 7;
    CHECK(one.value() == XXH64(&bytes, sizeof bytes, 0));
    const std::string row("\x02\0\0\0\0\0\0\0hi", 10);
    CHECK(hash_of({"hi"}) == XXH64(row.data(), row.size(), 0));
}

TEST_CASE("texts do not run into each other") {
    CHECK(hash_of({"ab", "c"}) != hash_of({"a", "bc"}));
    CHECK(hash_of({"", "a"}) != hash_of({"a", ""}));
    CHECK(hash_of({}) != hash_of({""}));
}

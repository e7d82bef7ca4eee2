// SPDX-License-Identifier: MIT
// Many texts: where they stay, and finding one.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "formats/support/text_index.h"
#include "formats/support/text_store.h"

using reprise::TextIndex;
using reprise::TextStore;

TEST_CASE("texts: stay where they are, each with its NUL") {
    TextStore store;
    std::vector<std::string_view> kept;
    for (size_t i = 0; i < 100'000; ++i) {
        kept.push_back(store.keep(std::string(i % 300, 'a' + static_cast<char>(i % 26))));
    }
    const std::string_view large = store.keep(std::string(1 << 20, 'z'));
    CHECK(large.size() == 1 << 20);
    for (size_t i = 0; i < kept.size(); ++i) {
        REQUIRE(kept[i] == std::string(i % 300, 'a' + static_cast<char>(i % 26)));
        REQUIRE(std::strlen(kept[i].data()) == kept[i].size());
    }
}

TEST_CASE("text index: the first row of each text") {
    std::vector<std::string> rows;
    const auto text_of = [&](uint32_t row) -> std::string_view { return rows[row]; };
    TextIndex index(text_of);
    CHECK(index.find("a") == decltype(index)::kNone);
    for (uint32_t i = 0; i < 10'000; ++i) {
        const std::string text = std::to_string(i * 7 % 5000);
        const auto fresh = static_cast<uint32_t>(rows.size());
        if (index.find_or_add(text, fresh) == fresh) {
            rows.push_back(text);
        }
    }
    REQUIRE(rows.size() == 5000);
    for (uint32_t row = 0; row < rows.size(); ++row) {
        REQUIRE(index.find(rows[row]) == row);
    }
    CHECK(index.find("5000") == decltype(index)::kNone);
}

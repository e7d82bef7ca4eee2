// SPDX-License-Identifier: MIT
// Rows of one inode.
#include "formats/oplog/file_names.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

namespace reprise::test {

TEST_CASE("file names: further ones of an inode, after its first, in the order of their rows") {
    Tables tables;
    const auto add = [&](uint64_t device, uint64_t inode) {
        tables.files.push_back({.device = device, .inode = inode});
    };
    add(1, 9);  // 1
    add(1, 0);  // 2: unknown
    add(2, 9);  // 3: of another device
    add(1, 5);  // 4
    add(1, 9);  // 5
    add(1, 0);  // 6
    add(1, 5);  // 7
    add(1, 9);  // 8
    using Names = std::vector<std::pair<FileId, FileId>>;
    Names found;
    const auto note = [&](FileId first, FileId further) { found.emplace_back(first, further); };
    each_further_name(
        tables, [](FileId) { return true; }, note);
    CHECK(found == Names{{1, 5}, {4, 7}, {1, 8}});
    found.clear();
    each_further_name(
        tables, [](FileId file) { return file != 1 && file != 7; }, note);
    CHECK(found == Names{{5, 8}});
}

TEST_CASE("strings of the tables are followed by a NUL") {
    StringTable strings;
    CHECK(*strings[strings.intern("abc")].end() == '\0');
    CHECK(*strings[0].data() == '\0');
    CHECK(*strings[strings.append("")].data() == '\0');
    CHECK(*strings[77].data() == '\0');
}

}  // namespace reprise::test

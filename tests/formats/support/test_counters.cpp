// SPDX-License-Identifier: MIT
// The table of counters: its rules, that every row is used, and counting.
#include "formats/support/counters.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr std::string_view kIds[] = {
#define COUNTER(id, severity, meaning) #id,
#define COUNTER_FAMILY(id, prefix, severity, meaning) #id,
#include "formats/support/counters.def"
#undef COUNTER
#undef COUNTER_FAMILY
};

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

TEST_CASE("counters have names and meanings of one form") {
    std::set<std::string_view> names;
    for (const CounterInfo& row : all_counters()) {
        CAPTURE(row.name);
        CHECK(names.insert(row.name).second);
        std::string_view name = row.name;
        if (row.family) {
            REQUIRE((name.ends_with('.') || name.ends_with('_')));
            name.remove_suffix(1);
        }
        REQUIRE(!name.empty());
        CHECK(is_letter(name.front()));
        CHECK(name.back() != '_');
        CHECK(name.find("__") == std::string_view::npos);
        CHECK(std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || c == '_'; }));

        const std::string_view meaning = row.meaning;
        REQUIRE(!meaning.empty());
        // A word of the field may come first: C, OS, io_uring.
        const bool term = meaning.starts_with("C ") || meaning.starts_with("OS ") || meaning.starts_with("MPI-IO ");
        CHECK((is_letter(meaning.front()) || meaning.starts_with("{}") || term));
        CHECK(meaning.back() != '.');
        CHECK(meaning.size() <= 110);
        CHECK(meaning.find("  ") == std::string_view::npos);
        const size_t detail = meaning.find("{}");
        CHECK((detail == std::string_view::npos || meaning.find("{}", detail + 1) == std::string_view::npos));
    }
}

TEST_CASE("every counter is counted somewhere") {
    namespace fs = std::filesystem;
    std::string code;
    for (const char* room : {"formats", "transform", "capture", "calibrate", "replay", "analyze", "cli"}) {
        for (const auto& entry : fs::recursive_directory_iterator(source_dir() / room)) {
            const fs::path& path = entry.path();
            if (path.extension() == ".cpp" || path.extension() == ".h") {
                code += read_file(path);
            }
        }
    }
    // Longer names may begin with a shorter one.
    std::set<std::string, std::less<>> used;
    constexpr std::string_view kBefore = "Count::";
    for (size_t at = code.find(kBefore); at != std::string::npos; at = code.find(kBefore, at)) {
        const bool whole = at == 0 || !is_letter(code[at - 1]);  // not another type's
        at += kBefore.size();
        if (!whole) {
            continue;
        }
        const size_t end = code.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at);
        used.insert(code.substr(at, end - at));
    }
    for (const std::string_view id : kIds) {
        CAPTURE(id);
        CHECK(used.contains(id));
    }
    CHECK(used.size() == std::size(kIds));
}

TEST_CASE("counting adds by name and keeps the first meaning") {
    std::vector<Counter> counters;
    count(counters, Count::calls_cut, 0);
    CHECK(counters.empty());
    count(counters, Count::calls_cut);
    count(counters, Count::calls_cut, 4);
    count(counters, Count::malformed_lines, 2, "a.log:7: no time");
    count(counters, Count::malformed_lines, 1, "b.log:9: no time");
    count(counters, Count::dropped, 3, "ptrace");
    count(counters, Count::dropped, 5, "mount");
    count(counters, Count::dropped, 1, "ptrace");
    REQUIRE(counters.size() == 4);
    CHECK(counters[0].name == "calls_cut");
    CHECK(counters[0].value == 5);
    CHECK(counters[0].severity == info(Count::calls_cut).severity);
    CHECK(counters[0].meaning == info(Count::calls_cut).meaning);
    CHECK(counters[1].value == 3);
    CHECK(counters[1].severity == Severity::loss);
    CHECK(counters[1].meaning.find("a.log:7: no time") != std::string::npos);
    CHECK(counters[1].meaning.find("{}") == std::string::npos);
    CHECK(counters[2].name == "dropped_ptrace");
    CHECK(counters[2].value == 4);
    CHECK(counters[3].name == "dropped_mount");
    CHECK(counters[3].meaning.find("mount") != std::string::npos);
}

TEST_CASE("counters of other logs are kept as they are") {
    std::vector<Counter> counters;
    count(counters, Counter{"of_another_version", Severity::loss, 0, "what this version does not know"});
    REQUIRE(counters.size() == 1);
    count(counters, Counter{"of_another_version", Severity::note, 8, "another meaning"});
    REQUIRE(counters.size() == 1);
    CHECK(counters[0] == Counter{"of_another_version", Severity::loss, 8, "what this version does not know"});
}

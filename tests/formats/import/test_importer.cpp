// SPDX-License-Identifier: MIT
// Choosing an importer by content.
#include "formats/import/importer.h"

#include <set>

#include "formats/support/error.h"
#include "tests/formats/import/import_support.h"

using namespace reprise;
using namespace reprise::test;

namespace {
constexpr std::string_view kFio = "fio version 3 iolog\n1 /d/a add\n2 /d/a open\n3 /d/a read 0 1\n";
constexpr std::string_view kDftracer =
    R"({"id":1,"name":"access","cat":"POSIX","pid":1,"tid":1,"ts":1,"dur":1,"ph":"X","args":{"fname":"/x"}})";
}  // namespace

TEST_CASE("formats are told apart by content, each by its own importer only") {
    std::set<std::string_view> names;
    for (const Importer* importer : all_importers()) {
        CHECK(names.insert(importer->name).second);
        CHECK_FALSE(importer->sniff(""));
        CHECK_FALSE(importer->sniff("hello world\n"));
        CHECK_FALSE(importer->sniff(R"({"traceEvents":[{"ph":"X","name":"a","pid":1,"cat":"b"}]})"
                                    "\n"));
        CHECK_FALSE(importer->sniff("{\n  \"schemaVersion\": 1,\n"));
        CHECK(importer->sniff(kFio) == (importer->name == "fio"));
        CHECK(importer->sniff(kDftracer) == (importer->name == "dftracer"));
        CHECK(importer->sniff("[\n  " + std::string(kDftracer)) == (importer->name == "dftracer"));
    }
    CHECK(names.contains("dftracer"));
    CHECK(names.contains("fio"));
}

TEST_CASE("seeds of a fuzzer are of its importer only, and every importer has a place in the docs") {
    namespace fs = std::filesystem;
    const std::string page = read_file(source_dir() / "docs/importers.md");
    for (const Importer* importer : all_importers()) {
        const std::string name(importer->name);
        CAPTURE(name);
        CHECK(page.find("`" + name + "`") != std::string::npos);
        size_t own = 0;
        const fs::path seeds = source_dir() / "tests/fuzz/corpus" / name;
        REQUIRE(fs::is_directory(seeds));
        for (const auto& seed : fs::directory_iterator(seeds)) {
            const std::string head = read_head(seed.path());
            own += importer->sniff(head) ? 1 : 0;
            for (const Importer* other : all_importers()) {
                CHECK_FALSE((other != importer && importer->sniff(head) && other->sniff(head)));
            }
        }
        // Seeds of a fuzzer that an importer has to itself may be more than an input.
        CHECK((own > 0 || fs::exists(source_dir() / ("tests/fuzz/fuzz_" + name + ".cpp"))));
    }
}

TEST_CASE("inputs of two formats, unknown formats and unknown names are refused with what is known") {
    TempDir dir;
    write_file(dir / "a", kFio);
    write_file(dir / "b", kDftracer);
    const std::vector<std::filesystem::path> both{dir / "a", dir / "b"};
    CHECK_THROWS_WITH_AS(find_importer(both, {}), doctest::Contains("is dftracer, but"), Error);
    CHECK_THROWS_WITH_AS(find_importer(both, "nonsense"), doctest::Contains("dftracer: "), Error);
    CHECK(find_importer(both, "fio").name == "fio");
    write_file(dir / "c", "what is this\n");
    const std::vector<std::filesystem::path> unknown{dir / "c"};
    CHECK_THROWS_WITH_AS(find_importer(unknown, {}), doctest::Contains("what is this"), Error);
}

TEST_CASE("of a directory the files in a known format are taken, in order") {
    TempDir dir;
    write_file(dir / "b.log", kFio);
    write_file(dir / "a.log", kFio);
    write_file(dir / "notes.txt", "nothing\n");
    const std::vector<std::filesystem::path> input{dir.path()};
    CHECK(importable_files(input) == std::vector<std::filesystem::path>{dir / "a.log", dir / "b.log"});
    TempDir empty;
    const std::vector<std::filesystem::path> nothing{empty.path()}, missing{empty / "x"}, device{"/dev/null"};
    CHECK_THROWS_WITH_AS(importable_files(nothing), doctest::Contains("holds no file"), Error);
    CHECK_THROWS_WITH_AS(importable_files(missing), doctest::Contains("cannot open"), Error);
    CHECK_THROWS_WITH_AS(importable_files(device), doctest::Contains("neither a file nor a directory"), Error);
}

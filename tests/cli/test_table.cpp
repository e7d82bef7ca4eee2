// SPDX-License-Identifier: MIT
// Tables on the screen and as JSON.
#include <sstream>

#include "cli/table.h"
#include "formats/support/error.h"
#include "tests/support.h"

namespace reprise::cli {

TEST_CASE("a table aligns its columns and says the same as JSON") {
    Table table({{"op", "op"}, {"calls", "calls", true}, {"bytes", "bytes", true}, {"note", ""}});
    CHECK(table.empty());
    table.row({"read", count_cell(1234567), bytes_cell(65536), "ok"});
    table.row({"é", count_cell(1), bytes_cell(0), ""});
    std::ostringstream out;
    table.print(out, 2);
    CHECK(out.str() ==
          "  op        calls     bytes  note\n"
          "  read  1,234,567  64.0 KiB  ok\n"
          "  é             1       0 B\n");
    CHECK(table.json().dump() == R"([{"op":"read","calls":1234567,"bytes":65536},{"op":"é","calls":1,"bytes":0}])");
    CHECK_THROWS_AS(table.row({"short"}), std::logic_error);
}

TEST_CASE("cells that are not text do not break the screen or the JSON") {
    CHECK(printable("a\nb\\\x1b[0m") == "a\\nb\\\\\\x1b[0m");
    CHECK(printable("ok \xc3\xa9 \xff \xc3") == "ok \xc3\xa9 \\xff \\xc3");
    CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
    CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");           // an overlong slash
    CHECK(printable("\xf0\x9f\x98\x80") == "\xf0\x9f\x98\x80");
    CHECK(display_width("\xf0\x9f\x98\x80x") == 2);
    Table table({Column{"path", "path"}});
    table.row({"bad \xff\nname"});
    std::ostringstream out;
    table.print(out);
    CHECK(out.str() == "path\nbad \\xff\\nname\n");
    std::ostringstream json;
    CHECK_NOTHROW(print_json(json, table.json()));
    CHECK(number_cell(0.5, 3).text == "0.500");
    CHECK(number_cell(1.0 / 0.0, 3).value.is_null());
}

TEST_CASE("text of the last column is broken at blanks where a width is given") {
    Table table({{"a", "a", true}, {"meaning", "meaning"}});
    table.row({"12", "one two three four five six seven"});
    table.row({"3", std::string(40, 'x')});
    std::ostringstream out;
    table.print(out, 2, 28);
    CHECK(out.str() ==
          "   a  meaning\n"
          "  12  one two three four\n"
          "      five six seven\n"
          "   3  " +
              std::string(40, 'x') + "\n");
}

TEST_CASE("JSON files are written whole or not at all") {
    const test::TempDir dir;
    write_json(dir / "x.json", Json{{"a", 1}});
    CHECK(test::read_file(dir / "x.json") == "{\n  \"a\": 1\n}\n");
    CHECK_FALSE(std::filesystem::exists(dir / "x.json.partial"));
    try {
        write_json(dir / "no/such/x.json", Json{});
        FAIL("expected an error");
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::machine);
        CHECK(std::string(error.what()).find("No such file") != std::string::npos);
    }
}

}  // namespace reprise::cli

// SPDX-License-Identifier: MIT
// CSV read back by a parser of RFC 4180, and a golden file.
#include "formats/export/exporter.h"
#include "formats/oplog/op_fields.h"
#include "tests/samples.h"
#include "tests/support.h"

using namespace reprise;

namespace {

using Record = std::vector<std::string>;

// Strict: CRLF ends a record, quotes only around whole fields and doubled inside.
std::vector<Record> parse_csv(const std::string& text) {
    std::vector<Record> records;
    Record record;
    std::string field;
    for (size_t i = 0; i < text.size();) {
        if (text[i] == '"') {
            for (++i;; ++i) {
                REQUIRE(i < text.size());
                if (text[i] == '"' && (i + 1 >= text.size() || text[i + 1] != '"')) {
                    break;
                }
                if (text[i] == '"') {
                    ++i;
                }
                field += text[i];
            }
            ++i;
        } else {
            while (i < text.size() && text[i] != ',' && text[i] != '\r') {
                REQUIRE(text[i] != '"');
                REQUIRE(text[i] != '\n');
                field += text[i++];
            }
        }
        record.push_back(std::move(field));
        field.clear();
        REQUIRE(i < text.size());
        if (text[i] == ',') {
            ++i;
            continue;
        }
        REQUIRE(text.substr(i, 2) == "\r\n");
        i += 2;
        records.push_back(std::move(record));
        record.clear();
    }
    return records;
}

std::string export_csv(const std::filesystem::path& folder, const std::filesystem::path& log_path,
                       const ExportOptions& options = {}) {
    const LogReader log(log_path);
    find_exporter("csv").write(log, folder / "out.csv", options);
    return test::read_file(folder / "out.csv");
}

}  // namespace

TEST_CASE("the CSV of the sample is the golden one") {
    const test::TempDir dir;
    test::write_sample(dir / "a.oplog");
    const std::string text = export_csv(dir.path(), dir / "a.oplog");
    const std::filesystem::path golden = test::source_dir() / "tests/golden/sample.csv";
    if (std::getenv("REPRISE_UPDATE_GOLDEN")) {
        test::write_file(golden, text);
    }
    CHECK(text == test::read_file(golden));
}

TEST_CASE("every field of every op is in its column; the others are empty") {
    const test::TempDir dir;
    test::write_all_ops(dir / "a.oplog");
    const std::vector<Record> records = parse_csv(export_csv(dir.path(), dir / "a.oplog"));
    const LogReader log(dir / "a.oplog");
    REQUIRE(records.size() == all_ops().size() + 1);
    const Record& names = records[0];
    const auto column = [&](std::string_view name) {
        for (size_t i = 0; i < names.size(); ++i) {
            if (names[i] == name) {
                return i;
            }
        }
        FAIL("no column ", name);
        return size_t{0};
    };
    log.for_each(1, [&](const Op& op, uint64_t number) {
        const Record& record = records[number + 1];
        REQUIRE(record.size() == names.size());
        CHECK(record[column("kind")] == info(op.kind).name);
        CHECK(record[column("begin_ns")] == std::to_string(op.begin));
        for (const FieldInfo& field : all_fields()) {
            const std::string& value = record[column(field.name)];
            INFO(info(op.kind).name, " ", field.name);
            if (!info(op.kind).has(field.field)) {
                CHECK(value.empty());
            } else if (field.field == Field::text) {
                CHECK(value == "a text\\n\\x01\"\\\\");
            } else if (field.field == Field::list) {
                CHECK(value == "11 22 33");
            } else {
                CHECK(value == std::to_string(field_value(op, field.field)));
            }
        }
    });
}

TEST_CASE("the CSV leaves out what the filter leaves out, and other tasks") {
    const test::TempDir dir;
    test::write_sample(dir / "a.oplog");
    ExportOptions options;
    options.filter = OpFilter();
    options.tasks = {2};
    const std::vector<Record> records = parse_csv(export_csv(dir.path(), dir / "a.oplog", options));
    CHECK(records.size() == 1 + 15 - 5);
}

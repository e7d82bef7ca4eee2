// SPDX-License-Identifier: MIT
// The dump says every field of every op of the table; golden files hold it still.
#include "formats/export/dump.h"

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "formats/oplog/kernel_names.h"
#include "formats/oplog/op_fields.h"
#include "formats/oplog/time_order.h"
#include "tests/samples.h"
#include "tests/support.h"

using namespace reprise;

namespace {

std::string dump_all(const LogReader& log) {
    std::string out = "reprise dump 2\n";
    dump_tables(log, [&](const std::string& line) { out += line + '\n'; });
    for_each_between(log, {}, {}, [&](TaskId task, const Op& op, uint64_t number) {
        append_dump(out, log.tables(), task, op, number);
    });
    return out;
}

void check_golden(const std::string& text, const std::string& name) {
    const std::filesystem::path path = test::source_dir() / "tests/golden" / name;
    if (std::getenv("REPRISE_UPDATE_GOLDEN")) {
        test::write_file(path, text);
    }
    INFO("golden file ", path.string(), "; REPRISE_UPDATE_GOLDEN=1 rewrites it");
    CHECK(text == test::read_file(path));
}

}  // namespace

TEST_CASE("the dump of the sample is the golden one") {
    const test::TempDir dir;
    test::write_sample(dir / "a.oplog");
    check_golden(dump_all(LogReader(dir / "a.oplog")), "sample.dump");
}

TEST_CASE("the dump of every op of the table is the golden one") {
    const test::TempDir dir;
    test::write_all_ops(dir / "a.oplog");
    check_golden(dump_all(LogReader(dir / "a.oplog")), "all_ops.dump");
}

namespace {

/// Of "O_RDWR|O_CLOEXEC|0x40", "0644" or "12": names, hexadecimal, octal and decimal.
int64_t spelled_value(const std::string& text) {
    int64_t sum = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('|', at), text.size());
        const std::string part = text.substr(at, end - at);
        const auto named = symbol_value(part);
        sum |= named ? *named : std::stoll(part, nullptr, 0);
        at = end + 1;
    }
    return sum;
}

}  // namespace

TEST_CASE("text and JSON hold every field of the schema with its value, and no other") {
    const test::TempDir dir;
    test::write_all_ops(dir / "a.oplog");
    const LogReader log(dir / "a.oplog");
    std::set<OpKind> seen;
    log.for_each(1, [&](const Op& op, uint64_t number) {
        seen.insert(op.kind);
        const OpInfo& row = info(op.kind);
        std::string text, json_text;
        append_dump(text, log.tables(), 1, op, number);
        append_dump_json(json_text, log.tables(), 1, op, number);
        INFO(text);
        CHECK(std::count(text.begin(), text.end(), '\n') == 1);
        CHECK(std::count(json_text.begin(), json_text.end(), '\n') == 1);
        const nlohmann::json json = nlohmann::json::parse(json_text);
        CHECK(json["kind"] == row.name);
        CHECK(json["begin"] == op.begin);
        CHECK(json["duration"] == op.duration);
        CHECK(json["result"] == op.result);
        CHECK(text.find(" " + std::string(row.name) + " result=" + std::to_string(op.result)) != std::string::npos);
        for (const FieldInfo& field : all_fields()) {
            INFO(field.name);
            const std::string key = " " + std::string(field.name) + "=";
            CHECK((text.find(key) != std::string::npos) == row.has(field.field));
            CHECK(json.contains(field.name) == row.has(field.field));
            if (!row.has(field.field)) {
                continue;
            }
            if (field.field == Field::text) {
                CHECK(text.find(key + "\"a text\\n\\x01\\\"\\\\\"") != std::string::npos);
            } else if (field.field == Field::list) {
                CHECK(text.find(key + "[11,22,33]") != std::string::npos);
                CHECK(json["list"] == nlohmann::json::parse("[11,22,33]"));
            } else {
                const int64_t value = field_value(op, field.field);
                CHECK(value > 0);
                const size_t at = text.find(key) + key.size();
                CHECK(spelled_value(text.substr(at, text.find_first_of(" \n", at) - at)) == value);
                CHECK(json[std::string(field.name)] == value);
            }
        }
        if (op.kind == OpKind::receive) {
            CHECK(text.find("edges=[message:1#4:100,queue:2#5:70]") != std::string::npos);
            CHECK(json["edges"].size() == 2);
        }
    });
    CHECK(seen.size() == all_ops().size());
}

// SPDX-License-Identifier: MIT
// The raw log: what is written comes back; every cut and every flipped byte is told and never read as records.
#include "formats/raw/log.h"

#include <cstring>
#include <filesystem>
#include <string>

#include "formats/support/error.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

// A call with a path of `length` bytes.
Bytes call_record(uint32_t sequence, size_t length) {
    raw_call call{};
    raw_part part{};
    part.type = RAW_PART_PATH;
    part.length = static_cast<raw_u16>(length);
    part.size = static_cast<raw_u16>(sizeof part + (length + 7) / 8 * 8);
    call.head.type = RAW_CALL;
    call.head.size = static_cast<raw_u16>(sizeof call + part.size);
    call.head.sequence = sequence;
    Bytes out;
    put_fixed(out, call);
    put_fixed(out, part);
    out.resize(out.size() + length, 'p');
    out.resize(call.head.size, 0);
    return out;
}

void write_log(const std::filesystem::path& path, uint32_t records, RawWriter::Options options = {}) {
    RawWriter writer(path, R"({"host":"here"})", options);
    for (uint32_t i = 0; i < records; ++i) {
        writer.append(call_record(i, i % 97));
        if (i == records / 2) {
            writer.flush();
        }
    }
    writer.finish();
}

// Calls read, in order, checked against what write_log wrote.
uint32_t read_log(const std::filesystem::path& path, std::string* cut = nullptr) {
    RawReader reader(path);
    CHECK(reader.meta() == R"({"host":"here"})");
    uint32_t calls = 0;
    for (ByteView chunk = reader.next(); !chunk.empty(); chunk = reader.next()) {
        for (const raw_head& head : RawRecords(chunk)) {
            if (head.type == RAW_META) {
                continue;
            }
            REQUIRE(head.type == RAW_CALL);
            REQUIRE(head.sequence == calls);
            size_t parts = 0;
            for (const raw_part& part : RawParts(head)) {
                REQUIRE(raw_part_text(part) == std::string(calls % 97, 'p'));
                ++parts;
            }
            REQUIRE(parts == 1);
            ++calls;
        }
    }
    if (cut) {
        *cut = reader.cut();
    } else {
        CHECK(reader.cut().empty());
    }
    return calls;
}

}  // namespace

TEST_CASE("raw log: records come back, packed and not") {
    const TempDir dir;
    for (const bool compress : {true, false}) {
        write_log(dir / "a.raw", 30000, {.compress = compress, .pending_chunks = 2});
        CHECK(read_log(dir / "a.raw") == 30000);
    }
    write_log(dir / "empty.raw", 0);
    CHECK(read_log(dir / "empty.raw") == 0);
}

TEST_CASE("raw log: without finish it reads as cut, with everything flushed") {
    const TempDir dir;
    {
        RawWriter writer(dir / "a.raw", R"({"host":"here"})");
        for (uint32_t i = 0; i < 100; ++i) {
            writer.append(call_record(i, i % 97));
        }
        writer.flush();
        writer.append(call_record(100, 3));
    }
    std::string cut;
    CHECK(read_log(dir / "a.raw", &cut) == 100);
    CHECK(cut.find("no end mark") != std::string::npos);
}

TEST_CASE("raw log: cut anywhere, the whole chunks are read and the rest is told") {
    const TempDir dir;
    write_log(dir / "a.raw", 400);
    const std::string whole = read_file(dir / "a.raw");
    uint32_t most = 0;
    for (size_t size = 0; size < whole.size(); size += size < 200 || size + 200 > whole.size() ? 1 : 37) {
        write_file(dir / "cut.raw", std::string_view(whole).substr(0, size));
        std::string cut;
        uint32_t calls = 0;
        try {
            calls = read_log(dir / "cut.raw", &cut);
        } catch (const Error& error) {
            CHECK(error.code() == ExitCode::bad_input);
            continue;
        }
        CHECK(!cut.empty());
        CHECK(calls >= most);
        most = calls;
    }
    CHECK(most == 400);  // only the end mark is missing
}

TEST_CASE("raw log: a flipped byte is never read") {
    const TempDir dir;
    write_log(dir / "a.raw", 50, {.compress = false, .pending_chunks = 4});
    const std::string whole = read_file(dir / "a.raw");
    for (size_t at = 0; at < whole.size(); at += 5) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
        write_file(dir / "b.raw", damaged);
        std::string cut;
        try {
            read_log(dir / "b.raw", &cut);
            CHECK(!cut.empty());
        } catch (const Error& error) {
            CHECK(error.code() == ExitCode::bad_input);
        }
    }
}

TEST_CASE("raw log: sizes of records and parts are not trusted") {
    const Bytes good = call_record(0, 20);
    CHECK(raw_records_whole(good));
    CHECK(!raw_records_whole(ByteView(good).first(good.size() - 8)));
    const auto with = [&](size_t at, uint16_t value) {
        Bytes bad = good;
        std::memcpy(bad.data() + at, &value, sizeof value);
        return raw_records_whole(bad);
    };
    for (const uint16_t size : {0, 8, 88, 97, 4000}) {
        CHECK(!with(0, size));
    }
    CHECK(!with(2, 200));  // type
    const size_t part = sizeof(raw_call);
    CHECK(!with(part, 77));
    for (const uint16_t size : {0, 4, 9, 24, 40, 65528}) {
        CHECK(!with(part + 2, size));
    }
    CHECK(!with(part + 6, 25));  // longer than the part
    CHECK(with(part + 6, 24));
}

TEST_CASE("raw log: what is none is refused, and another version named") {
    const TempDir dir;
    write_file(dir / "text", "hello");
    CHECK_THROWS_AS(RawReader(dir / "text"), Error);
    CHECK_THROWS_AS(RawReader(dir / "missing"), Error);
    write_log(dir / "a.raw", 3);
    std::string other = read_file(dir / "a.raw");
    other[6] = 9;
    write_file(dir / "b.raw", other);
    CHECK_THROWS_WITH_AS(RawReader(dir / "b.raw"), doctest::Contains("version 9"), Error);
}

TEST_CASE("raw log: a full disk is an error of the machine, not silence") {
    std::error_code ignored;
    if (!std::filesystem::exists("/dev/full", ignored)) {
        REPRISE_SKIP("no /dev/full");
    }
    CHECK_THROWS_AS(write_log("/dev/full", 30000), Error);
    CHECK_THROWS_AS(RawWriter("/no/such/folder/a.raw", "{}"), Error);
}

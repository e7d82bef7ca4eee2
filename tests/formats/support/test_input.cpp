// SPDX-License-Identifier: MIT
// LineReader over plain, gzip and zstd text: line cutting, members and frames, damage, padding.
#include "formats/support/input.h"

#include <zlib.h>
#include <zstd.h>

#include <cstring>
#include <string>
#include <vector>

#include "formats/support/error.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

std::string gzip(std::string_view text) {
    std::string out(compressBound(text.size()) + 64, '\0');
    z_stream stream{};
    REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

std::string zstd(std::string_view text) {
    std::string out(ZSTD_compressBound(text.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
    return out;
}

// Joined with '|', so that a wrong cut shows.
std::string lines_of(LineReader& reader) {
    std::string out;
    for (std::string_view line; reader.next(line);) {
        out.append(line).append("|");
    }
    return out;
}

std::string lines_of(const std::filesystem::path& path) {
    LineReader reader(path);
    return lines_of(reader);
}

std::string numbered(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
        text += "line " + std::to_string(i * 7919) + std::string(static_cast<size_t>(i % 300), 'x') + "\n";
    }
    return text;
}

std::string with_bars(std::string text) {
    for (char& c : text) {
        if (c == '\n') {
            c = '|';
        }
    }
    return text;
}

std::string message_of(LineReader& reader) {
    try {
        lines_of(reader);
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::bad_input);
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("lines are cut alike in plain, gzip and zstd text") {
    TempDir dir;
    for (const std::string& text : {std::string(), std::string("\n"), std::string("a"), std::string("a\n\nb\r\n"),
                                    std::string("a\nlast without newline"), numbered(40000)}) {
        std::string expected = with_bars(text);
        if (!expected.empty() && expected.back() != '|') {
            expected += '|';
        }
        write_file(dir / "plain", text);
        write_file(dir / "gz", gzip(text));
        write_file(dir / "zst", zstd(text));
        CHECK(lines_of(dir / "plain") == expected);
        CHECK(lines_of(dir / "gz") == expected);
        CHECK(lines_of(dir / "zst") == expected);
        CHECK(read_head(dir / "gz", 100) == text.substr(0, 100));
        CHECK(read_head(dir / "zst") == text.substr(0, 65536));
    }
}

TEST_CASE("many gzip members and zstd frames are one text, also where a line spans them") {
    TempDir dir;
    std::string gz, zst, expected;
    for (int i = 0; i < 500; ++i) {
        const std::string piece = "half " + std::to_string(i) + (i % 2 ? "\n" : " and ");
        gz += gzip(piece);
        zst += zstd(piece);
        expected += piece;
    }
    write_file(dir / "gz", gz + gzip("") + std::string(1000, '\0'));  // tapes pad with zeros
    write_file(dir / "zst", zst + zstd(""));
    CHECK(lines_of(dir / "gz") == with_bars(expected));
    CHECK(lines_of(dir / "zst") == with_bars(expected));
}

TEST_CASE("a line longer than every buffer arrives whole, with padding behind it") {
    TempDir dir;
    const std::string text = "short\n" + std::string(5'000'000, 'y') + "\nshort again\n";
    write_file(dir / "gz", gzip(text));
    LineReader reader(dir / "gz");
    std::string_view line;
    volatile char sink = 0;
    std::vector<size_t> sizes;
    while (reader.next(line)) {
        sizes.push_back(line.size());
        for (size_t i = 0; i < 64; ++i) {
            sink = line.data()[line.size() + i];  // ASan would object
        }
    }
    static_cast<void>(sink);
    CHECK(sizes == std::vector<size_t>{5, 5'000'000, 11});
    CHECK(reader.line_number() == 3);
    CHECK(reader.bytes() == text.size());
    CHECK(reader.file_bytes() == std::filesystem::file_size(dir / "gz"));
    CHECK(reader.where() == (dir / "gz").native() + ":3");
}

TEST_CASE("a cut stream is refused with its position, or ends the input where that is allowed") {
    TempDir dir;
    const std::string text = numbered(40000);
    for (const bool use_zstd : {false, true}) {
        const std::string whole = use_zstd ? zstd(text) : gzip(text);
        for (const size_t keep : {size_t{5}, whole.size() / 2, whole.size() - 1}) {
            CAPTURE(use_zstd);
            CAPTURE(keep);
            write_file(dir / "cut", std::string_view(whole).substr(0, keep));
            LineReader strict(dir / "cut");
            const std::string message = message_of(strict);
            CHECK(message.find("ends too early") != std::string::npos);
            CHECK(message.find("at byte " + std::to_string(keep)) != std::string::npos);
            LineReader lenient(dir / "cut");
            lenient.set_truncated_ok(true);
            std::string got = lines_of(lenient);
            CHECK(lenient.truncated());
            if (!got.empty()) {
                got.pop_back();  // the bar behind the cut line
            }
            CHECK(with_bars(text).starts_with(got));
            if (keep > 1000) {
                CHECK(got.size() > text.size() / 4);
            }
        }
    }
}

TEST_CASE("damage is an error, never a crash or silent loss") {
    TempDir dir;
    const std::string text = numbered(3000);
    for (const bool use_zstd : {false, true}) {
        std::string whole = use_zstd ? zstd(text) : gzip(text);
        int refused = 0;
        for (size_t i = 4; i < whole.size(); i += 97) {
            std::string bad = whole;
            bad[i] = static_cast<char>(bad[i] ^ 0x41);
            write_file(dir / "bad", bad);
            try {
                const std::string got = lines_of(dir / "bad");
                // Only header bytes that mean nothing to the text (time, name), or a frame without checksum.
                if (!use_zstd) {
                    CHECK(got == with_bars(text));
                }
            } catch (const Error&) {
                ++refused;
            }
        }
        CHECK(refused > 10);
    }
    write_file(dir / "bad", gzip("a\n") + "not gzip");
    LineReader trailing(dir / "bad");
    CHECK(message_of(trailing).find("follow the gzip stream") != std::string::npos);
}

TEST_CASE("files that cannot be opened are named") {
    TempDir dir;
    CHECK_THROWS_WITH_AS(LineReader(dir / "nothing"), doctest::Contains("nothing: cannot open"), Error);
    CHECK_THROWS_WITH_AS(LineReader(dir.path()), doctest::Contains("is a directory"), Error);
}

TEST_CASE("small files as they are stored, and none where there is nothing to read") {
    const TempDir dir;
    const std::string large(200'000, '\0');
    for (const std::string& bytes : {std::string(), std::string("a\0b\n", 4), gzip("a\n"), large}) {
        write_file(dir / "file", bytes);
        CHECK(read_small_file(dir / "file") == bytes);
    }
    CHECK(read_small_file("/proc/self/status")->starts_with("Name:"));  // its size is told as 0
    CHECK_FALSE(read_small_file(dir.path()));
    CHECK_FALSE(read_small_file(dir / "nothing"));
}

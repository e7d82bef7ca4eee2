// SPDX-License-Identifier: MIT
// Byte strings as one line of UTF-8, and back.
#include "formats/support/escape.h"

#include <nlohmann/json.hpp>
#include <random>

#include "tests/support.h"

using namespace reprise;

namespace {

// What a reader of a dump does.
std::string unescape(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\') {
            out += text[i];
            continue;
        }
        const char c = text.at(++i);
        if (c == 'x') {
            out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
            i += 2;
        } else {
            out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
        }
    }
    return out;
}

}  // namespace

TEST_CASE("escaping keeps readable text and tells every byte") {
    std::string out;
    append_quoted(out, "a\"b\\c\n\t\r\x01\x7f\xff\xc3\xa9");
    CHECK(out == "\"a\\\"b\\\\c\\n\\t\\r\\x01\\x7f\\xff\xc3\xa9\"");
    out.clear();
    append_escaped(out, "\xc2\x85\xe2\x80\xa8\xed\xa0\x80\xc0\xaf\xf0\x9f\x98\x80");  // NEL, line separator, surrogate,
                                                                                      // overlong, a face
    CHECK(out == "\\xc2\\x85\\xe2\\x80\\xa8\\xed\\xa0\\x80\\xc0\\xaf\xf0\x9f\x98\x80");
}

TEST_CASE("words of a shell command: plain ones as they are, others in quotes") {
    CHECK(shell_word("/mnt/new-1/job.oplog") == "/mnt/new-1/job.oplog");
    CHECK(shell_word("/data=.") == "/data=.");
    CHECK(shell_word("my job.oplog") == "'my job.oplog'");
    CHECK(shell_word("*.jpg=sample") == "'*.jpg=sample'");
    CHECK(shell_word("$(x)\xc3\xa9") == "'$(x)\xc3\xa9'");
    CHECK(shell_word("it's") == "$'it\\'s'");
    CHECK(shell_word("a\nb") == "$'a\\nb'");
    CHECK(shell_word("~") == "'~'");
    CHECK(shell_word("") == "''");
}

TEST_CASE("random bytes come back, in one line, and as valid JSON") {
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
        std::string bytes;
        for (unsigned n = random() % 40; n > 0; --n) {
            bytes += static_cast<char>(random() % 4 ? random() % 256 : "\"\\\n\xc3\xa9/"[random() % 6]);
        }
        std::string escaped, json;
        append_escaped(escaped, bytes);
        CHECK(unescape(escaped) == bytes);
        for (const char c : escaped) {
            CHECK((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
        }
        append_json(json, bytes);
        CHECK(unescape(nlohmann::json::parse(json).get<std::string>()) == bytes);
    }
}

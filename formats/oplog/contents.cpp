// SPDX-License-Identifier: MIT
#include "formats/oplog/contents.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "formats/oplog/stored_derived.h"

namespace reprise {
namespace {

constexpr std::string_view kContents = "contents", kLz4 = "contents_lz4";
constexpr uint32_t kVersion = 1;
constexpr size_t kLongestEnding = 8;

Derived encode(std::string_view record, const Contents& contents, uint64_t ContentSample::*compressed) {
    Derived out{std::string(record), kVersion, {}};
    put_varint(out.bytes, contents.size());
    for (const auto& [name, sample] : contents) {
        put_string(out.bytes, name);
        put_varint(out.bytes, sample.bytes);
        put_varint(out.bytes, sample.*compressed);
    }
    return out;
}

std::optional<Contents> stored(const LogReader& log, std::string_view record) {
    return stored_derived(log, record, kVersion, "what it holds of its files' content", "capture again",
                          decode_contents);
}

}  // namespace

uint32_t ContentSample::permille() const {
    return bytes == 0 ? 1000 : static_cast<uint32_t>(std::min<uint64_t>((compressed * 1000 + bytes / 2) / bytes, 1000));
}

std::string content_class(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || dot == 0) {
        return {};
    }
    std::string out;
    for (const char c : name.substr(dot + 1)) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) == 0 || out.size() == kLongestEnding) {
            return {};
        }
        out += static_cast<char>(std::tolower(byte));
    }
    return out;
}

Derived encode_contents(const Contents& contents) { return encode(kContents, contents, &ContentSample::compressed); }
Derived encode_lz4_contents(const Contents& contents) { return encode(kLz4, contents, &ContentSample::lz4); }

void keep_contents(const Contents& contents, LogWriter& writer) {
    writer.keep(encode_contents(contents));
    writer.keep(encode_lz4_contents(contents));
}

Contents decode_contents(ByteView bytes) {
    // A sum of both stays far from overflow.
    constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max() / 4000;
    ByteReader in(bytes);
    Contents out;
    for (size_t n = in.count(in.left()); n > 0; --n) {
        std::string name(in.string());
        ContentSample sample;
        sample.bytes = in.varint();
        sample.compressed = in.varint();
        if (name.size() > kLongestEnding || sample.bytes > kMost || sample.compressed > kMost ||
            !out.emplace(std::move(name), sample).second) {
            throw Corrupt("content that no recording can have found");
        }
    }
    if (in.left() != 0) {
        throw Corrupt("bytes after the content");
    }
    return out;
}

std::optional<Contents> recorded_contents(const LogReader& log) {
    std::optional<Contents> contents = stored(log, kContents);
    const std::optional<Contents> lz4 = contents ? stored(log, kLz4) : std::nullopt;
    for (const auto& [name, sample] : lz4.value_or(Contents())) {
        const auto found = contents->find(name);
        if (found != contents->end() && found->second.bytes == sample.bytes) {
            found->second.lz4 = sample.compressed;
        }
    }
    return contents;
}

void copy_contents(const LogReader& from, LogWriter& to) {
    for (const std::string_view record : {kContents, kLz4}) {
        if (const std::optional<Derived> kept = from.derived(record)) {
            to.keep(*kept);
        }
    }
}

}  // namespace reprise

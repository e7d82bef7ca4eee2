// SPDX-License-Identifier: MIT
#include "formats/oplog/contents.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "formats/oplog/stored_derived.h"

namespace reprise {
namespace {

constexpr std::string_view kContents = "contents";
constexpr uint32_t kVersion = 1;
constexpr size_t kLongestEnding = 8;

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

Derived encode_contents(const Contents& contents) {
    Derived out{std::string(kContents), kVersion, {}};
    put_varint(out.bytes, contents.size());
    for (const auto& [name, sample] : contents) {
        put_string(out.bytes, name);
        put_varint(out.bytes, sample.bytes);
        put_varint(out.bytes, sample.compressed);
    }
    return out;
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
    return stored_derived(log, kContents, kVersion, "what it holds of its files' content", "capture again",
                          decode_contents);
}

void copy_contents(const LogReader& from, LogWriter& to) {
    if (const std::optional<Derived> stored = from.derived(kContents)) {
        to.keep(*stored);
    }
}

}  // namespace reprise

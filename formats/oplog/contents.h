// SPDX-License-Identifier: MIT
// How far the content of a job's files compresses, by the ending of their names. Kept in the log as derived data
// (formats/FORMAT.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "formats/oplog/oplog.h"
#include "formats/support/bytes.h"

namespace reprise {

/// Of files of one class that were sampled: bytes, and what zstd -1 and lz4 made of them.
struct ContentSample {
    uint64_t bytes = 0, compressed = 0;
    uint64_t lz4 = 0;  // 0: not known

    /// What zstd -1 makes of 1000 bytes; 1000: they do not compress.
    uint32_t permille() const;
    bool operator==(const ContentSample&) const = default;
};
/// By class: "jpg"; empty: of names without an ending.
using Contents = std::map<std::string, ContentSample, std::less<>>;
/// The class of a path: its last ending, if that is up to eight letters and digits, in small letters.
std::string content_class(std::string_view path);

/// What zstd -1 made of them, and, for a record of its own that older readers pass over, lz4.
Derived encode_contents(const Contents& contents);
Derived encode_lz4_contents(const Contents& contents);
/// Either. Throws Corrupt.
Contents decode_contents(ByteView bytes);
void keep_contents(const Contents& contents, LogWriter& writer);

/// None where the recording did not look. Throws Error (bad_input) where it holds something that cannot be that.
std::optional<Contents> recorded_contents(const LogReader& log);
/// For logs made from others, with files of the same classes.
void copy_contents(const LogReader& from, LogWriter& to);

}  // namespace reprise

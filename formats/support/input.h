// SPDX-License-Identifier: MIT
// Text input for importers: plain, .gz and .zst, recognised by content, not by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

/// Streams the decompressed bytes of a file. Memory is bounded by the longest line.
class LineReader {
public:
    explicit LineReader(std::filesystem::path path);
    ~LineReader();
    LineReader(const LineReader&) = delete;
    LineReader& operator=(const LineReader&) = delete;

    /// Next line without its newline; false at the end. The view is valid until the next call and is followed by at
    /// least 64 readable bytes (simdjson's padding). A damaged compressed stream throws Error with the position, unless
    /// `truncated_ok` was set, in which case it ends the input and truncated() is true. A line beyond 256 MiB throws.
    bool next(std::string_view& line);
    uint64_t line_number() const;  // of the line last returned, from 1
    uint64_t bytes() const;        // decompressed bytes of the lines returned so far
    uint64_t file_bytes() const;   // bytes of the file itself used so far (for progress)
    bool truncated() const;
    bool ends_in_line() const;  // the line last returned was the last, and no newline ended it
    void set_truncated_ok(bool ok);
    const std::filesystem::path& path() const;
    /// "file:line" for messages.
    std::string where() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// First bytes of a file, decompressed, at most `limit`; what there is where the compressed stream is damaged.
std::string read_head(const std::filesystem::path& path, size_t limit = 65536);

/// All bytes of a file that fits in memory, as they are stored. None where it cannot be read: it is not there, or is a
/// directory. At most `most` bytes, and one more where there are more.
std::optional<std::string> read_small_file(const std::filesystem::path& path, size_t most = SIZE_MAX - 1);

}  // namespace reprise

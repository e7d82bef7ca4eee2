// SPDX-License-Identifier: MIT
// The container of raw records on disk (`.raw`): writer and reader side by side, and the checked walk over
// records. Layout: 8 bytes of magic, then chunks {RawChunkHead, stored bytes}; each chunk holds whole records, the
// first chunk begins with RAW_META, a chunk without bytes ends the file. Host byte order (formats/raw/record.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "formats/raw/record.h"
#include "formats/support/bytes.h"
#include "formats/support/unique_fd.h"

namespace reprise {

constexpr char kRawMagic[8] = {'R', 'P', 'R', 'R', 'A', 'W', RAW_VERSION, 0};
constexpr size_t kRawChunkBytes = size_t{1} << 20;  ///< most raw bytes of a chunk

struct RawChunkHead {
    static constexpr uint32_t kMagic = 0x4b435252;  // "RRCK"
    uint32_t magic = kMagic;
    uint32_t codec = 0;  ///< 0 as it is, 1 zstd
    uint32_t stored = 0, raw = 0;
    uint64_t hash = 0;  ///< XXH64 of the stored bytes, seeded with codec << 32 | raw
};
static_assert(sizeof(RawChunkHead) == 24);

/// Appends; a helper thread packs and writes, so that append() is a copy. Memory is bounded by `pending_chunks` chunks;
/// where the disk is slower, append() waits. A full disk or any other failure of the file throws Error (machine) from
/// the next call; the file then ends with its last whole chunk. One thread at a time.
class RawWriter {
public:
    struct Options {
        bool compress = true;
        size_t pending_chunks = 64;
        /// The helper gives way to whatever else runs, as long as few chunks wait for it. Where the right to take its
        /// priority back is missing it keeps it.
        bool gives_way = false;
    };
    /// `meta` is the JSON text of RAW_META, at most 60 000 bytes. The file is made or replaced. Error (usage) where
    /// another one is writing it.
    RawWriter(const std::filesystem::path& path, std::string_view meta, Options options);
    RawWriter(const std::filesystem::path& path, std::string_view meta) : RawWriter(path, meta, Options{}) {}
    ~RawWriter();
    RawWriter(const RawWriter&) = delete;
    RawWriter& operator=(const RawWriter&) = delete;

    /// Whole records (any number of them, at most kRawChunkBytes in all).
    void append(ByteView records);
    /// Hands what was appended to the kernel soon, without waiting for a full chunk: what a killed recorder keeps.
    void flush();
    /// Writes everything and the end mark, syncs, closes. Without it the file reads as cut.
    void finish();
    /// In the file so far.
    [[nodiscard]] uint64_t bytes() const;
    /// Keeps the file from other writers for as long as it lives, also after finish().
    [[nodiscard]] UniqueFd lock() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Whether somebody holds the lock of a RawWriter on the file. False where it is not there or cannot be read.
bool raw_in_use(const std::filesystem::path& path);

/// Reads a raw log chunk by chunk; never trusts a size. What is no raw log throws Error (bad_input); a file that ends
/// early or is damaged gives its whole chunks up to there, and then cut() says so.
class RawReader {
public:
    explicit RawReader(const std::filesystem::path& path);
    ~RawReader();
    RawReader(const RawReader&) = delete;
    RawReader& operator=(const RawReader&) = delete;

    /// The records of the next chunk, checked by raw_records_whole() and 8-byte aligned, valid until the next call;
    /// RAW_META is among them. Empty at the end.
    ByteView next();
    /// JSON text of RAW_META.
    [[nodiscard]] const std::string& meta() const;
    /// After next() returned nothing: why the log is not complete, in words; empty where it is complete.
    [[nodiscard]] const std::string& cut() const;
    /// Position in the file, for progress and messages.
    [[nodiscard]] uint64_t offset() const;
    [[nodiscard]] uint64_t file_bytes() const;
    [[nodiscard]] const std::filesystem::path& path() const;

    /// Whether the file begins with the magic of any version.
    static bool sniff(ByteView first_bytes);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Bytes of the struct that a record of this type begins with; 0: no such type.
size_t raw_struct_bytes(uint8_t type);
/// Whether these bytes are whole records of known types with whole, well-sized parts.
bool raw_records_whole(ByteView records);

/// Things one after the other, each with its own size in its head.
template <class Head>
class RawSequence {
public:
    RawSequence(const uint8_t* begin, const uint8_t* end) : begin_(begin), end_(end) {}
    class Iterator {
    public:
        explicit Iterator(const uint8_t* at) : at_(at) {}
        const Head& operator*() const { return *reinterpret_cast<const Head*>(at_); }
        Iterator& operator++() {
            at_ += (**this).size;
            return *this;
        }
        bool operator!=(const Iterator& other) const { return at_ != other.at_; }

    private:
        const uint8_t* at_;
    };
    [[nodiscard]] Iterator begin() const { return Iterator(begin_); }
    [[nodiscard]] Iterator end() const { return Iterator(end_); }

private:
    const uint8_t *begin_, *end_;
};

/// The records of a chunk that raw_records_whole() accepts: for (const raw_head& head : RawRecords(chunk)).
struct RawRecords : RawSequence<raw_head> {
    explicit RawRecords(ByteView chunk) : RawSequence(chunk.data(), chunk.data() + chunk.size()) {}
};

/// The parts of one such record: for (const raw_part& part : RawParts(head)).
struct RawParts : RawSequence<raw_part> {
    explicit RawParts(const raw_head& head)
        : RawSequence(reinterpret_cast<const uint8_t*>(&head) + raw_struct_bytes(head.type),
                      reinterpret_cast<const uint8_t*>(&head) + head.size) {}
};

/// What follows the head of a part.
inline const void* raw_part_data(const raw_part& part) { return &part + 1; }
/// RAW_PART_PATH and RAW_PART_STRING.
inline std::string_view raw_part_text(const raw_part& part) {
    return {static_cast<const char*>(raw_part_data(part)), part.length};
}
/// RAW_PART_LIST and RAW_PART_VALUES.
inline std::span<const raw_s64> raw_part_numbers(const raw_part& part) {
    return {static_cast<const raw_s64*>(raw_part_data(part)), part.length};
}

}  // namespace reprise

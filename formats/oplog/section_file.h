// SPDX-License-Identifier: MIT
// An op log in the making, as a file of sections: named `.partial` until it is whole. What is in them is its users'.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"
#include "formats/oplog/table_codec.h"
#include "formats/support/bytes.h"
#include "formats/support/compress.h"
#include "formats/support/end_signals.h"
#include "formats/support/unique_fd.h"

namespace reprise {

/// Throws Error (machine) where the disk is full or not writable. Destroyed before finish() or discard() it leaves the
/// .partial file.
class SectionFile {
public:
    /// Makes the file, with its first 16 bytes.
    explicit SectionFile(std::filesystem::path path);
    SectionFile(const SectionFile&) = delete;
    SectionFile& operator=(const SectionFile&) = delete;

    const std::filesystem::path& partial() const { return partial_; }
    /// Where the next section goes, bytes.
    uint64_t offset() const { return offset_; }
    void section(SectionType type, ByteView payload);
    /// One that has its checksum already.
    void stored_section(SectionType type, ByteView payload, uint64_t checksum);
    /// A block of the ops section that is written next, at offset().
    void add_block(const BlockInfo& block) { blocks_.push_back(block); }
    std::vector<BlockInfo>& blocks() { return blocks_; }

    /// The index and the end mark; returns where the index is.
    uint64_t seal(Compressor& compressor);
    /// Takes them off again.
    void unseal(uint64_t index);
    /// Gives the file its name.
    void finish(bool sync);
    bool finished() const { return finished_; }
    void discard();

private:
    [[noreturn]] void fail(const char* what, const char* todo) const;
    void write(ByteView bytes);
    Bytes index(Compressor& compressor) const;

    const std::filesystem::path path_, partial_;
    UniqueFd fd_;
    UndoneAtEnd unfinished_;
    uint64_t offset_ = 0;
    std::vector<std::pair<SectionType, uint64_t>> sections_;
    std::vector<BlockInfo> blocks_;
    bool finished_ = false;
};

}  // namespace reprise

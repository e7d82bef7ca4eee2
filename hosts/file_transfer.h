// SPDX-License-Identifier: MIT
// A file that one rank has, to rank 0, as fast as it is taken there: what is under way is bounded, however long the
// file is and whoever is slow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <span>
#include <string>

#include "hosts/conversation.h"

namespace reprise {

/// All ranks make one for each file, in the same order, and call finish() at last.
class FileTransfer {
public:
    static constexpr size_t kChunk = size_t{4} << 20;  // bytes of a message
    static constexpr uint64_t kWindow = 4;             // chunks; of two windows some may be under way

    /// `mine`: this rank's file, at its begin; used on rank `from` only, which has it. `size`: of that file.
    FileTransfer(Conversation& ranks, uint32_t from, uint64_t size, std::istream& mine)
        : ranks_(ranks), from_(from), chunks_((size + kChunk - 1) / kChunk), mine_(mine) {}
    FileTransfer(const FileTransfer&) = delete;
    FileTransfer& operator=(const FileTransfer&) = delete;

    /// On rank 0: the next bytes of it, at most as many as there is room for; 0 at the end.
    size_t take(std::span<uint8_t> into);
    /// On rank 0: drops what was not taken. On the others: sends all of it, or lets it pass.
    void finish();

private:
    std::string next();
    std::string read();

    Conversation& ranks_;
    const uint32_t from_;
    const uint64_t chunks_;
    std::istream& mine_;
    uint64_t done_ = 0;  // chunks
    std::string chunk_;  // rank 0: of which `at_` bytes were taken
    size_t at_ = 0;
};

}  // namespace reprise

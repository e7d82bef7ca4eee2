// SPDX-License-Identifier: MIT
// Calls of libcufile as the system calls that do the same: what is assembled of a read or write that passed none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/raw/record.h"

namespace reprise {

/// Bytes of a block of direct I/O, as most storage has them.
inline constexpr int64_t kDirectBlock = 4096;

/// A read or write of a range as it is made past the page cache.
struct DirectRange {
    int64_t offset = 0, size = 0;
    int64_t before = 0;    ///< bytes that were put in front
    bool widened = false;  ///< to whole blocks
    /// The result for the range, of one for the bytes that were asked for (not below 0); `end`: of the file, 0: not
    /// known.
    [[nodiscard]] int64_t result(int64_t of, int64_t asked, int64_t end) const;
};
DirectRange whole_blocks(int64_t offset, int64_t size);
inline bool is_whole_blocks(int64_t offset, int64_t size) {
    return offset % kDirectBlock == 0 && size % kDirectBlock == 0;
}

/// A raw_call with its parts, made up.
class MadeCall {
public:
    MadeCall(const raw_head& head, uint64_t enter, uint64_t end, uint16_t nr);
    raw_call& call() { return *reinterpret_cast<raw_call*>(words_.data()); }
    void add(raw_part_type type, uint16_t which, const void* data, size_t bytes);
    /// Bytes of one record; more do not fit.
    [[nodiscard]] size_t bytes() const { return words_.size() * sizeof(uint64_t); }
    /// Valid until it is changed.
    const raw_call& done();

private:
    std::vector<uint64_t> words_;
};

}  // namespace reprise

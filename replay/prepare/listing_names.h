// SPDX-License-Identifier: MIT
// The names of the empty files that stand for those that no op names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise {

/// Bytes that getdents64 returns for a name of that length: 19 before it, its NUL, a multiple of 8.
constexpr uint64_t listed_bytes(uint64_t name) { return (19 + name + 1 + 7) / 8 * 8; }

class ListingNames {
public:
    /// As many as take so many bytes of a listing, each about as long as those that are known. `average`: bytes of one
    /// of them, 0: none is known.
    static ListingNames that_take(uint64_t bytes, uint64_t average);
    /// So many, of about that length.
    static ListingNames so_many(uint64_t count, uint64_t length);

    uint64_t count() const { return count_; }
    std::string name(uint64_t number) const;

private:
    void choose_prefix();
    /// Whether the digits tell all of them apart.
    bool suffices() const;

    uint64_t length_ = 0, count_ = 0;
    std::string_view prefix_;
};

}  // namespace reprise

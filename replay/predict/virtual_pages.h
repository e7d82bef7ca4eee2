// SPDX-License-Identifier: MIT
// Which pages of one file are in the page cache of a prediction, which are still on their way there, and which carry
// the mark that says "read ahead from here".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace reprise {

inline constexpr int64_t kPageBytes = 4096;  // of the recording's machine, x86-64

/// Pages are numbers, from 0 to kMostPages.
class VirtualPages {
public:
    static constexpr int64_t kMostPages = int64_t{1} << 50;

    /// In the cache, or on its way there.
    bool has(int64_t page) const { return bit(page, &Chunk::present); }
    bool is_marked(int64_t page) const { return bit(page, &Chunk::marked); }
    /// Marked, and of one folio with the page after it.
    bool is_marked_large(int64_t page) const { return bit(page, &Chunk::large); }
    void mark(int64_t page, bool large);
    void unmark(int64_t page);
    /// Pages [from, to) are there at `there`, ns.
    void add(int64_t from, int64_t to, int64_t there, int64_t now);
    /// Those of `mask`, by bit, from `page` on; none beyond the aligned 64 pages that it is in.
    void remove(int64_t page, uint64_t mask);
    /// Those of [from, to) that are there leave: ranges of them, in no order.
    std::vector<std::pair<int64_t, int64_t>> drop(int64_t from, int64_t to, int64_t now);
    /// When the page, which it has, is there: `now` or later.
    int64_t there(int64_t page, int64_t now);
    /// Neither on its way nor marked: what a fault nearby maps, and a read copies.
    bool is_ready(int64_t page, int64_t now);

    /// The first page of [from, to) that is missing; `to` where none is.
    int64_t next_missing(int64_t from, int64_t to) const;
    /// use(from, to) of ranges that hold all pages that it has, in no order.
    template <class Use>
    void each_range(Use use) const {
        for (const auto& [number, chunk] : chunks_) {
            use(number * kChunk, (number + 1) * kChunk);
        }
    }
    /// How many pages just before `page` it has, at most `most`.
    int64_t run_before(int64_t page, int64_t most) const;

private:
    static constexpr int64_t kChunk = 512;
    using Bits = std::array<uint64_t, kChunk / 64>;
    struct Chunk {
        Bits present{}, marked{}, large{};
    };
    struct Coming {
        int64_t to = 0, there = 0;
    };
    bool bit(int64_t page, Bits Chunk::*bits) const;
    Chunk& chunk(int64_t page);
    static void remove(Chunk& in, int64_t page, uint64_t mask);

    std::unordered_map<int64_t, Chunk> chunks_;
    mutable const Chunk* last_ = nullptr;  // found last; nodes of the map stay where they are
    mutable int64_t last_number_ = -1;
    static constexpr size_t kLeastComing = 64;
    std::map<int64_t, Coming> coming_;  // by first page; those that are there by now are forgotten in time
    size_t most_coming_ = kLeastComing;
};

}  // namespace reprise

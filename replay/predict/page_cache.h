// SPDX-License-Identifier: MIT
// The page cache of a prediction under a memory limit: which pages leave it, and when.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/op.h"

namespace reprise {

/// Which pages go first.
enum class PageCachePolicy : uint8_t {
    lru,        // those that were not used for longest
    two_lists,  // as Linux decides: see PageCache
};

/// Pages are kept in pieces: up to 16 that came in together, of one aligned block of 16. A piece leaves as a whole.
///
/// `two_lists` follows mm/swap.c, mm/vmscan.c and mm/workingset.c of Linux 6.18, without generations (CONFIG_LRU_GEN):
/// - What comes in is at the head of the inactive list. Its second access by a call moves it to the active list. A page
///   that is mapped is looked at when its turn to leave comes: once it is spared, the second time it gets active.
/// - Pieces leave from the inactive list's tail. While the active list is the longer one (by the root of ten times the
///   GiB of both, from one GiB on), or pages got active as they came back, as large a part of the active list moves
///   over.
/// - Each page that leaves or gets active advances a clock. A page that comes back after fewer ticks than the active
///   list has pages would have stayed, had it been there: it gets active at once.
class PageCache {
public:
    struct Piece {
        FileId file = 0;
        int64_t page = 0;   // the first one of its block
        uint32_t mask = 0;  // of the pages from there on
    };
    /// `leaves` is told what left. `written_by` begins to write what is dirty of a file, and says until when that
    /// takes: so long its written pages stay.
    PageCache(PageCachePolicy policy, std::function<void(const Piece&)> leaves,
              std::function<int64_t(FileId, int64_t now)> written_by);

    /// So many pages at most from now on.
    void resize(int64_t pages, int64_t now);
    /// Pages [from, to) are asked for, and are there at `there`, ns: until then they stay. Those that were there before
    /// stay where they are.
    void add(FileId file, int64_t from, int64_t to, int64_t there, int64_t now) {
        add(file, from, to, {false, there}, now);
    }
    /// Likewise of pages that are written.
    void write(FileId file, int64_t from, int64_t to, int64_t now) { add(file, from, to, {true, now}, now); }
    /// A call uses pages [from, to).
    void use(FileId file, int64_t from, int64_t to);
    /// A fault maps pages [from, to), those that are there. `map`: by which mapping, not 0.
    void map(FileId file, int64_t from, int64_t to, uint32_t map);
    /// The mapping is gone: what it mapped counts as used.
    void unmap(uint32_t map);
    /// Pages [from, to) go away with their data.
    void forget(FileId file, int64_t from, int64_t to);

    int64_t pages() const { return inactive_ + active_; }
    /// Pages with what the kernel keeps besides: about 2 KiB for each file (inode, name, index of pages).
    int64_t used() const { return pages() + static_cast<int64_t>(pieces_of_.size()) / kFilesAPage; }
    int64_t active() const { return active_; }
    int64_t capacity() const { return capacity_; }
    /// Pages that left while they were mapped: the log does not tell whether they are touched again.
    uint64_t left_mapped() const { return left_mapped_; }

private:
    static constexpr int64_t kBlock = 16;  // pages
    static constexpr int64_t kFilesAPage = 2;
    static constexpr uint32_t kInactive = 0, kActive = 1, kLists = 2, kNone = 0;
    struct Node {
        uint32_t previous = 0, next = 0;  // towards the head, towards the tail
        Piece piece;
        int64_t pages = 0;
        uint32_t used = 0;  // pages that a call used once
        uint32_t map = 0;   // that mapped it since it was looked at
        uint32_t last = 0;  // that mapped it last, and is still there
        int64_t there = 0;  // ns
        bool active = false, written = false;
    };
    struct How {
        bool written = false;
        int64_t there = 0;
    };
    using Key = std::pair<FileId, int64_t>;  // file, block
    struct Hash {
        size_t operator()(const Key& key) const;
    };
    struct Block {
        std::array<uint32_t, kBlock> node{};  // of each page; kNone: not there
        std::array<uint32_t, kBlock> left{};  // the clock when it left, and one; 0: it did not
    };
    /// use(block, key, mask) of each block with pages of [from, to).
    template <class Use>
    static void each_block(FileId file, int64_t from, int64_t to, Use use);
    /// use(node, mask) of each piece with pages of [from, to).
    template <class Use>
    void each_piece(FileId file, int64_t from, int64_t to, Use use);
    void add(FileId file, int64_t from, int64_t to, How how, int64_t now);
    Node& at(uint32_t id) { return nodes_[id]; }
    uint32_t make(const Piece& piece);
    void link(uint32_t id, bool active);
    void unlink(uint32_t id);
    void activate(uint32_t id);
    void use_piece(uint32_t id, uint32_t mask);
    bool comes_back(const Block& block, uint32_t mask) const;
    void remove(uint32_t id, bool left);
    bool leave(uint32_t id, bool force, int64_t now);
    void to_head(uint32_t id);
    bool is_inactive_low() const;
    void move_over(int64_t looked_at);
    void shrink(int64_t now);
    void forget_left();

    const PageCachePolicy policy_;
    const std::function<void(const Piece&)> leaves_;
    const std::function<int64_t(FileId, int64_t)> written_by_;
    std::vector<Node> nodes_;  // the first ones are the ends of the lists
    std::vector<uint32_t> free_;
    std::unordered_map<Key, Block, Hash> blocks_;
    std::unordered_map<FileId, uint32_t> pieces_of_;            // how many each file has
    std::deque<std::pair<int64_t, Key>> left_;                  // what left, by the clock
    std::unordered_map<uint32_t, std::vector<Key>> maps_;       // what each of them mapped, and may still have
    int64_t capacity_ = INT64_MAX, inactive_ = 0, active_ = 0;  // pages
    int64_t clock_ = 0;
    uint64_t left_mapped_ = 0;
    bool came_back_ = false;  // a piece got active so since the last shrink()
    double owed_ = 0;         // pages of the active list to be moved over
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/predict/page_cache.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace reprise {
namespace {

// Reclaim frees at least so many pages at a time, and looks at a list in proportion to its size up to 512 MiB.
constexpr int64_t kBatch = 32, kMostInProportion = kBatch << 12;
constexpr int64_t kGiB = (int64_t{1} << 30) / 4096;

uint32_t mask_of(int64_t from, int64_t to) {
    return static_cast<uint32_t>((uint64_t{1} << to) - (uint64_t{1} << from));
}
int64_t count(uint32_t mask) { return std::popcount(mask); }
template <class Use>
void each_bit(uint32_t mask, Use use) {
    for (; mask != 0; mask &= mask - 1) {
        use(static_cast<size_t>(std::countr_zero(mask)));
    }
}

}  // namespace

size_t PageCache::Hash::operator()(const Key& key) const {
    const uint64_t mixed = (uint64_t{key.first} << 36) ^ static_cast<uint64_t>(key.second);
    return static_cast<size_t>(((mixed ^ (mixed >> 32)) * 0x9E3779B97F4A7C15U) >> 16);
}

PageCache::PageCache(PageCachePolicy policy, std::function<void(const Piece&)> leaves,
                     std::function<int64_t(FileId, int64_t)> written_by)
    : policy_(policy), leaves_(std::move(leaves)), written_by_(std::move(written_by)), nodes_(kLists) {
    for (uint32_t list = 0; list < kLists; ++list) {
        nodes_[list].previous = nodes_[list].next = list;
    }
}

template <class Use>
void PageCache::each_block(FileId file, int64_t from, int64_t to, Use use) {
    for (int64_t page = from; page < to;) {
        const int64_t block = page / kBlock, end = std::min(to, (block + 1) * kBlock);
        use(Key{file, block}, mask_of(page - block * kBlock, end - block * kBlock));
        page = end;
    }
}

template <class Use>
void PageCache::each_piece(FileId file, int64_t from, int64_t to, Use use) {
    each_block(file, from, to, [&](const Key& key, uint32_t mask) {
        const auto found = blocks_.find(key);
        if (found == blocks_.end()) {
            return;
        }
        const Block block = found->second;  // which may go away
        while (mask != 0) {
            const uint32_t id = block.node[static_cast<size_t>(std::countr_zero(mask))];
            const uint32_t own = id == kNone ? mask & -mask : at(id).piece.mask & mask;
            mask &= ~own;
            if (id != kNone) {
                use(id, own);
            }
        }
    });
}

uint32_t PageCache::make(const Piece& piece) {
    uint32_t id = static_cast<uint32_t>(nodes_.size());
    if (free_.empty()) {
        nodes_.emplace_back();
    } else {
        id = free_.back();
        free_.pop_back();
    }
    at(id) = {};
    at(id).piece = piece;
    at(id).pages = count(piece.mask);
    ++pieces_of_[piece.file];
    return id;
}

/// At the head of a list.
void PageCache::link(uint32_t id, bool active) {
    const uint32_t list = active ? kActive : kInactive;
    at(id).active = active;
    (active ? active_ : inactive_) += at(id).pages;
    at(id).previous = list;
    at(id).next = at(list).next;
    at(at(list).next).previous = id;
    at(list).next = id;
}

void PageCache::unlink(uint32_t id) {
    (at(id).active ? active_ : inactive_) -= at(id).pages;
    at(at(id).previous).next = at(id).next;
    at(at(id).next).previous = at(id).previous;
}

/// Of the inactive list.
void PageCache::to_head(uint32_t id) {
    unlink(id);
    link(id, false);
}

void PageCache::activate(uint32_t id) {
    unlink(id);
    link(id, true);
    at(id).used = 0;
    clock_ += at(id).pages;
}

void PageCache::use_piece(uint32_t id, uint32_t mask) {
    if (policy_ == PageCachePolicy::lru) {
        to_head(id);
    } else if (!at(id).active && (at(id).used & mask) != 0) {
        activate(id);
    } else {
        at(id).used |= mask;
    }
}

void PageCache::use(FileId file, int64_t from, int64_t to) {
    each_piece(file, from, to, [&](uint32_t id, uint32_t mask) { use_piece(id, mask); });
}

void PageCache::map(FileId file, int64_t from, int64_t to, uint32_t map) {
    each_piece(file, from, to, [&](uint32_t id, uint32_t mask) {
        if (at(id).last != map) {
            maps_[map].emplace_back(file, at(id).piece.page / kBlock);
        }
        at(id).last = map;
        if (policy_ == PageCachePolicy::lru) {
            use_piece(id, mask);
            return;
        }
        if (at(id).map != 0 && at(id).map != map) {
            at(id).used |= mask;  // by several at a time
        }
        at(id).map = map;
    });
}

void PageCache::unmap(uint32_t map) {
    const auto found = maps_.find(map);
    if (found == maps_.end()) {
        return;
    }
    for (const Key& key : found->second) {
        each_piece(key.first, key.second * kBlock, (key.second + 1) * kBlock, [&](uint32_t id, uint32_t mask) {
            at(id).last = at(id).last == map ? 0 : at(id).last;
            if (at(id).map == map) {
                at(id).map = 0;
                use_piece(id, mask);
            }
        });
    }
    maps_.erase(found);
}

bool PageCache::comes_back(const Block& block, uint32_t mask) const {
    bool back = false;
    each_bit(mask, [&](size_t page) {
        const uint32_t distance = static_cast<uint32_t>(clock_) + 1 - block.left[page];
        back = back || (block.left[page] != 0 && distance <= active_);
    });
    return back;
}

void PageCache::add(FileId file, int64_t from, int64_t to, How how, int64_t now) {
    each_block(file, from, to, [&](const Key& key, uint32_t mask) {
        Block& block = blocks_[key];
        uint32_t fresh = 0;
        each_bit(mask, [&](size_t page) {
            if (block.node[page] == kNone) {
                fresh |= uint32_t{1} << page;
            } else {
                at(block.node[page]).written |= how.written;
            }
        });
        if (fresh == 0) {
            return;
        }
        const uint32_t id = make({key.first, key.second * kBlock, fresh});
        at(id).written = how.written;
        at(id).there = how.there;
        const bool back = policy_ == PageCachePolicy::two_lists && !how.written && comes_back(block, fresh);
        each_bit(fresh, [&](size_t page) {
            block.node[page] = id;
            block.left[page] = 0;
        });
        link(id, back);
        if (back) {
            clock_ += at(id).pages;
            came_back_ = true;
        }
    });
    shrink(now);
}

/// `left`: to make room; else its data went away.
void PageCache::remove(uint32_t id, bool left) {
    const Piece piece = at(id).piece;
    unlink(id);
    const Key key{piece.file, piece.page / kBlock};
    Block& block = blocks_[key];
    each_bit(piece.mask, [&](size_t page) {
        block.node[page] = kNone;
        block.left[page] = left ? static_cast<uint32_t>(clock_) + 1 : 0;
    });
    if (const auto pieces = pieces_of_.find(piece.file); --pieces->second == 0) {
        pieces_of_.erase(pieces);
    }
    if (left) {
        left_mapped_ += at(id).last != 0 ? static_cast<uint64_t>(at(id).pages) : 0;
        left_.emplace_back(clock_, key);
        clock_ += count(piece.mask);
        leaves_(piece);
    } else if (std::all_of(block.node.begin(), block.node.end(), [](uint32_t node) { return node == kNone; })) {
        blocks_.erase(key);
    }
    free_.push_back(id);
}

void PageCache::forget(FileId file, int64_t from, int64_t to) {
    each_piece(file, from, to, [&](uint32_t id, uint32_t) { remove(id, false); });
}

/// At the tail of the inactive list. False where it stays.
bool PageCache::leave(uint32_t id, bool force, int64_t now) {
    if (at(id).there > now && !force) {
        to_head(id);
        return false;
    }
    if (policy_ == PageCachePolicy::two_lists && !force) {
        if (at(id).map != 0) {
            at(id).map = 0;
            if (at(id).used != 0) {
                activate(id);
            } else {
                to_head(id);
            }
            at(id).used = at(id).piece.mask;
            return false;
        }
    }
    if (at(id).written) {
        at(id).written = written_by_(at(id).piece.file, now) > now;
        if (at(id).written && !force) {
            to_head(id);
            return false;
        }
    }
    remove(id, true);
    return true;
}

bool PageCache::is_inactive_low() const {
    const int64_t gib = (inactive_ + active_) / kGiB;
    const auto ratio = gib == 0 ? 1 : static_cast<int64_t>(std::sqrt(static_cast<double>(10 * gib)));
    return inactive_ * ratio < active_;
}

/// As large a part of the active list's tail as was looked at of the inactive one.
void PageCache::move_over(int64_t looked_at) {
    owed_ += static_cast<double>(looked_at) * static_cast<double>(std::min(active_, kMostInProportion)) /
             static_cast<double>(std::clamp<int64_t>(inactive_, 1, kMostInProportion));
    while (owed_ >= 1 && active_ > 0) {
        const uint32_t id = at(kActive).previous;
        owed_ -= static_cast<double>(at(id).pages);
        to_head(id);
        at(id).map = 0;
    }
    owed_ = active_ == 0 ? 0 : owed_;
}

void PageCache::shrink(int64_t now) {
    if (used() <= capacity_) {
        return;
    }
    const bool moves = came_back_ || is_inactive_low();
    came_back_ = false;
    const int64_t goal = policy_ == PageCachePolicy::lru ? capacity_ : std::max(capacity_ - kBatch, capacity_ / 2);
    for (size_t stayed = 0, most = 2 * (nodes_.size() - kLists - free_.size()); used() > goal;) {
        if (inactive_ == 0) {
            owed_ = std::max<double>(owed_, kBatch);
            move_over(0);
            continue;
        }
        const uint32_t id = at(kInactive).previous;
        const int64_t looked_at = at(id).pages;
        stayed += leave(id, stayed > most, now) ? 0 : 1;
        if (moves) {
            move_over(looked_at);
        }
    }
    forget_left();
}

/// What left so long ago that it cannot come back any more.
void PageCache::forget_left() {
    while (!left_.empty() && clock_ - left_.front().first > capacity_) {
        const auto [when, key] = left_.front();
        left_.pop_front();
        const auto found = blocks_.find(key);
        if (found == blocks_.end()) {
            continue;
        }
        Block& block = found->second;
        bool empty = true;
        for (size_t page = 0; page < kBlock; ++page) {
            block.left[page] = block.left[page] == static_cast<uint32_t>(when) + 1 ? 0 : block.left[page];
            empty = empty && block.node[page] == kNone && block.left[page] == 0;
        }
        if (empty) {
            blocks_.erase(found);
        }
    }
}

void PageCache::resize(int64_t pages, int64_t now) {
    capacity_ = pages;
    shrink(now);
}

}  // namespace reprise

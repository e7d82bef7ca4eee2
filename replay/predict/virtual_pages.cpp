// SPDX-License-Identifier: MIT
#include "replay/predict/virtual_pages.h"

#include <algorithm>
#include <bit>

namespace reprise {
namespace {

size_t word_of(int64_t page, int64_t chunk) { return static_cast<size_t>(page % chunk / 64); }
uint64_t bit_of(int64_t page) { return uint64_t{1} << (page % 64); }

}  // namespace

bool VirtualPages::bit(int64_t page, Bits Chunk::*bits) const {
    const int64_t number = page / kChunk;
    if (number != last_number_) {
        const auto found = chunks_.find(number);
        last_ = found == chunks_.end() ? nullptr : &found->second;
        last_number_ = number;
    }
    return last_ != nullptr && ((last_->*bits)[word_of(page, kChunk)] & bit_of(page)) != 0;
}

VirtualPages::Chunk& VirtualPages::chunk(int64_t page) {
    Chunk& found = chunks_[page / kChunk];
    last_ = &found;
    last_number_ = page / kChunk;
    return found;
}

void VirtualPages::mark(int64_t page, bool large) {
    Chunk& in = chunk(page);
    in.marked[word_of(page, kChunk)] |= bit_of(page);
    if (large) {
        in.large[word_of(page, kChunk)] |= bit_of(page);
    }
}

void VirtualPages::unmark(int64_t page) {
    Chunk& in = chunk(page);
    in.marked[word_of(page, kChunk)] &= ~bit_of(page);
    in.large[word_of(page, kChunk)] &= ~bit_of(page);
}

void VirtualPages::add(int64_t from, int64_t to, int64_t there, int64_t now) {
    for (int64_t page = from; page < to;) {
        Chunk& in = chunk(page);
        for (const int64_t end = std::min(to, (page / kChunk + 1) * kChunk); page < end; ++page) {
            in.present[word_of(page, kChunk)] |= bit_of(page);
        }
    }
    if (there <= now || from >= to) {
        return;
    }
    if (coming_.size() >= most_coming_) {
        std::erase_if(coming_, [&](const auto& range) { return range.second.there <= now; });
        most_coming_ = std::max(kLeastComing, 2 * coming_.size());
    }
    coming_[from] = {to, there};
}

void VirtualPages::remove(int64_t page, uint64_t mask) { remove(chunk(page), page, mask); }

void VirtualPages::remove(Chunk& in, int64_t page, uint64_t mask) {
    for (Bits Chunk::*const bits : {&Chunk::present, &Chunk::marked, &Chunk::large}) {
        (in.*bits)[word_of(page, kChunk)] &= ~(mask << (page % 64));
    }
}

std::vector<std::pair<int64_t, int64_t>> VirtualPages::drop(int64_t from, int64_t to, int64_t now) {
    std::vector<std::pair<int64_t, int64_t>> gone;
    const auto drop_of = [&](int64_t number, Chunk& in) {
        const int64_t end = std::min(to, (number + 1) * kChunk);
        for (int64_t page = std::max(from, number * kChunk); page < end; ++page) {
            if ((in.present[word_of(page, kChunk)] & bit_of(page)) == 0 || there(page, now) > now) {
                continue;
            }
            remove(in, page, 1);
            if (!gone.empty() && gone.back().second == page) {
                ++gone.back().second;
            } else {
                gone.emplace_back(page, page + 1);
            }
        }
    };
    if (const int64_t first = from / kChunk, last = to / kChunk; last - first < static_cast<int64_t>(chunks_.size())) {
        for (int64_t number = first; number <= last; ++number) {
            if (const auto found = chunks_.find(number); found != chunks_.end()) {
                drop_of(number, found->second);
            }
        }
    } else {
        for (auto& [number, in] : chunks_) {
            drop_of(number, in);
        }
    }
    return gone;
}

int64_t VirtualPages::there(int64_t page, int64_t now) {
    auto found = coming_.upper_bound(page);
    if (found == coming_.begin()) {
        return now;
    }
    --found;
    if (found->second.there <= now) {
        coming_.erase(found);
        return now;
    }
    return page < found->second.to ? found->second.there : now;
}

bool VirtualPages::is_ready(int64_t page, int64_t now) {
    return has(page) && !is_marked(page) && there(page, now) <= now;
}

int64_t VirtualPages::next_missing(int64_t from, int64_t to) const {
    while (from < to && has(from)) {
        const uint64_t absent = ~last_->present[word_of(from, kChunk)] >> (from % 64);
        from += absent == 0 ? 64 - from % 64 : std::countr_zero(absent);
    }
    return std::min(from, to);
}

int64_t VirtualPages::run_before(int64_t page, int64_t most) const {
    int64_t run = 0;
    while (run < most && page - run > 0 && has(page - run - 1)) {
        ++run;
    }
    return run;
}

}  // namespace reprise

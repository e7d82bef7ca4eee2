// SPDX-License-Identifier: MIT
#include "formats/assemble/address_map.h"

#include <algorithm>

namespace reprise {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t end_of(uint64_t address, uint64_t size) {
    const uint64_t most = UINT64_MAX - (kPage - 1) - address;
    if (address > UINT64_MAX - (kPage - 1) || size > most) {
        return UINT64_MAX;
    }
    return (address + size + kPage - 1) / kPage * kPage;
}

}  // namespace

void AddressMap::put(uint64_t address, uint64_t size, uint32_t map, uint64_t base) {
    if (size == 0) {
        return;
    }
    remove(address, size);
    ranges_[address] = {end_of(address, size), map, base};
}

std::vector<AddressMap::Piece> AddressMap::find(uint64_t address, uint64_t size) const {
    std::vector<Piece> pieces;
    const uint64_t end = end_of(address, size);
    auto it = ranges_.upper_bound(address);
    if (it != ranges_.begin()) {
        --it;
    }
    for (; it != ranges_.end() && it->first < end; ++it) {
        const uint64_t from = std::max(address, it->first), to = std::min(end, it->second.end);
        if (from >= to) {
            continue;
        }
        pieces.push_back(
            {it->second.map, static_cast<int64_t>(from - it->second.base), static_cast<int64_t>(to - from)});
    }
    return pieces;
}

std::vector<AddressMap::Piece> AddressMap::remove(uint64_t address, uint64_t size) {
    std::vector<Piece> pieces = find(address, size);
    if (pieces.empty()) {
        return pieces;
    }
    const uint64_t end = end_of(address, size);
    auto it = ranges_.upper_bound(address);
    if (it != ranges_.begin()) {
        --it;
    }
    while (it != ranges_.end() && it->first < end) {
        const uint64_t start = it->first;
        const Range range = it->second;
        if (range.end <= address) {
            ++it;
            continue;
        }
        it = ranges_.erase(it);
        if (start < address) {
            ranges_[start] = {address, range.map, range.base};
        }
        if (range.end > end) {
            it = ranges_.emplace(end, range).first;
        }
    }
    return pieces;
}

bool AddressMap::move(uint64_t from, uint64_t old_size, uint64_t to, uint64_t new_size, bool stays, Piece& moved) {
    const std::vector<Piece> pieces = find(from, std::max<uint64_t>(old_size, 1));
    if (pieces.empty()) {
        return false;
    }
    moved = pieces.front();
    if (old_size && !stays) {
        remove(from, old_size);
    }
    put(to, new_size, moved.map, to - static_cast<uint64_t>(moved.offset));
    return true;
}

}  // namespace reprise

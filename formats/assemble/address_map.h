// SPDX-License-Identifier: MIT
// Which mapping of a file an address of a process belongs to. Anonymous memory is not tracked.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace reprise {

class AddressMap {
public:
    /// A piece of one mapping that an address range overlaps.
    struct Piece {
        uint32_t map = 0;
        int64_t offset = 0;  // bytes from the start of the mapping
        int64_t size = 0;    // bytes
    };

    /// Replaces whatever was mapped in the range. `size` counts up to whole pages.
    void add(uint64_t address, uint64_t size, uint32_t map) { put(address, size, map, address); }
    /// Forgets the range (munmap, or anonymous memory mapped over it); what it overlapped comes back in address order.
    std::vector<Piece> remove(uint64_t address, uint64_t size);
    std::vector<Piece> find(uint64_t address, uint64_t size) const;
    /// mremap: the piece at `from` moves to `to` with a new size; `stays`: it is there and here (MREMAP_DONTUNMAP).
    /// False if nothing is tracked there.
    bool move(uint64_t from, uint64_t old_size, uint64_t to, uint64_t new_size, bool stays, Piece& moved);

private:
    struct Range {
        uint64_t end = 0;
        uint32_t map = 0;
        uint64_t base = 0;  // address at which the mapping's first byte is or would be
    };
    void put(uint64_t address, uint64_t size, uint32_t map, uint64_t base);
    std::map<uint64_t, Range> ranges_;  // by start address; disjoint
};

}  // namespace reprise

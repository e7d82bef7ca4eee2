// Owns the mappings of one worker process, and touching their pages without dying.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "replay/left_out.h"

namespace reprise {

/// Catches SIGBUS and SIGSEGV of touches in this process. Call once per process tree, before any touch.
void install_touch_guard();
/// Reads, or rewrites with itself, one byte of every page of [at, at + bytes). 0, or -EFAULT where a page cannot be
/// had.
int touch_pages(std::byte* at, size_t bytes, bool write);

class MappingTable {
public:
    struct Range {
        std::byte* at = nullptr;
        size_t bytes = 0;
    };

    MappingTable(uint32_t limit, std::mutex& lock) : lock_(lock), limit_(limit) {}

    /// The part of [offset, offset + bytes) that the mapping covers; bytes 0 where none.
    Range range(uint32_t map, int64_t offset, int64_t bytes) const;
    /// Replaces what was there, which is unmapped.
    void put(uint32_t map, Range range);
    /// The mapping was not made, and why; what is done to it later is left out for the same reason.
    void set_absent(uint32_t map, LeftOut reason);
    /// not_open where nothing was said.
    LeftOut absent_reason(uint32_t map) const;
    /// munmap. A part in the middle or at an end is replaced by a hole that nothing else can fall into. 0 or -errno.
    int unmap(uint32_t map, int64_t offset, int64_t bytes);
    /// Moves or resizes the whole mapping. 0 or -errno.
    int remap(uint32_t map, int64_t bytes);
    /// exec: every mapping ends.
    void clear();

private:
    std::mutex& lock_;
    uint32_t limit_;
    std::vector<Range> ranges_;
    std::unordered_map<uint32_t, LeftOut> absent_;
};

}  // namespace reprise

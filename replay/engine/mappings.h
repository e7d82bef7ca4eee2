// SPDX-License-Identifier: MIT
// The mappings of one worker process, and touching their pages without dying.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "formats/oplog/op.h"
#include "replay/plan/left_out.h"

namespace reprise {

/// Catches SIGBUS and SIGSEGV of touches in this process. Call once per process tree, before any touch.
void install_touch_guard();
/// Reads, or rewrites with itself, one byte of every page of [at, at + bytes). 0, or -EFAULT where a page cannot be
/// had.
int touch_pages(std::byte* at, size_t bytes, bool write);
/// Fills that memory by `fill`, which holds nothing: it may be left in the middle. Likewise.
int fill_pages(std::span<std::byte> memory, const std::function<void(std::span<std::byte>)>& fill);

/// Rewrites a byte with itself, whatever other threads do with it meanwhile.
inline void rewrite_byte(std::byte* at) {
    unsigned char nothing = 0;
    // Clang makes a load, which dirties no page, of an access that it knows to change nothing.
    asm volatile("" : "+r"(nothing));
    __atomic_fetch_or(reinterpret_cast<unsigned char*>(at), nothing, __ATOMIC_RELAXED);
}

class MappingTable {
public:
    struct Range {
        std::byte* at = nullptr;
        size_t bytes = 0;
    };

    MappingTable(uint32_t limit, std::mutex& lock) : lock_(lock), limit_(limit) {}
    /// Of a child process, which has no part in what its parent has mapped. The parent's lock is held.
    MappingTable(const MappingTable& parent, std::mutex& lock)
        : lock_(lock), limit_(parent.limit_), absent_(parent.absent_) {}
    ~MappingTable() { clear(); }
    MappingTable(const MappingTable&) = delete;
    MappingTable& operator=(const MappingTable&) = delete;
    /// Whether nothing is mapped. Its lock is held.
    bool empty() const;

    /// Where the mapping's byte `offset` is, and how many of the `bytes` from there on lie behind it in memory; bytes 0
    /// where it is not mapped.
    Range range(uint32_t map, int64_t offset, int64_t bytes) const;
    /// Whether anything of it is mapped.
    bool has(uint32_t map) const;
    /// Replaces what was there, which is unmapped. `of_file`: not memory of the process alone. `place`: in the file.
    struct Place {
        FileId file = 0;
        int64_t begin = 0;  // bytes
    };
    void put(uint32_t map, Range range, bool of_file, Place place);
    Place place(uint32_t map) const;
    bool of_file(uint32_t map) const;
    /// The mapping was not made, and why; what is done to it later is left out for the same reason.
    void set_absent(uint32_t map, LeftOut reason);
    /// not_open where nothing was said.
    LeftOut absent_reason(uint32_t map) const;
    /// munmap of the whole or a part. 0 or -errno.
    int unmap(uint32_t map, int64_t offset, int64_t bytes);
    /// mremap of the whole or a part, to wherever there is room. 0 or -errno.
    int remap(uint32_t map, int64_t offset, int64_t old_bytes, int64_t bytes, int64_t flags);
    /// exec: every mapping ends.
    void clear();

private:
    /// What is left of a mapping, in whole pages. After mremap two may hold the same bytes: then the newer one, which
    /// is behind the other, is meant.
    struct Piece {
        uint64_t offset = 0;
        std::byte* at = nullptr;
        size_t bytes = 0;
        uint64_t end() const { return offset + bytes; }
    };
    using Pieces = std::vector<Piece>;
    static Pieces::const_iterator find(const Pieces& pieces, uint64_t offset);
    static void cut(Pieces& pieces, Pieces::const_iterator of, uint64_t from, uint64_t to);
    static void join(Pieces& pieces);

    std::mutex& lock_;
    uint32_t limit_;
    std::vector<Pieces> pieces_;  // by map
    std::vector<bool> of_file_;   // by map, as far as set
    std::vector<Place> places_;   // likewise
    std::unordered_map<uint32_t, LeftOut> absent_;
};

}  // namespace reprise

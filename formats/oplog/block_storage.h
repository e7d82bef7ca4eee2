// SPDX-License-Identifier: MIT
// What an OpBlock looks at: the decoded columns of a section, and the decoder's working memory.
#pragma once

#include <array>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"
#include "formats/support/compress.h"

namespace reprise {

/// Per-instance memory of the predictors. Instances share entries by the low bits of their id, in the encoder as in the
/// decoder, so a clash costs bytes, never correctness.
struct Instances {
    static constexpr size_t kSize = 4096;
    struct Entry {
        std::array<int64_t, 3>
            position;  // of the instance; after the last small and large transfer at an explicit offset
        int32_t fd;
    };
    std::array<Entry, kSize> entries;

    void reset() { entries.fill({{}, -1}); }
    /// Those of these instances only, where they are few: what is not touched needs no page.
    void reset(const uint32_t* handles, size_t count) {
        if (count >= kSize / 2) {
            return reset();
        }
        for (size_t i = 0; i < count; ++i) {
            of(handles[i]) = {{}, -1};
        }
    }
    Entry& of(uint32_t handle) { return entries[handle % kSize]; }
};

/// A vector whose resize leaves new elements as they are: the decoder fills every one.
template <class T>
struct Uninitialised : std::allocator<T> {
    template <class U>
    struct rebind {  // NOLINT(readability-identifier-naming): the allocator interface names it
        using other = Uninitialised<U>;
    };
    template <class U>
    void construct(U* at) noexcept {
        ::new (static_cast<void*>(at)) U;
    }
    template <class U, class... Args>
    void construct(U* at, Args&&... args) {
        ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
    }
};
template <class T>
using RawVector = std::vector<T, Uninitialised<T>>;

/// What an OpBlock looks at; shared by the OpBlocks of one section.
struct OpBlock::Storage {
    std::vector<BlockInfo> blocks;  // stored in this section
    bool shared = false;            // other OpBlocks may come to look at it
    uint32_t fields = 0;            // columns that some op has: the others are not filled
    std::vector<uint8_t> kind;
    RawVector<int64_t> begin, duration, result;
#define FIELD(name, type, meaning) RawVector<type> name;
#include "formats/oplog/ops.def"
    std::vector<int64_t> list_values;
    std::vector<uint32_t> list_start;  // entry i: where list i begins; list 0 is empty
    std::vector<Edge> edges;
    std::vector<std::pair<uint32_t, uint32_t>> edge_of;  // (op, first edge), sorted by op
};

/// Working memory of the decoder, kept from block to block.
struct OpBlock::Scratch {
    Decompressor decompressor;
    Instances instances;
    Bytes plane;
    RawVector<uint32_t> ordinal;  // of an op among the ops of its kind
    RawVector<uint32_t> places;   // of the ops of each kind, kind by kind
    std::unique_ptr<uint64_t[]> residuals;
    size_t residuals_size = 0;
};

}  // namespace reprise

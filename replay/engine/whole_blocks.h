// SPDX-License-Identifier: MIT
// O_DIRECT where a storage takes whole blocks only, larger ones than what is asked for: reads take the blocks around
// it, writes go through the page cache and are synced, as a drive of 4 KiB blocks that says 512 bytes does by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace reprise {

inline constexpr int64_t kUsualBlock = 4096, kMostBlock = 64 << 10;

/// Bytes that offset and size of a direct read are multiples of, as statx says; 0: the file system reads none so; none:
/// it does not say.
std::optional<int64_t> stated_block(int fd);
/// The same, asked of the file system by reads where statx does not say. At most kMostBlock; else 0.
int64_t direct_block(int fd);

struct BlockRange {
    int64_t offset = 0, size = 0;
    /// The whole blocks around it.
    BlockRange around(int64_t block) const {
        const int64_t from = offset & ~(block - 1);
        return {from, (offset - from + size + block - 1) & ~(block - 1)};
    }
    /// Whether it is no whole blocks.
    bool is_part(int64_t block) const { return block > 0 && ((offset | size) & (block - 1)) != 0; }
};

struct BlockRead {
    int64_t result = 0;   // bytes of what was asked for, or -errno
    int64_t fetched = 0;  // with the rest of its blocks
};
/// Reads the blocks around `asked` into a buffer with room for one more at each end. `expected`: the recorded result; a
/// short read is gone on with only where more was there.
BlockRead read_whole_blocks(int fd, std::byte* buffer, BlockRange asked, int64_t expected, int64_t block);

/// Writes to the file of a descriptor past its O_DIRECT, and waits until the storage has it. `offset` < 0: at its
/// position, which moves. Bytes written, or -errno.
int64_t write_around_direct(int fd, const std::byte* from, int64_t offset, int64_t size);

}  // namespace reprise

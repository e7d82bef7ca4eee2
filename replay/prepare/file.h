// SPDX-License-Identifier: MIT
// Makes one regular file with its content as fast as the device takes it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "replay/content/compressible.h"
#include "replay/prepare/root_marker.h"

namespace reprise {

/// From this size on, files bypass the page cache: the device gets large requests, no processor time goes into copies,
/// and what is prepared does not sit warm in memory when the replay begins.
inline constexpr uint64_t kDirectFrom = uint64_t{1} << 20;
/// Most bytes of one write; a worker looks for a stop between writes.
inline constexpr size_t kWriteBytes = size_t{4} << 20;

/// Aligned memory for one write of one worker.
class WriteBuffer {
public:
    explicit WriteBuffer(Content content);
    /// Of the file that follows, for Content::recorded: how far it compresses, and its size.
    void compresses(const Compressible& how, uint64_t size) {
        how_ = how;
        size_ = size;
    }
    /// `size` bytes of the content of a file from `offset` (a multiple of kContentUnit) on; size <= kWriteBytes.
    std::span<const std::byte> content(uint64_t seed, uint64_t offset, size_t size);

private:
    struct Free {
        void operator()(std::byte* memory) const;
    };
    Content content_;
    Compressible how_;
    uint64_t size_ = 0;
    std::unique_ptr<std::byte[], Free> memory_;
};

/// Makes room for a file that will be written in pieces, in any order. Until finish_file its size is one byte too
/// large, which tells an interrupted run from a complete one. 0 or -errno.
int begin_file(int fd, uint64_t size);
/// The same without taking room for what is not written.
int begin_sparse_file(int fd, uint64_t size);
/// Makes bytes [from, to) a hole where the file system can.
void punch_hole(int fd, uint64_t from, uint64_t to);
/// Gives a file its size. 0 or -errno.
int finish_file(int fd, uint64_t size);

/// Writes bytes [from, to) of the content; `from` is a multiple of kContentUnit. A descriptor with O_DIRECT may be
/// written up to the next multiple of 4 KiB, and loses the flag where the file system refuses it. Ends early where
/// `stop` is set. Adds to `done`. 0 or -errno.
int write_content(int fd, uint64_t seed, uint64_t from, uint64_t to, WriteBuffer& buffer, const std::atomic<bool>& stop,
                  std::atomic<uint64_t>& done);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Writes the content of one regular file.
#include "replay/prepare/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "replay/content/content.h"

namespace reprise {

namespace {

constexpr size_t kAlignment = 4096;

}  // namespace

void WriteBuffer::Free::operator()(std::byte* memory) const { std::free(memory); }

WriteBuffer::WriteBuffer(Content content)
    : content_(content), memory_(static_cast<std::byte*>(std::aligned_alloc(kAlignment, kWriteBytes))) {
    if (!memory_) {
        throw std::bad_alloc();
    }
    if (content == Content::zero || content == Content::sparse) {
        std::memset(memory_.get(), 0, kWriteBytes);
    }
}

std::span<const std::byte> WriteBuffer::content(uint64_t seed, uint64_t offset, size_t size) {
    const std::span<std::byte> bytes(memory_.get(), size);
    if (content_ == Content::random) {
        fill_random(seed, offset, bytes);
    } else if (content_ == Content::recorded) {
        fill_compressible(seed, offset, size_, how_, bytes);
    }
    return bytes;
}

int begin_file(int fd, uint64_t size) {
    const auto room = static_cast<off_t>(size + 1);
    if (::fallocate(fd, 0, 0, room) == 0) {
        return 0;
    }
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) {
        return -errno;
    }
    return ::ftruncate(fd, room) == 0 ? 0 : -errno;
}

int begin_sparse_file(int fd, uint64_t size) { return ::ftruncate(fd, static_cast<off_t>(size + 1)) == 0 ? 0 : -errno; }

void punch_hole(int fd, uint64_t from, uint64_t to) {
    // Elsewhere it is data, and nobody is worse off than without a hole.
    [[maybe_unused]] const int ignored = ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                                     static_cast<off_t>(from), static_cast<off_t>(to - from));
}

int finish_file(int fd, uint64_t size) { return ::ftruncate(fd, static_cast<off_t>(size)) == 0 ? 0 : -errno; }

int write_content(int fd, uint64_t seed, uint64_t from, uint64_t to, WriteBuffer& buffer, const std::atomic<bool>& stop,
                  std::atomic<uint64_t>& done) {
    const int flags = ::fcntl(fd, F_GETFL);
    bool direct = flags >= 0 && (flags & O_DIRECT) != 0;
    while (from < to && !stop.load(std::memory_order_relaxed)) {
        const auto wanted = static_cast<size_t>(std::min<uint64_t>(to - from, kWriteBytes));
        const size_t size = direct ? (wanted + kAlignment - 1) / kAlignment * kAlignment : wanted;
        const auto bytes = buffer.content(seed, from, size);
        size_t written = 0;
        while (written < size) {
            const ssize_t n = ::pwrite(fd, bytes.data() + written, size - written, static_cast<off_t>(from + written));
            if (n > 0) {
                written += static_cast<size_t>(n);
                // A short direct write may leave the rest unaligned.
                if (!direct || written == size || written % kAlignment == 0) {
                    continue;
                }
            } else if (n < 0 && errno == EINTR) {
                continue;
            } else if (n == 0) {
                return -EIO;
            } else if (errno != EINVAL || !direct) {
                return -errno;
            }
            direct = false;
            if (::fcntl(fd, F_SETFL, flags & ~O_DIRECT) != 0) {
                return -errno;
            }
        }
        from += wanted;
        done.fetch_add(wanted, std::memory_order_relaxed);
    }
    return 0;
}

}  // namespace reprise

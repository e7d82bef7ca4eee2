// SPDX-License-Identifier: MIT
#include "replay/engine/whole_blocks.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

#include "replay/engine/syscalls.h"

namespace reprise {
namespace {

#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN 0x2000u
#endif

bool is_block(int64_t bytes) {
    return bytes > 0 && bytes <= kMostBlock && std::has_single_bit(static_cast<uint64_t>(bytes));
}

}  // namespace

std::optional<int64_t> stated_block(int fd) {
    struct statx stx {};
    const bool asked = sys::aside(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) == 0;
#ifdef STATX_ATTR_DAX  // headers of Linux 6.1 have the fields
    if (asked && (stx.stx_mask & STATX_DIOALIGN) != 0) {
        // Buffers begin at a page.
        const int64_t bytes = stx.stx_dio_mem_align <= kUsualBlock ? stx.stx_dio_offset_align : 0;
        return is_block(bytes) ? bytes : 0;
    }
#endif
    return std::nullopt;
}

int64_t direct_block(int fd) {
    if (const std::optional<int64_t> stated = stated_block(fd)) {
        return *stated;
    }
    alignas(kUsualBlock) std::array<std::byte, 512> memory;
    for (const int64_t bytes : {int64_t{1}, int64_t{512}}) {
        if (sys::aside(SYS_pread64, fd, memory.data(), bytes, bytes) != -EINVAL) {
            return bytes;
        }
    }
    return kUsualBlock;
}

BlockRead read_whole_blocks(int fd, std::byte* buffer, BlockRange asked, int64_t expected, int64_t block) {
    if (asked.offset < 0 || asked.size <= 0 || asked.offset > INT64_MAX - asked.size - block) {
        return {sys::call(SYS_pread64, fd, buffer, asked.size, asked.offset), 0};
    }
    const BlockRange whole = asked.around(block);
    const int64_t from = whole.offset, to = whole.offset + whole.size;
    const int64_t needed = asked.offset + std::clamp<int64_t>(expected, 0, asked.size);
    int64_t got = 0;
    for (;;) {
        const int64_t n = sys::call(SYS_pread64, fd, buffer + got, to - from - got, from + got);
        if (n < 0) {
            return {n, got};
        }
        got += n;
        if (n == 0 || n % block != 0 || from + got >= needed || from + got >= to) {
            break;
        }
    }
    return {std::clamp<int64_t>(from + got - asked.offset, 0, asked.size), got};
}

int64_t write_around_direct(int fd, const std::byte* from, int64_t offset, int64_t size) {
    const int64_t flags = sys::aside(SYS_fcntl, fd, F_GETFL, 0);
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), "/proc/self/fd/%d", fd);
    constexpr int64_t kKept = O_ACCMODE | O_APPEND | O_NOATIME;
    const auto again = static_cast<int>(
        flags < 0 ? flags : sys::aside(SYS_openat, AT_FDCWD, name.data(), (flags & kKept) | O_DSYNC | O_CLOEXEC, 0));
    if (again < 0) {
        return again;
    }
    int64_t result = 0;
    if (offset >= 0) {
        result = sys::call(SYS_pwrite64, again, from, size, offset);
    } else {
        sys::aside(SYS_lseek, again, sys::aside(SYS_lseek, fd, 0, SEEK_CUR), SEEK_SET);
        result = sys::call(SYS_write, again, from, size);
        sys::aside(SYS_lseek, fd, sys::aside(SYS_lseek, again, 0, SEEK_CUR), SEEK_SET);
    }
    sys::aside(SYS_close, again);
    return result;
}

}  // namespace reprise

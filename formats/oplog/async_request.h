// SPDX-License-Identifier: MIT
// The numbers of io_uring and libaio requests that the replay performs, as the kernel's ABI fixes them.
#pragma once

#include <cstdint>

namespace reprise {

/// linux/io_uring.h, io_uring_op
enum UringOp : int64_t {
    kUringNop = 0,
    kUringReadv = 1,
    kUringWritev = 2,
    kUringFsync = 3,
    kUringReadFixed = 4,
    kUringWriteFixed = 5,
    kUringSyncFileRange = 8,
    kUringFallocate = 17,
    kUringRead = 22,
    kUringWrite = 23,
    kUringFadvise = 24,
};

/// linux/aio_abi.h, IOCB_CMD_*
enum AioOp : int64_t {
    kAioPread = 0,
    kAioPwrite = 1,
    kAioFsync = 2,
    kAioFdsync = 3,
    kAioNoop = 6,
    kAioPreadv = 7,
    kAioPwritev = 8,
};

inline bool uring_alters(int64_t code) {
    return code == kUringWritev || code == kUringWriteFixed || code == kUringWrite || code == kUringFallocate;
}
inline bool aio_alters(int64_t code) { return code == kAioPwrite || code == kAioPwritev; }

}  // namespace reprise

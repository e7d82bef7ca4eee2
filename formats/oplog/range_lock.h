// SPDX-License-Identifier: MIT
// Locks on ranges of a file (fcntl: F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW), as the flags of their ops have them.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace reprise {

/// Bytes [from, to) of a file.
struct RangeLock {
    static constexpr int64_t kToEnd = INT64_MAX;  // of a file of any length
    int type = F_UNLCK;                           // F_RDLCK, F_WRLCK, F_UNLCK
    int64_t from = 0, to = kToEnd;

    bool overlaps(const RangeLock& other) const { return from < other.to && other.from < to; }
    bool operator==(const RangeLock&) const = default;
};

inline bool locks_range(int64_t command) {
    return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

/// Bits 0 and 1: the type and one; 2 to 41: where it begins; from 42: how many bytes, 0: to the end. A range that this
/// has no room for becomes one to the end. Never 0.
inline int64_t pack(const RangeLock& lock) {
    constexpr int64_t kMostFrom = (int64_t{1} << 40) - 1, kMostBytes = (int64_t{1} << 21) - 1;
    const int64_t from = std::clamp<int64_t>(lock.from, 0, kMostFrom);
    const bool exact = from == lock.from && lock.to > from && lock.to - from <= kMostBytes;
    return (lock.type + 1) | from << 2 | (exact ? lock.to - from : 0) << 42;
}

/// None: the log does not say.
inline std::optional<RangeLock> unpack_range_lock(int64_t flags) {
    constexpr int64_t kFrom = (int64_t{1} << 40) - 1;
    const int64_t type = flags & 3, from = flags >> 2 & kFrom, bytes = flags >> 42;
    if (type == 0 || flags < 0) {
        return std::nullopt;
    }
    return RangeLock{static_cast<int>(type) - 1, from, bytes == 0 ? RangeLock::kToEnd : from + bytes};
}

/// What struct flock says: `start` from where `whence` counts, with the position and the size of the file, bytes.
inline RangeLock range_lock_of(int64_t type, int64_t whence, int64_t start, int64_t bytes, int64_t position,
                               int64_t size) {
    const int64_t base = whence == SEEK_CUR ? position : whence == SEEK_END ? size : 0;
    int64_t from = 0;
    if (__builtin_add_overflow(std::max<int64_t>(base, 0), start, &from)) {
        from = start < 0 ? 0 : INT64_MAX;
    }
    int64_t to = RangeLock::kToEnd;
    if (bytes != 0 && __builtin_add_overflow(from, bytes, &to)) {
        to = bytes < 0 ? 0 : RangeLock::kToEnd;
    }
    return {static_cast<int>(type), std::max<int64_t>(std::min(from, to), 0),
            bytes == 0 ? RangeLock::kToEnd : std::max<int64_t>(std::max(from, to), 0)};
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// How much of an open file is in the page cache, and changing that.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "formats/support/range_set.h"

namespace reprise {

/// Of the ranges, which end with the file. None where the kernel does not tell this user: a file that is neither their
/// own nor writable for them.
std::optional<uint64_t> resident_bytes(int fd, const RangeSet& ranges);

// The two ways it is found out, apart for tests. Bytes, or -errno.

/// Linux 6.5. On overlayfs it knows nothing of the data, which the file below has.
int64_t resident_by_cachestat(int fd, uint64_t from, uint64_t to);
/// For others' files it says that everything is there.
int64_t resident_by_mincore(int fd, uint64_t from, uint64_t to);

/// Whether the file lies in memory and on no device: tmpfs, ramfs, hugetlbfs.
bool lies_in_memory(int fd);

/// Takes the whole file out of the page cache, as far as the kernel does it: not pages that are dirty, under
/// writeback, mapped, or locked. 0 or -errno.
int drop_cached(int fd);

/// Reads bytes [from, to) of the file, and no others, into the page cache, past nothing that is in it. Ends early where
/// `stop` is set. Adds to `done`. 0 or -errno.
int fill_cache(int fd, uint64_t from, uint64_t to, const std::atomic<bool>& stop, std::atomic<uint64_t>& done);

/// Why pages of the file are in memory after drop_cached, in words.
std::string why_cached(int fd);

/// Writes back everything and empties the page cache, the names and the inodes of the whole machine. Throws Error
/// (machine) where this user may not.
void drop_machine_caches();

}  // namespace reprise

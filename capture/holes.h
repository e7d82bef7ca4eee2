// SPDX-License-Identifier: MIT
// Holes of the files that a recording names.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "formats/oplog/oplog.h"
#include "formats/support/range_set.h"

namespace reprise {

/// What a reader of the file gets without its device: holes, and what is preallocated and not written; nothing where
/// the file system does not say. Adds what is compressed, bytes of the file.
RangeSet holes_of(int fd, uint64_t size, uint64_t& compressed);

/// Whether what stat() says is the device that the kernel's own programs saw. The kernel knows one device of a btrfs,
/// and tells users another one for each subvolume; neither has a major number.
bool is_device(dev_t seen, uint64_t recorded);

/// Asks for the holes of the job's files, while they are as the job left them, the largest first and for at most two
/// seconds; keeps where they are, and in the header how many files have fewer blocks even so, and how much fewer. Files
/// that are gone, or others now, do not count.
void note_holes(LogWriter& writer);

}  // namespace reprise

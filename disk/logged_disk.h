// SPDX-License-Identifier: MIT
// A disk in a file, served by FUSE as one file for a loop device: every write that it is given goes to its image and to
// a log (disk/write_log.h).
#pragma once

#include <filesystem>

namespace reprise {

/// What the file is called.
inline constexpr const char* kDiskName = "disk";

/// Serves `image` at `folder` until that is unmounted; then 0. Writes go to `log`, too. Throws Error (machine) where it
/// cannot, or where this build has no libfuse3.
int serve_disk(const std::filesystem::path& image, const std::filesystem::path& log,
               const std::filesystem::path& folder);

/// Whether this build can.
bool can_serve_disks();

}  // namespace reprise

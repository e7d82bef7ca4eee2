// SPDX-License-Identifier: MIT
// Which file system a directory lies on, and how it is mounted: runs on another one are other runs.
#pragma once

#include <filesystem>
#include <string>

namespace reprise::cli {

/// "ext4 (rw,relatime, id 8d1f3c0e27aa91b4, made 2026-11-25 02:53:02)", the same after the same file system was mounted
/// anew. As much of it as the kernel tells.
std::string file_system_of(const std::filesystem::path& folder);

}  // namespace reprise::cli

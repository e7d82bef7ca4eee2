// SPDX-License-Identifier: MIT
// Which part of a path below /proc and /sys is of the kernel's naming.
#pragma once

#include <cstddef>
#include <string_view>

namespace reprise {

/// Bytes at the path's begin that hold the kernel's own names only, up to and with a slash or to the end. What follows
/// a link to the job's files (cwd, root, fd/3, map_files/...) is the job's, and so is any name that is not known. 0
/// elsewhere than below /proc, /sys and /dev/fd.
size_t kernels_own(std::string_view path);

}  // namespace reprise

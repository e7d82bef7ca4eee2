// SPDX-License-Identifier: MIT
// Files of our own making: made anew, never through a link that somebody else has put there.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "formats/support/end_signals.h"
#include "formats/support/unique_fd.h"

namespace reprise {

/// Opens `path` for writing as a new, empty file. A regular file of an earlier run or a symbolic link that has the name
/// is removed first, so that nothing else is ever written to; a device, pipe or socket is opened as it is. Not valid,
/// with errno set, where that fails: EBUSY where another process (or writer) has such a file in the making.
UniqueFd create_new_file(const std::filesystem::path& path, mode_t mode = 0666);

/// Throws Error (usage) where writing `path` would replace a file and `overwrite` is not set, and where it is a
/// directory or empty. Devices, pipes, sockets and "-" are written to, not replaced.
void check_output(const std::filesystem::path& path, bool overwrite);

/// While what this returns lives, a signal that ends the process removes the file first: it is not whole.
UndoneAtEnd unfinished_file(const std::filesystem::path& path);

/// A directory of our own in the directory for temporary files, removed with all that is in it. Throws Error (machine).
class ScratchDir {
public:
    ScratchDir();
    ~ScratchDir();
    ScratchDir(const ScratchDir&) = delete;
    ScratchDir& operator=(const ScratchDir&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace reprise

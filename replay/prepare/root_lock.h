// SPDX-License-Identifier: MIT
// Keeps two runs out of one root: a lock on its marker file.
#pragma once

#include <string_view>

#include "formats/support/error.h"
#include "formats/support/unique_fd.h"

namespace reprise {

/// An flock(2) of the marker file. The kernel drops it when the last process that holds it has ended, however it ended.
class RootLock {
public:
    enum class Kind { shared, exclusive };  ///< shared: runs that modify nothing
    RootLock() = default;

    /// Takes the lock, or throws root_in_use() where another process has one that excludes it; never waits. A root
    /// without a marker is not locked, nor is one on a file system without locks.
    static RootLock take(int root, std::string_view root_name, Kind kind);

    /// Locks `file`, which is about to become the marker, and holds that from now on. `file` stays the caller's.
    void move_to(int file);
    bool has_marker() const { return file_.valid(); }

private:
    UniqueFd file_;
};

Error root_in_use(std::string_view root_name);

}  // namespace reprise

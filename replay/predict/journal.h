// SPDX-License-Identifier: MIT
// What a sync writes beside a file's data: the file system's journal has names and sizes that changed since the last
// one.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "formats/oplog/op.h"

namespace reprise {

/// ext4 (jbd2) writes whole blocks, each a request: a descriptor and a commit, the blocks of the inode and of the
/// bitmap that a longer file changes, and for each new or removed name about one and a half of inodes and directories
/// (measured: docs/predict.md). What others log is not known here, but counted.
class Journal {
public:
    explicit Journal(const std::string& file_system) : blocks_(file_system == "ext4" || file_system == "ext3") {}

    void changed_name() { ++names_; }
    /// `size`: that the file had at first, bytes; an offset below 0: at its end.
    void wrote(FileId file, int64_t size, int64_t offset, int64_t bytes);
    struct Logged {
        bool any = false;    // names or a size changed
        int64_t blocks = 0;  // that the device writes for it, where that is known
    };
    /// What a sync of the file, or of all, logs now.
    Logged sync(FileId file);
    Logged sync_all();
    /// Blocks that it would have been on ext4.
    int64_t unknown() const { return unknown_; }

private:
    struct Size {
        int64_t synced = 0, now = 0;
    };
    Logged logged(bool grown);

    const bool blocks_;
    int64_t names_ = 0;  // changed since the last sync
    int64_t unknown_ = 0;
    std::unordered_map<FileId, Size> sizes_;
};

}  // namespace reprise

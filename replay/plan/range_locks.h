// SPDX-License-Identifier: MIT
// The order in which locks on ranges of files (fcntl) changed hands in the recording.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "formats/oplog/oplog.h"
#include "formats/oplog/range_lock.h"

namespace reprise {

/// An op that took or gave back a lock of a file.
struct LockSource {
    TaskId task = 0;
    uint64_t op = 0;
    int64_t end = 0;
};

/// Whose a lock is: a process's, which loses it with any of its descriptors of the file, or an open instance's (OFD).
struct LockOwner {
    bool instance = false;
    uint32_t id = 0;

    bool operator==(const LockOwner&) const = default;
};

class RangeLocks {
public:
    /// A call that took, changed or gave back a lock. The ops that it has to wait for.
    std::vector<LockSource> set(FileId file, LockOwner owner, const RangeLock& lock, const LockSource& by);
    /// A call that was refused as another had the lock: it comes after that one got it, and before it gives it back.
    std::vector<LockSource> refused(FileId file, LockOwner owner, const RangeLock& lock, const LockSource& by,
                                    int64_t begin);
    /// All that the owner has of the file. The ops that this has to wait for.
    std::vector<LockSource> give_back(FileId file, LockOwner owner, const LockSource& by);
    /// The same of all files.
    std::vector<LockSource> give_back(LockOwner owner, const LockSource& by);

private:
    struct Hold {
        LockOwner owner;
        RangeLock lock;
        LockSource by;
        std::vector<LockSource> refused;  // others that asked meanwhile
    };
    struct Free {
        LockOwner owner;
        RangeLock lock;  // as it was held
        LockSource by;
    };
    struct File {
        std::vector<Hold> holds;
        std::vector<Free> freed;
    };
    static void free(File& file, const Hold& hold, const RangeLock& part, const LockSource& by);
    static void give_back(File& file, LockOwner owner, const LockSource& by, std::vector<LockSource>& waits);

    std::unordered_map<FileId, File> files_;
};

}  // namespace reprise

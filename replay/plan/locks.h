// SPDX-License-Identifier: MIT
// The order in which the locks of files changed hands in the recording: flock, and ranges by fcntl. Whoever had a lock
// had to wait for the release before it; a replay in which another comes first waits for a holder that waits for
// something else, or does under its lock what came later.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "formats/oplog/oplog.h"
#include "replay/plan/edges_rules.h"
#include "replay/plan/range_locks.h"

namespace reprise {

class LockOrder {
public:
    using Source = LockSource;
    /// `locked` by handle: 1 where the log asks for a lock through it. `same_file` by file: the one that stands for all
    /// names of it. `tasks` by process: those that have ops.
    LockOrder(const Tables& tables, const std::vector<uint8_t>& locked, const std::vector<FileId>& same_file,
              std::vector<uint32_t> tasks);

    /// Whether an op may matter here.
    bool follows(OpKind kind, HandleId handle) const {
        return any_ && (kind == OpKind::exit || kind == OpKind::exec || follows(handle));
    }
    /// An op that gets a lock: acquired() is due at its end.
    bool acquires(const OpRef& op) const;
    /// Any other op, in the order of their begins. The ops that it has to wait for.
    std::vector<Source> see(TaskId task, ProcessId process, const OpRef& op);
    /// A process has been made: it has what its parent has open.
    void forked(ProcessId parent, ProcessId child);
    /// The ops that it has to wait for.
    std::vector<Source> acquired(TaskId task, ProcessId process, const OpRef& op);

private:
    /// An open instance, and the descriptors of it: a lock ends with the last one.
    struct Instance {
        std::map<ProcessId, std::map<int64_t, bool>> open;  // number, close-on-exec
    };
    struct Hold {
        bool exclusive = false;
        Source by;
        std::vector<Source> refused;  // others that asked meanwhile and did not wait
    };
    struct Lock {
        Source exclusive_release;  // task 0: none
        std::vector<Source> shared_releases;
        std::map<HandleId, Hold> holds;
    };
    bool follows(HandleId handle) const { return handle < locked_.size() && locked_[handle] != 0; }
    Lock& lock_of(HandleId handle);
    FileId file_of(HandleId handle) const;
    /// A call that changes a lock on a range or is refused one.
    void see_range(ProcessId process, const OpRef& op, const Source& self, std::vector<Source>& waits);
    void release(HandleId handle, const Source& by, std::vector<Source>& waits);
    void refused(const OpRef& op, const Source& self, std::vector<Source>& waits);
    /// Releases the locks of instances that nobody has open any longer.
    template <typename Closes>
    void close_in(ProcessId process, const Source& by, std::vector<Source>& waits, Closes&& closes);

    const Tables& tables_;
    const std::vector<uint8_t>& locked_;
    const std::vector<FileId>& same_file_;
    std::vector<uint32_t> tasks_;  // by process: those that have not ended
    bool any_ = false;
    std::map<HandleId, Instance> instances_;
    std::unordered_map<FileId, Lock> locks_;
    RangeLocks ranges_;
};

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Locks that are held during calls on files: of the threads that share one, a single one reads or writes at a time.
//
// A recording shows such a lock only where somebody had to wait for it; on slower storage it is held for longer, and
// waited for more often. So its waits are no causes, but the lock is one. That it is held during calls, the waits say
// (kWaitHeldInCalls); which calls it guards follows from what never overlaps, although it would by chance.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

struct Plan;

/// Calls of several tasks, in the order of their begins: does one of them at most go on at a time?
class Overlaps {
public:
    void see(TaskId task, int64_t begin, int64_t duration);
    /// Hardly any overlap, where many would by chance.
    bool never() const;
    uint64_t calls() const { return calls_; }

private:
    struct Of {
        double calls = 0, busy_ns = 0;
    };
    struct Running {
        TaskId task;
        int64_t end;
    };
    std::map<TaskId, Of> tasks_;
    std::vector<Running> running_;
    int64_t first_ = 0, last_ = 0;
    uint64_t calls_ = 0, found_ = 0;
};

/// The lock that calls on an open instance hold: 0 none, else from 1 on. By the tasks that share it.
struct Guard {
    std::vector<uint16_t> of_handle;

    uint32_t of(const OpBlock& block, size_t i) const {
        const uint32_t handle = block.handle[i];
        return handle < of_handle.size() && works_on_data(static_cast<OpKind>(block.kind[i])) ? of_handle[handle] : 0;
    }
};

/// Fewer waits for what is held during calls say nothing.
inline constexpr uint64_t kLeastGuardedWaits = 8;
/// So many locks have a word of their own in a run; further ones share them.
inline constexpr uint32_t kMostGuards = 63;

/// Fills in Plan::guards and TaskPlan::guard. Reads the blocks of processes twice more whose threads waited that way,
/// and those of single threads that did (semaphores between processes); nothing where there are none.
void find_guards(Plan& plan);

}  // namespace reprise

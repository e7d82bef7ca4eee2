// SPDX-License-Identifier: MIT
#include "replay/plan/locks.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

namespace reprise {
namespace {

/// None: no lock on a range, or the log does not say of which.
std::optional<RangeLock> range_of(const OpRef& op) {
    return locks_range(op.arg) ? unpack_range_lock(op.flags) : std::nullopt;
}

LockOwner owner_of(ProcessId process, const OpRef& op) {
    const bool instance = op.arg == F_OFD_SETLK || op.arg == F_OFD_SETLKW;
    return {instance, instance ? op.handle : process};
}

void append(std::vector<LockSource>& to, const std::vector<LockSource>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

LockOrder::LockOrder(const Tables& tables, const std::vector<uint8_t>& locked, const std::vector<FileId>& same_file,
                     std::vector<uint32_t> tasks)
    : tables_(tables), locked_(locked), same_file_(same_file), tasks_(std::move(tasks)) {
    for (HandleId handle = 1; handle < locked_.size(); ++handle) {
        if (locked_[handle] == 0) {
            continue;
        }
        any_ = true;
        const HandleRow& row = tables_.handles[handle];
        if (row.inherited && row.fd >= 0) {
            instances_[handle].open[row.process][row.fd] = false;
        }
    }
}

FileId LockOrder::file_of(HandleId handle) const {
    const FileId file = tables_.handles[handle].file;
    return file < same_file_.size() ? same_file_[file] : file;
}

LockOrder::Lock& LockOrder::lock_of(HandleId handle) { return locks_[file_of(handle)]; }

bool LockOrder::acquires(const OpRef& op) const {
    if (op.kind == OpKind::fcntl && op.result == 0 && follows(op.handle)) {
        const std::optional<RangeLock> lock = range_of(op);
        return lock && lock->type != F_UNLCK;
    }
    return op.kind == OpKind::flock && op.result == 0 && (op.arg & (LOCK_SH | LOCK_EX)) != 0 && follows(op.handle);
}

void LockOrder::see_range(ProcessId process, const OpRef& op, const Source& self, std::vector<Source>& waits) {
    const std::optional<RangeLock> lock = range_of(op);
    if (!lock) {
        return;
    }
    const FileId file = file_of(op.handle);
    const LockOwner owner = owner_of(process, op);
    if (op.result == 0) {
        append(waits, ranges_.set(file, owner, *lock, self));
    } else if (op.result == -EAGAIN || op.result == -EACCES) {
        append(waits, ranges_.refused(file, owner, *lock, self, op.begin));
    }
}

std::vector<LockOrder::Source> LockOrder::see(TaskId task, ProcessId process, const OpRef& op) {
    std::vector<Source> waits;
    const Source self{task, op.op, op.end};
    if (op.kind == OpKind::exec && op.result >= 0) {
        close_in(process, self, waits, [](bool at_exec) { return at_exec; });
    } else if (op.kind == OpKind::exit) {
        if (process < tasks_.size() && tasks_[process] != 0 && --tasks_[process] == 0) {
            close_in(process, self, waits, [](bool) { return true; });
            append(waits, ranges_.give_back(LockOwner{false, process}, self));
        }
    }
    if (!follows(op.handle)) {
        return waits;
    }
    Instance& instance = instances_[op.handle];
    if (op.kind == OpKind::open || op.kind == OpKind::dup) {
        if (op.result >= 0) {
            instance.open[process][op.result] = (op.flags & O_CLOEXEC) != 0;
        }
    } else if (op.kind == OpKind::fcntl && op.arg == F_SETFD && op.result >= 0) {
        instance.open[process][op.fd] = (op.flags & FD_CLOEXEC) != 0;
    } else if (op.kind == OpKind::fcntl) {
        see_range(process, op, self, waits);
    } else if (info(op.kind).is(Trait::ends_handle)) {
        append(waits, ranges_.give_back(file_of(op.handle), LockOwner{false, process}, self));
        const auto here = instance.open.find(process);
        if (here != instance.open.end() && here->second.erase(op.fd) != 0 && here->second.empty()) {
            instance.open.erase(here);
            if (instance.open.empty()) {
                instances_.erase(op.handle);
                release(op.handle, self, waits);
            }
        }
    } else if (op.kind == OpKind::flock && op.result == 0 && (op.arg & LOCK_UN) != 0) {
        release(op.handle, self, waits);
    } else if (op.kind == OpKind::flock && op.result == -EWOULDBLOCK) {
        refused(op, self, waits);
    }
    return waits;
}

void LockOrder::forked(ProcessId parent, ProcessId child) {
    for (auto& [handle, instance] : instances_) {
        const auto open = instance.open.find(parent);
        if (open != instance.open.end()) {
            instance.open[child] = std::map<int64_t, bool>(open->second);
        }
    }
}

template <typename Closes>
void LockOrder::close_in(ProcessId process, const Source& by, std::vector<Source>& waits, Closes&& closes) {
    std::vector<HandleId> ended;
    for (auto& [handle, instance] : instances_) {
        const auto here = instance.open.find(process);
        if (here == instance.open.end()) {
            continue;
        }
        std::erase_if(here->second, [&](const auto& descriptor) { return closes(descriptor.second); });
        if (here->second.empty()) {
            instance.open.erase(here);
        }
        if (instance.open.empty()) {
            ended.push_back(handle);
        }
    }
    for (const HandleId handle : ended) {
        instances_.erase(handle);
        release(handle, by, waits);
    }
}

void LockOrder::release(HandleId handle, const Source& by, std::vector<Source>& waits) {
    append(waits, ranges_.give_back(file_of(handle), LockOwner{true, handle}, by));
    Lock& lock = lock_of(handle);
    const auto hold = lock.holds.find(handle);
    if (hold == lock.holds.end()) {
        return;
    }
    waits.insert(waits.end(), hold->second.refused.begin(), hold->second.refused.end());
    if (hold->second.exclusive) {
        lock.exclusive_release = by;
    } else {
        lock.shared_releases.push_back(by);
    }
    lock.holds.erase(hold);
}

/// Was refused as another had the lock: it comes after that one got it, and before it gives it back.
void LockOrder::refused(const OpRef& op, const Source& self, std::vector<Source>& waits) {
    for (auto& [handle, hold] : lock_of(op.handle).holds) {
        if (handle == op.handle || (!hold.exclusive && (op.arg & LOCK_EX) == 0)) {
            continue;
        }
        if (hold.by.end <= op.begin) {
            waits.push_back(hold.by);
        }
        std::erase_if(hold.refused, [&](const Source& other) { return other.task == self.task; });
        hold.refused.push_back(self);
    }
}

std::vector<LockOrder::Source> LockOrder::acquired(TaskId task, ProcessId process, const OpRef& op) {
    std::vector<Source> waits;
    if (op.kind == OpKind::fcntl) {
        see_range(process, op, {task, op.op, op.end}, waits);
        return waits;
    }
    Lock& lock = lock_of(op.handle);
    const Source self{task, op.op, op.end};
    const bool exclusive = (op.arg & LOCK_EX) != 0;
    if (lock.exclusive_release.task != 0) {
        waits.push_back(lock.exclusive_release);
    }
    if (exclusive) {
        waits.insert(waits.end(), lock.shared_releases.begin(), lock.shared_releases.end());
        lock.shared_releases.clear();
    }
    Hold& hold = lock.holds[op.handle];
    if (hold.exclusive && !exclusive) {
        lock.exclusive_release = self;  // others may share it from here on
    }
    hold = {exclusive, self, {}};
    return waits;
}

}  // namespace reprise

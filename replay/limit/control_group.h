// SPDX-License-Identifier: MIT
// A control group of a run's own: where the kernel lets one be made, its limits, what it counted, its removal.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/own_groups.h"
#include "formats/support/end_signals.h"
#include "formats/support/unique_fd.h"
#include "replay/limit/io_limits.h"

namespace reprise {

enum class Controller : uint8_t { memory, io };

/// A folder of control groups that has a controller.
struct GroupFolder {
    int version = 0;  // 1 or 2
    std::filesystem::path parent;
    std::filesystem::path own;  // this process's group
    bool enable = false;        // version 2: the parent does not hand the controller on yet, and may be asked to
    bool own_shown = true;      // else `own` is the mount, as a container does not show the group

    bool operator==(const GroupFolder&) const = default;
};

/// Where a group with that controller can be made: below this process's own group where that is possible, else as near
/// to it as possible. None: the controller is not mounted.
std::optional<GroupFolder> find_group_folder(Controller controller, const GroupTexts& texts);

/// What a group's memory is used for, bytes.
struct GroupMemory {
    uint64_t used = 0;     // all of it, page cache included
    uint64_t peak = 0;     // most of `used` so far; 0: the kernel does not tell
    uint64_t reached = 0;  // times that the limit was reached
    uint64_t killed = 0;   // processes, for want of memory
};

/// Made with limits, removed with this, and when a signal ends this process. What a killed reprise left behind is
/// removed when the next group is made. A group that a process still is in stays, and is said by remove().
class ControlGroup {
public:
    /// Throws Error (machine) where no group can be made, and says what to do.
    explicit ControlGroup(std::optional<uint64_t> memory_limit);
    ~ControlGroup();
    ControlGroup(const ControlGroup&) = delete;
    ControlGroup& operator=(const ControlGroup&) = delete;

    /// Throws Error (machine) where the kernel does not take them. `device`: of the whole disk. Where this process's
    /// own group has stricter ones, these.
    void limit_io(const IoLimits& limits, dev_t device);

    /// Has the kernel count what its processes read, where that takes no more than a group, and no limit of this
    /// process's own group is lost by it.
    void count_io();
    /// Limits of I/O of this process's own group that hold in this one, too, by disk: it was given them.
    const DiskLimits& kept_io() const { return kept_io_; }
    /// Why limits of this process's own group do not, or may not, hold in this one; empty: they do.
    const std::string& lost_io() const { return lost_io_; }
    /// What they have read of a disk so far, bytes. None: nothing yet, or nobody counts, as with version 1 and a disk
    /// that no group has limited since it was there.
    std::optional<uint64_t> read_bytes(dev_t device) const;

    /// Moves this process in, and all that it forks from then on. Nothing but a write: may be called after a fork.
    bool enter() const;
    /// Back to where it was. Throws Error (machine).
    void leave() const;

    /// Anonymous and shared memory of its processes, bytes; 0 without a memory controller.
    uint64_t held() const;
    /// None where it has no memory controller, or its files cannot be read.
    std::optional<GroupMemory> memory() const;
    int version() const { return places_.empty() ? 0 : places_.front().version; }
    const std::string& name() const { return name_; }
    /// Why it cannot be removed; empty: it is.
    std::string remove();

private:
    struct Place {
        Controller controller;
        int version = 0;
        std::filesystem::path path, home;  // where this process was before
        UniqueFd processes;                // its cgroup.procs
        std::filesystem::path enabled;     // version 2: whose cgroup.subtree_control was changed
        UndoneAtEnd unfinished;
    };
    std::optional<GroupFolder> folder_for(Controller controller) const;
    Place& add(Controller controller);
    const Place* place(Controller controller) const;
    /// Whether this process leaves its own group of I/O for the places that there are now.
    bool leaves(const GroupFolder& io) const;
    /// Throws Error (machine).
    static void put_limits(const Place& io, dev_t disk, const IoLimits& limits);
    void keep(const DiskLimits& limits);
    std::string remove_last();

    std::string name_;
    std::vector<Place> places_;
    DiskLimits kept_io_;
    std::string lost_io_;
};

/// Removes the groups that reprise processes which are gone left below `parent`. How many.
size_t remove_left_groups(const std::filesystem::path& parent);

}  // namespace reprise

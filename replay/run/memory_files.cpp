// SPDX-License-Identifier: MIT
#include "replay/run/memory_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include "formats/support/error.h"
#include "formats/support/path.h"
#include "formats/support/unique_fd.h"
#include "replay/plan/paths.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kShared = "/dev/shm";

/// Files that the run may use whose place is below `directory`, relative to the root.
size_t files_below(const Plan& plan, std::string_view directory) {
    size_t found = 0;
    for (FileId file = 1; file < plan.paths.size(); ++file) {
        const char* const relative = plan.paths[file].relative;
        found += relative != nullptr && plan.keeps_file(file) && lies_below(relative, directory) ? 1 : 0;
    }
    return found;
}

/// The user's own choice, in `prepare` or now.
bool has_place(const PathMap& maps) {
    return std::any_of(maps.rules().begin(), maps.rules().end(),
                       [](const PathMap::Rule& rule) { return is_or_lies_below(rule.from, kShared); });
}

/// The directory as it is seen now; links on the way to it below the root are not followed.
UniqueFd open_place(const fs::path& root, const std::string& relative) {
    const UniqueFd top(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return UniqueFd(open_beneath(top.get(), relative.c_str(), O_PATH | O_DIRECTORY, 0, Links::refuse));
}

std::string magic_link(const UniqueFd& place) { return "/proc/self/fd/" + std::to_string(place.get()); }

bool in_memory(const UniqueFd& place) {
    struct statfs found {};
    return fstatfs(place.get(), &found) == 0 && (found.f_type == TMPFS_MAGIC || found.f_type == RAMFS_MAGIC);
}

/// 0 or errno.
int mount_here(const fs::path& root, const std::string& relative) {
    // A slave: what the machine mounts later still shows, and nothing goes back.
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
        return errno;
    }
    const UniqueFd place = open_place(root, relative);  // one from before belongs to the machine's namespace
    return mount("reprise", magic_link(place).c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") == 0 ? 0 : errno;
}

}  // namespace

MemoryFiles::MemoryFiles(const Plan& plan, const fs::path& root) {
    const auto relative = plan.maps.map(kShared);
    if (!relative || has_place(plan.maps)) {
        return;
    }
    const size_t files = files_below(plan, *relative);
    const UniqueFd there = open_place(root, *relative);
    if (files == 0 || there.get() < 0 || in_memory(there)) {
        return;
    }
    place_ = root / *relative;
    const std::string what =
        std::to_string(files) + " files of /dev/shm, which is memory, lie on the storage of the root";
    const std::string todo = "mount a tmpfs at " + escape_line(place_.string());
    std::error_code error;
    if (!fs::is_empty(magic_link(there), error) || error) {
        note_ =
            what + ", as some were there before: " + todo + " and prepare again, or reset it if they are a replay's.";
        return;
    }
    if (const int why = mount_here(root, *relative); why != 0) {
        note_ = what + ": " + todo + ", or let the replay do it as root (" + std::strerror(why) + ").";
        return;
    }
    mounted_ = true;
}

MemoryFiles::~MemoryFiles() {
    if (mounted_) {
        umount2(place_.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    }
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/prepare/root_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "replay/plan/paths.h"

namespace reprise {
namespace {

/// NFS locks exclusively only what is open for writing.
int open_marker(int root) {
    const std::string name(kMarkerName);
    const int file = open_beneath(root, name.c_str(), O_RDWR | O_NONBLOCK, 0, Links::refuse);
    return file == -EACCES || file == -EROFS ? open_beneath(root, name.c_str(), O_RDONLY | O_NONBLOCK, 0, Links::refuse)
                                             : file;
}

bool is_marker(int root, int file) {
    struct stat locked {};
    struct stat named {};
    return ::fstat(file, &locked) == 0 &&
           ::fstatat(root, std::string(kMarkerName).c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           locked.st_dev == named.st_dev && locked.st_ino == named.st_ino;
}

}  // namespace

RootLock RootLock::take(int root, std::string_view root_name, Kind kind) {
    const int how = (kind == Kind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB;
    constexpr int kTries = 100;  // a marker is replaced a few times in a run, so that one of these finds it at rest
    for (int i = 0; i < kTries; ++i) {
        RootLock lock;
        lock.file_.reset(open_marker(root));
        if (!lock.has_marker()) {
            return {};
        }
        const bool locked = ::flock(lock.file_.get(), how) == 0;
        if (!locked && errno == EWOULDBLOCK) {
            break;
        }
        if (is_marker(root, lock.file_.get())) {
            return lock;
        }
    }
    throw root_in_use(root_name);
}

void RootLock::move_to(int file) {
    file_.reset(::fcntl(file, F_DUPFD_CLOEXEC, 0));
    (void)::flock(file_.get(), LOCK_EX | LOCK_NB);
}

Error root_in_use(std::string_view root_name) {
    return machine_error("the root " + escape_line(root_name) + " is in use by another reprise process",
                         "wait until that run has ended, or use a root of its own for each run");
}

}  // namespace reprise

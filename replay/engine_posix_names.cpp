// Owns the calls that name files by path. The directory is resolved beneath the root by the kernel; the call then
// names the last component in it and never follows it, or acts on what openat2 found.
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "replay/engine_posix.h"

#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

namespace reprise {
namespace {

constexpr int64_t kNoFollow = AT_SYMLINK_NOFOLLOW;

struct Temporary {
    explicit Temporary(int descriptor) : fd(descriptor) {}
    ~Temporary() {
        if (fd >= 0) {
            ::close(fd);
        }
    }
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;
    int fd;
};

}  // namespace

int64_t PosixEngine::by_path(const OpBlock& b, size_t i, OpKind kind) {
    const FileId file = b.file[i];
    if (file == 0 && info(kind).has(Field::handle)) {
        // The variant that acts on an open instance.
        int64_t refusal = 0;
        const int fd = descriptor(b.handle[i], &refusal);
        if (refusal != 0) {
            return refusal;
        }
        struct statx stx {};
        struct statfs fs;
        switch (kind) {
            case OpKind::statx: return sys::call(SYS_statx, fd, "", AT_EMPTY_PATH, b.arg[i], &stx);
            case OpKind::chmod: return sys::call(SYS_fchmod, fd, b.mode[i] & 01777);
            case OpKind::utimens: return sys::call(SYS_utimensat, fd, nullptr, nullptr, 0);
            case OpKind::statfs: return sys::call(SYS_fstatfs, fd, &fs);
            default: break;
        }
        return attribute(b, i, kind, nullptr);
    }
    if (!worker_.plan.keeps_file(file)) {
        return not_performed(LeftOut::filter);
    }
    if (file >= worker_.plan.paths.size() || worker_.plan.paths[file].relative == nullptr) {
        return not_performed(LeftOut::no_place);
    }
    const RootPath& path = worker_.plan.paths[file];
    if (kind == OpKind::access || kind == OpKind::chmod || kind == OpKind::utimens || kind == OpKind::statfs ||
        kind == OpKind::truncate || info(kind).has(Field::handle)) {
        return kind == OpKind::statx ? by_name(b, i, kind, path) : by_resolved(b, i, kind, path);
    }
    return by_name(b, i, kind, path);
}

int64_t PosixEngine::by_name(const OpBlock& b, size_t i, OpKind kind, const RootPath& path) {
    bool temporary = false;
    const int parent = worker_.parent_of(path, &temporary);
    if (parent < 0) {
        return parent;
    }
    const Temporary closes(temporary ? parent : -1);
    const char* const name = path.relative + path.name;
    if (kind == OpKind::stat) {
        struct stat st {};
        const int64_t result = sys::call(SYS_newfstatat, parent, name, &st, kNoFollow);
        const bool follow = result == 0 && S_ISLNK(st.st_mode) && (b.flags[i] & kNoFollow) == 0;
        return follow ? by_resolved(b, i, kind, path) : result;
    }
    if (kind == OpKind::statx) {
        struct statx stx {};
        const int64_t sync = b.flags[i] & AT_STATX_SYNC_TYPE;
        const int64_t result = sys::call(SYS_statx, parent, name, kNoFollow | sync, b.arg[i] | STATX_TYPE, &stx);
        const bool follow = result == 0 && S_ISLNK(stx.stx_mode) && (b.flags[i] & kNoFollow) == 0;
        return follow ? by_resolved(b, i, kind, path) : result;
    }
    if (kind == OpKind::readlink) {
        return sys::call(SYS_readlinkat, parent, name, buffer_, read_size(b.size[i]));
    }
    if (kind == OpKind::mkdir) {
        return sys::call(SYS_mkdirat, parent, name, b.mode[i] & 01777);
    }
    if (kind == OpKind::rmdir) {
        return sys::call(SYS_unlinkat, parent, name, AT_REMOVEDIR);
    }
    if (kind == OpKind::unlink) {
        return sys::call(SYS_unlinkat, parent, name, 0);
    }
    if (kind == OpKind::symlink) {
        const Tables& tables = worker_.plan.log->tables();
        const auto target = worker_.plan.maps.map_link(tables.path(b.file[i]), tables.strings[b.text[i]]);
        return target ? sys::call(SYS_symlinkat, target->c_str(), parent, name) : not_performed(LeftOut::no_place);
    }
    return not_performed(LeftOut::unsupported);
}

int64_t PosixEngine::by_resolved(const OpBlock& b, size_t i, OpKind kind, const RootPath& path) {
    const bool attribute_op = kind == OpKind::getxattr || kind == OpKind::setxattr || kind == OpKind::listxattr ||
                              kind == OpKind::removexattr;
    const bool no_follow = attribute_op ? (b.flags[i] & 1) != 0 : (b.flags[i] & kNoFollow) != 0;
    const int64_t flags =
        kind == OpKind::truncate ? open_flags(O_WRONLY | O_CLOEXEC) : O_PATH | O_CLOEXEC | (no_follow ? O_NOFOLLOW : 0);
    const auto fd = static_cast<int>(open_inside(worker_.root, path.relative, flags, 0));
    if (fd < 0) {
        return fd;
    }
    const Temporary closes(fd);
    if ((kind == OpKind::truncate || kind == OpKind::chmod || kind == OpKind::utimens || kind == OpKind::setxattr) &&
        is_device(fd)) {
        return not_performed(LeftOut::device_node);
    }
    char self[40];
    std::snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    struct stat st;
    struct statx stx {};
    struct statfs fs;
    switch (kind) {
        case OpKind::stat: return sys::call(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH);
        case OpKind::statx: return sys::call(SYS_statx, fd, "", AT_EMPTY_PATH, b.arg[i], &stx);
        case OpKind::access:
            return sys::call(SYS_faccessat2, fd, "", b.mode[i] & 7, AT_EMPTY_PATH | (b.flags[i] & AT_EACCESS));
        case OpKind::truncate: return sys::call(SYS_ftruncate, fd, b.size[i]);
        case OpKind::chmod: return sys::call(SYS_fchmodat, AT_FDCWD, self, b.mode[i] & 01777);
        case OpKind::utimens: return sys::call(SYS_utimensat, AT_FDCWD, self, nullptr, 0);
        case OpKind::statfs: return sys::call(SYS_fstatfs, fd, &fs);
        default: break;
    }
    return attribute(b, i, kind, self);
}

int64_t PosixEngine::attribute(const OpBlock& b, size_t i, OpKind kind, const char* name_of_file) {
    const std::string name(worker_.plan.log->tables().strings[b.text[i]]);
    // Others than these carry privileges.
    const bool harmless = name.starts_with("user.");
    const int fd = worker_.descriptors.get(b.handle[i]);
    const bool by_fd = name_of_file == nullptr;
    if (kind == OpKind::getxattr) {
        return by_fd ? sys::call(SYS_fgetxattr, fd, name.c_str(), buffer_, read_size(b.size[i]))
                     : sys::call(SYS_getxattr, name_of_file, name.c_str(), buffer_, read_size(b.size[i]));
    }
    if (kind == OpKind::listxattr) {
        return by_fd ? sys::call(SYS_flistxattr, fd, buffer_, read_size(b.size[i]))
                     : sys::call(SYS_listxattr, name_of_file, buffer_, read_size(b.size[i]));
    }
    if (!harmless) {
        return not_performed(LeftOut::unsupported);
    }
    const std::byte* const value = worker_.pattern.data();
    if (kind == OpKind::setxattr) {
        return by_fd ? sys::call(SYS_fsetxattr, fd, name.c_str(), value, write_size(b.size[i]), 0)
                     : sys::call(SYS_setxattr, name_of_file, name.c_str(), value, write_size(b.size[i]), 0);
    }
    if (kind == OpKind::removexattr) {
        return by_fd ? sys::call(SYS_fremovexattr, fd, name.c_str())
                     : sys::call(SYS_removexattr, name_of_file, name.c_str());
    }
    return not_performed(LeftOut::unsupported);
}

int64_t PosixEngine::two_names(const OpBlock& b, size_t i, OpKind kind) {
    const auto& paths = worker_.plan.paths;
    for (const FileId file : {b.file[i], b.file2[i]}) {
        if (!worker_.plan.keeps_file(file)) {
            return not_performed(LeftOut::filter);
        }
        if (file >= paths.size() || paths[file].relative == nullptr) {
            return not_performed(LeftOut::no_place);
        }
    }
    const RootPath& from = paths[b.file[i]];
    const RootPath& to = paths[b.file2[i]];
    bool from_temporary = false, to_temporary = false;
    const int from_parent = worker_.parent_of(from, &from_temporary);
    const Temporary closes_from(from_temporary ? from_parent : -1);
    const int to_parent = from_parent < 0 ? -1 : worker_.parent_of(to, &to_temporary);
    const Temporary closes_to(to_temporary ? to_parent : -1);
    if (from_parent < 0 || to_parent < 0) {
        return from_parent < 0 ? from_parent : to_parent;
    }
    const char* const name = from.relative + from.name;
    const char* const name2 = to.relative + to.name;
    if (kind == OpKind::link) {
        return sys::call(SYS_linkat, from_parent, name, to_parent, name2, 0);
    }
    return sys::call(SYS_renameat2, from_parent, name, to_parent, name2,
                     b.flags[i] & (RENAME_NOREPLACE | RENAME_EXCHANGE));
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// The calls that name files by path. The directory is resolved beneath the root by the kernel; the call then
// names the last component in it and never follows it, or acts on what openat2 found.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "formats/support/unique_fd.h"
#include "replay/engine/posix.h"

#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

namespace reprise {
namespace {

constexpr int64_t kNoFollow = AT_SYMLINK_NOFOLLOW;

/// A change of owner that changes none is refused to nobody; in the job it may have been.
int64_t refusal_repeated(const OpBlock& b, size_t i, int64_t result) {
    return result == 0 && b.result[i] == -EPERM ? -EPERM : result;
}

/// Refused by the flags of the call, for what the file had or had not, or by the file system of the job: a root's may
/// have other limits.
bool value_refused(int64_t result) {
    return result == -EEXIST || result == -ENODATA || result == -EOPNOTSUPP || result == -ENOSPC || result == -E2BIG ||
           result == -ERANGE;
}

}  // namespace

int64_t PosixEngine::by_path(const OpBlock& b, size_t i, OpKind kind) {
    const FileId file = b.file[i];
    if (file == 0 && b.result[i] == -ENOENT) {
        return not_performed(LeftOut::no_place);  // an empty name, for which no descriptor stands
    }
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
            case OpKind::chown: return refusal_repeated(b, i, sys::call(SYS_fchown, fd, -1, -1));
            case OpKind::statfs: return sys::call(SYS_fstatfs, fd, &fs);
            default: break;
        }
        return attribute(b, i, kind, nullptr, true);
    }
    if (!worker_.plan.keeps_file(file)) {
        return not_performed(LeftOut::filter);
    }
    if (file >= worker_.plan.paths.size() || worker_.plan.paths[file].relative == nullptr) {
        return not_performed(LeftOut::no_place);
    }
    const RootPath& path = worker_.plan.paths[file];
    const FileType type = worker_.plan.log->tables().files[file].type;
    const bool is_link = type == FileType::symlink;
    switch (kind) {
        case OpKind::stat:
        case OpKind::statx: {
            const bool follows = (b.flags[i] & kNoFollow) == 0;
            return is_link && follows ? by_resolved(b, i, kind, path) : by_name(b, i, kind, path);
        }
        case OpKind::getxattr:
        case OpKind::setxattr:
        case OpKind::listxattr:
        case OpKind::removexattr:
            return (b.flags[i] & 1) != 0 ? by_name(b, i, kind, path) : by_resolved(b, i, kind, path);
        case OpKind::chown:
        case OpKind::utimens:  // of what the name is itself, as rsync does
            return (b.flags[i] & kNoFollow) != 0 ? by_name(b, i, kind, path) : by_resolved(b, i, kind, path);
        case OpKind::access:
        case OpKind::chmod:
        case OpKind::statfs:
        case OpKind::truncate: return by_resolved(b, i, kind, path);
        default: return by_name(b, i, kind, path);
    }
}

int64_t PosixEngine::by_name(const OpBlock& b, size_t i, OpKind kind, const RootPath& path) {
    bool temporary = false;
    const int parent = worker_.parent_of(path, &temporary);
    if (parent < 0) {
        return parent;
    }
    const UniqueFd closes(temporary ? parent : -1);
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
        const bool known = worker_.plan.log->tables().files[b.file[i]].type != FileType::unknown;
        const int64_t mask = b.arg[i] | (known ? 0 : STATX_TYPE);
        const int64_t result = sys::call(SYS_statx, parent, name, kNoFollow | sync, mask, &stx);
        const bool follow = result == 0 && S_ISLNK(stx.stx_mode) && (b.flags[i] & kNoFollow) == 0;
        return follow ? by_resolved(b, i, kind, path) : result;
    }
    if (kind == OpKind::utimens) {
        return sys::call(SYS_utimensat, parent, name, nullptr, kNoFollow);
    }
    if (kind == OpKind::chown) {
        return refusal_repeated(b, i, sys::call(SYS_fchownat, parent, name, -1, -1, kNoFollow));
    }
    if (kind == OpKind::readlink) {
        const int64_t result = sys::call(SYS_readlinkat, parent, name, buffer_, read_size(b.size[i]));
        // A link that files were used through is a directory in the root.
        const bool stands = worker_.plan.log->tables().files[b.file[i]].type == FileType::directory;
        return result == -EINVAL && stands && b.result[i] > 0 ? b.result[i] : result;
    }
    if (info(kind).has(Field::handle)) {
        // The magic link leads to the directory; the last component is not followed.
        const std::string in_parent = "/proc/self/fd/" + std::to_string(parent) + "/" + name;
        return attribute(b, i, kind, in_parent.c_str(), false);
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
    const int64_t flags = O_PATH | O_CLOEXEC | (no_follow ? O_NOFOLLOW : 0);
    const auto fd = static_cast<int>(worker_.open_file(path, flags, 0));
    if (fd < 0) {
        return fd;
    }
    const UniqueFd closes(fd);
    if ((kind == OpKind::truncate || info(kind).is(Trait::attributes)) && is_device(fd)) {
        return not_performed(LeftOut::device_node);
    }
    // Through its magic link a descriptor is a path, so that the call is the recorded one, by path.
    char self[40];
    std::snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    struct stat st;
    struct statx stx {};
    struct statfs fs;
    switch (kind) {
        case OpKind::stat: return sys::call(SYS_newfstatat, AT_FDCWD, self, &st, 0);
        case OpKind::statx:
            return sys::call(SYS_statx, AT_FDCWD, self, b.flags[i] & AT_STATX_SYNC_TYPE, b.arg[i], &stx);
        case OpKind::access: return sys::call(SYS_faccessat2, AT_FDCWD, self, b.mode[i] & 7, b.flags[i] & AT_EACCESS);
        case OpKind::truncate: return sys::call(SYS_truncate, self, b.size[i]);
        case OpKind::chmod: return sys::call(SYS_fchmodat, AT_FDCWD, self, b.mode[i] & 01777);
        case OpKind::utimens: return sys::call(SYS_utimensat, AT_FDCWD, self, nullptr, 0);
        case OpKind::chown: return refusal_repeated(b, i, sys::call(SYS_fchownat, AT_FDCWD, self, -1, -1, 0));
        case OpKind::statfs: return sys::call(SYS_statfs, self, &fs);
        default: break;
    }
    return attribute(b, i, kind, self, true);
}

// By descriptor where `path` is null; `follow`: what a link at the end of `path` leads to.
int64_t PosixEngine::attribute(const OpBlock& b, size_t i, OpKind kind, const char* path, bool follow) {
    const std::string name(worker_.plan.log->tables().strings[b.text[i]]);
    const int fd = path == nullptr ? worker_.descriptors.get(b.handle[i]) : -1;
    // The three system calls of a kind differ in their first argument only.
    const auto call = [&](long by_fd, long by_path, long by_link, auto... rest) {
        return path == nullptr ? sys::call(by_fd, fd, rest...) : sys::call(follow ? by_path : by_link, path, rest...);
    };
    if (kind == OpKind::getxattr) {
        return call(SYS_fgetxattr, SYS_getxattr, SYS_lgetxattr, name.c_str(), buffer_, read_size(b.size[i]));
    }
    if (kind == OpKind::listxattr) {
        return call(SYS_flistxattr, SYS_listxattr, SYS_llistxattr, buffer_, read_size(b.size[i]));
    }
    if (!name.starts_with("user.")) {  // others carry privileges
        return not_performed(LeftOut::unsupported);
    }
    if (kind == OpKind::setxattr && value_refused(b.result[i])) {
        return b.result[i];
    }
    if (kind == OpKind::setxattr) {
        return call(SYS_fsetxattr, SYS_setxattr, SYS_lsetxattr, name.c_str(), worker_.pattern.data(),
                    write_size(b.size[i]), 0);
    }
    if (kind == OpKind::removexattr) {
        return call(SYS_fremovexattr, SYS_removexattr, SYS_lremovexattr, name.c_str());
    }
    return not_performed(LeftOut::unsupported);
}

int64_t PosixEngine::look_for_lock(const OpBlock& b, size_t i, OpKind kind) {
    const FileId file = kind == OpKind::link ? b.file2[i] : b.file[i];
    if (!worker_.plan.keeps_file(file)) {
        return not_performed(LeftOut::filter);
    }
    if (file >= worker_.plan.paths.size() || worker_.plan.paths[file].relative == nullptr) {
        return not_performed(LeftOut::no_place);
    }
    const RootPath& path = worker_.plan.paths[file];
    bool temporary = false;
    const int parent = worker_.parent_of(path, &temporary);
    const UniqueFd closes(temporary ? parent : -1);
    if (parent < 0) {
        return parent;
    }
    const int64_t found = sys::call(SYS_faccessat2, parent, path.relative + path.name, F_OK, AT_SYMLINK_NOFOLLOW);
    return found == 0 ? -EEXIST : found;
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
    if (storage_refused(b, i, kind)) {
        return b.result[i];
    }
    const RootPath& from = paths[b.file[i]];
    const RootPath& to = paths[b.file2[i]];
    bool from_temporary = false, to_temporary = false;
    const int from_parent = worker_.parent_of(from, &from_temporary);
    const UniqueFd closes_from(from_temporary ? from_parent : -1);
    const int to_parent = from_parent < 0 ? -1 : worker_.parent_of(to, &to_temporary);
    const UniqueFd closes_to(to_temporary ? to_parent : -1);
    if (from_parent < 0 || to_parent < 0) {
        return from_parent < 0 ? from_parent : to_parent;
    }
    const char* const name = from.relative + from.name;
    const char* const name2 = to.relative + to.name;
    if (kind == OpKind::link) {
        // By its descriptor, which was the file's only name.
        if (const int nameless = worker_.nameless_in(b.file[i]); nameless >= 0 && b.flags[i] != 0) {
            const std::string magic = "/proc/self/fd/" + std::to_string(nameless);
            return sys::call(SYS_linkat, AT_FDCWD, magic.c_str(), to_parent, name2, AT_SYMLINK_FOLLOW);
        }
        return sys::call(SYS_linkat, from_parent, name, to_parent, name2, 0);
    }
    return sys::call(SYS_renameat2, from_parent, name, to_parent, name2,
                     b.flags[i] & (RENAME_NOREPLACE | RENAME_EXCHANGE));
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "replay/prepare/refused_names.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace reprise {

void RefusedNames::add(const Op& op) {
    if (!known(op.file) || !known(op.file2)) {
        return;
    }
    const bool rename = op.kind == OpKind::rename;
    if (rename && op.result == -ENOTDIR && (op.flags & RENAME_EXCHANGE) == 0) {
        no_directory_.push_back({op.begin, op.file, op.file2});
        return;
    }
    const bool new_name = !rename || (op.flags & RENAME_NOREPLACE) != 0;
    // XFS has EEXIST for ENOTEMPTY.
    const bool full = rename && (op.result == -ENOTEMPTY || (op.result == -EEXIST && !new_name));
    const bool over_directory = rename && op.result == -EISDIR;
    if (!full && !over_directory && op.result != -EEXIST) {
        return;
    }
    FileFacts &from = files_[op.file], &to = files_[op.file2];
    from.used = std::min(from.used, op.begin);
    to.used = std::min(to.used, op.begin);
    from.directory |= full;
    to.directory |= full || over_directory;
    to.not_empty |= full;
}

/// ENOTDIR is of a directory over a file, unless a path leads through a file or ends with a slash.
void RefusedNames::finish() {
    std::unordered_set<std::string_view> no_directories;
    for (FileId id = 1; id < files_.size() && !no_directory_.empty(); ++id) {
        if (is_no_directory(id)) {
            no_directories.insert(tables_.path(id));
        }
    }
    for (const RenameFact& rename : no_directory_) {
        FileFacts &from = files_[rename.from], &to = files_[rename.to];
        const bool slash = no_directories.contains(tables_.path(rename.from)) ||
                           tables_.files[rename.to].type == FileType::directory || to.directory;
        if (slash || is_blocked(rename.from, no_directories) || is_blocked(rename.to, no_directories)) {
            continue;
        }
        from.used = std::min(from.used, rename.time);
        to.used = std::min(to.used, rename.time);
        from.directory = true;
    }
}

bool RefusedNames::is_no_directory(FileId id) const {
    const FileType type = tables_.files[id].type;
    return type != FileType::unknown && type != FileType::directory && type != FileType::symlink;
}

bool RefusedNames::is_blocked(FileId id, const std::unordered_set<std::string_view>& no_directories) const {
    std::string_view path = tables_.path(id);
    bool blocked = files_[id].blocked != FileFacts::kNever;  // as another op found
    for (size_t slash = path.rfind('/'); !blocked && slash != path.npos; slash = path.rfind('/')) {
        path = path.substr(0, slash);
        blocked = no_directories.contains(path);
    }
    return blocked;
}

}  // namespace reprise

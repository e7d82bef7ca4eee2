// SPDX-License-Identifier: MIT
// Calls by path: what they name, and what their results tell of files.
#include <unordered_set>

#include "formats/assemble/assembler_impl.h"

namespace reprise {
namespace {

constexpr int64_t kMissing = -2, kExists = -17, kNotDirectory = -20, kInvalid = -22;  // ENOENT, EEXIST, ENOTDIR, EINVAL
constexpr int64_t kNoFollow = 0x100;                                                  // AT_SYMLINK_NOFOLLOW
constexpr int64_t kDirectory = 0200000;                                               // O_DIRECTORY
constexpr int64_t kExchange = 2;                                                      // RENAME_EXCHANGE

}  // namespace

// An empty name that was taken for one, not for a descriptor's or the current directory's file.
bool Assembler::Impl::names_nothing(std::string_view path, const RawCall& raw) {
    return path.empty() && raw.result == kMissing;
}

// The file of a path by what the call's result says of it.
FileState& Assembler::Impl::named(std::string_view path, const RawCall& raw) {
    if (raw.path.empty()) {
        return files.at(path);  // "" is missing everywhere
    }
    // ENOTDIR where a directory was asked for mostly means that the name leads to something else.
    const bool asks_directory =
        raw.kind == OpKind::rmdir || (raw.kind == OpKind::open && (raw.flags & kDirectory) != 0);
    if (raw.result == kMissing || (raw.result == kNotDirectory && !asks_directory)) {
        return files.absent(path);
    }
    const bool no_link = raw.kind == OpKind::readlink && raw.result == kInvalid;  // there, and something else
    if (raw.result >= 0 || raw.result == kExists || no_link) {
        return files.present(path);
    }
    return files.at(path);  // refused: nothing is known
}

void Assembler::Impl::note_attributes(FileState& file, const RawCall& raw, bool no_follow) {
    if (raw.stat_size || raw.stat_mode) {
        files.saw_attributes(file, raw.stat_size, raw.stat_mode, no_follow);
    }
    files.saw_inode(file, raw.device, raw.inode, 0);
}

void Assembler::Impl::by_path(Task& task, const RawCall& raw, Op& op) {
    if (names_nothing(raw.path, raw)) {
        op.fd = -1;
        return add(task, op);
    }
    if (raw.path.empty() && raw.fd >= 0 && raw.kind == OpKind::stat) {
        op.kind = OpKind::fstat;
        RawCall on_fd = raw;
        on_fd.kind = OpKind::fstat;
        return on_descriptor(task, on_fd, op, Evidence::none);
    }
    const std::string path = absolute(*task.process, raw, last_part(raw));
    op.fd = -1;
    const bool done = raw.result >= 0;
    FileState* found = nullptr;
    if (done && (raw.kind == OpKind::mkdir || raw.kind == OpKind::symlink)) {
        found = &files.made(path);
    } else if (done && (raw.kind == OpKind::unlink || raw.kind == OpKind::rmdir)) {
        found = &files.removed(path);
    } else {
        found = &named(path, raw);
    }
    FileState& file = *found;
    op.file = files.id(file);

    // What is in the way of a new directory is mostly one, but may be anything.
    if (raw.kind == OpKind::mkdir && (done || (raw.result == kExists && file.type == FileType::unknown))) {
        file.type = FileType::directory;
    }
    if (raw.kind == OpKind::mkdir && done) {
        op.mode = raw.mode & ~task.process->fs->umask.value_or(0);
        file.mode = static_cast<uint32_t>(op.mode) & 07777;
    }
    if (raw.kind == OpKind::rmdir && done) {
        file.type = FileType::directory;
    }
    if (raw.kind == OpKind::symlink && done) {
        files.saw_link(file, raw.text);
    }
    // Links below /proc lead to what is open, not to a name.
    if (raw.kind == OpKind::readlink && done && !path.starts_with("/proc/")) {
        const bool whole = raw.size <= 0 || raw.result < raw.size;
        files.saw_link(file, whole ? raw.link_target : std::string_view{});
        if (whole) {
            file.target_bytes = static_cast<uint64_t>(raw.result);
        }
    }
    if (raw.kind == OpKind::truncate && done) {
        files.did_truncate(file, raw.size);
    }
    if (done && (raw.kind == OpKind::stat || raw.kind == OpKind::access)) {
        const bool no_follow = raw.kind == OpKind::stat && raw.flags & kNoFollow;
        note_attributes(file, raw, no_follow);
        if (!no_follow) {
            file.followed = true;
        }
    }
    const bool a_link_itself = raw.kind == OpKind::stat && done && file.is_link;
    if (a_link_itself || (raw.result == kExists && (raw.kind == OpKind::mkdir || raw.kind == OpKind::symlink))) {
        ask_for_target(*task.process, path, file);
    }
    add(task, op);
}

void Assembler::Impl::by_path_or_descriptor(Task& task, const RawCall& raw, Op& op) {
    if (raw.path.empty()) {
        return on_descriptor(task, raw, op, Evidence::none);
    }
    const std::string path = absolute(*task.process, raw, last_part(raw));
    op.fd = -1;
    FileState& file = named(path, raw);
    if (raw.result >= 0) {
        const bool no_follow = raw.flags & kNoFollow;
        note_attributes(file, raw, no_follow);
        if (!no_follow) {
            file.followed = true;
        }
        if (raw.kind == OpKind::chmod && file.mode == 0) {
            file.mode = static_cast<uint32_t>(raw.mode) & 07777;
        }
    }
    op.file = files.id(file);
    add(task, op);
}

void Assembler::Impl::by_two_paths(Task& task, const RawCall& raw, Op& op) {
    Process& process = *task.process;
    std::string from;
    if (raw.path.empty() && raw.fd >= 0) {  // linkat with AT_EMPTY_PATH
        const auto instance = raw.seen && raw.seen->key ? find_seen(process, raw.fd, *raw.seen, raw.begin)
                                                        : find(process, raw.fd, raw.fd_path, Evidence::file);
        if (instance && instance->file) {
            from = files.present_path_of(*instance->file);
        }
    } else {
        from = absolute(process, raw, last_part(raw));
    }
    if (from.empty() && !names_nothing(raw.path, raw)) {
        count(Count::links_of_unknown_files);
        return;
    }
    const std::string to = absolute(process, raw.path2, raw.fd2_path, raw.fd2, raw.seen2, LastPart::itself);
    op.fd = -1;
    if (raw.result < 0) {
        op.file = names_nothing(raw.path, raw) ? 0 : files.id(files.at(from));
        op.file2 = names_nothing(raw.path2, raw) ? 0 : files.id(files.at(to));
        return add(task, op);
    }
    if (const auto done = done_renames.find({from, to}); done != done_renames.end() && raw.kind == OpKind::rename) {
        op.file = files.id(*done->second.first);
        op.file2 = files.id(*done->second.second);
        done_renames.erase(done);
        return add(task, op);
    }
    const auto names =
        raw.kind == OpKind::rename ? files.renamed(from, to, raw.flags & kExchange) : files.linked(from, to);
    op.file = files.id(names.from);
    op.file2 = files.id(names.to);
    if (raw.kind == OpKind::rename && &names.from != &names.to && names.from.type != FileType::regular) {
        move_directories(from, to, (raw.flags & kExchange) != 0);
    }
    add(task, op);
}

// Processes stay where they are, whatever the directory is called.
void Assembler::Impl::move_directories(std::string_view from, std::string_view to, bool exchange) {
    std::unordered_set<const FsState*> seen;  // several processes may share one
    for (Process& process : processes) {
        if (!seen.insert(process.fs.get()).second) {
            continue;
        }
        std::string& directory = process.fs->directory;
        const auto takes = [&](std::string_view old_name, std::string_view new_name) {
            if (!is_or_lies_below(directory, old_name)) {
                return false;
            }
            directory = std::string(new_name) + directory.substr(old_name.size());
            return true;
        };
        if (!takes(from, to) && exchange) {
            takes(to, from);
        }
    }
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Calls by path: what they name, and what their results tell of files.
#include <charconv>
#include <unordered_set>

#include "formats/assemble/assembler_impl.h"

namespace reprise {
namespace {

constexpr int64_t kMissing = -2, kExists = -17, kNotDirectory = -20, kInvalid = -22;  // ENOENT, EEXIST, ENOTDIR, EINVAL
constexpr int64_t kNoFollow = 0x100;                                                  // AT_SYMLINK_NOFOLLOW
constexpr int64_t kFollow = 0x400;                                                    // AT_SYMLINK_FOLLOW
constexpr int64_t kDirectory = 0200000;                                               // O_DIRECTORY
constexpr int64_t kExchange = 2;                                                      // RENAME_EXCHANGE

// Takes `name` and the slash behind it off the front of a clean path; false where it is another name.
bool take(std::string_view& rest, std::string_view name) {
    if (!rest.starts_with(name) || (rest.size() > name.size() && rest[name.size()] != '/')) {
        return false;
    }
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    return true;
}

// The same of a number.
std::optional<int32_t> take_number(std::string_view& rest) {
    int32_t number = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    const std::string_view name = rest.substr(0, static_cast<size_t>(end - rest.data()));
    if (error != std::errc{} || number < 0 || !take(rest, name)) {
        return std::nullopt;
    }
    return number;
}

// Whether a path's last part itself leads to an open file, and so names no file of /proc or /dev.
bool may_be_magic(std::string_view path) { return path.starts_with("/proc/") || path.starts_with("/dev/"); }

// Calls that act on a link itself.
bool follows(const RawCall& raw) {
    switch (raw.kind) {
        case OpKind::readlink:
        case OpKind::unlink:
        case OpKind::rmdir:
        case OpKind::mkdir:
        case OpKind::symlink:
        case OpKind::rename: return false;
        case OpKind::link: return (raw.flags & kFollow) != 0;
        default: return (raw.flags & kNoFollow) == 0 || raw.kind == OpKind::open;
    }
}

}  // namespace

// Links of /proc lead to what is open or to a directory, whatever it is called by now; those of /dev lead there.
// `path`: clean. `follow`: also where the link is the whole path.
std::string Assembler::Impl::behind_magic_link(const Process& process, std::string path, bool follow) const {
    if (!may_be_magic(path)) {
        return path;
    }
    std::string_view rest = path;
    rest.remove_prefix(1);
    std::optional<int32_t> fd;
    constexpr std::string_view kStreams[] = {"stdin", "stdout", "stderr"};
    if (take(rest, "dev")) {
        for (int32_t i = 0; i < 3 && !fd; ++i) {
            fd = take(rest, kStreams[i]) ? std::optional(i) : std::nullopt;
        }
        if (!fd && take(rest, "fd")) {
            fd = take_number(rest);
        }
    } else if (take(rest, "proc") &&
               (take(rest, "self") || take(rest, "thread-self") || take(rest, std::to_string(process.pid)))) {
        if (take(rest, "task") && !take_number(rest)) {
            return path;
        }
        if (take(rest, "fd")) {
            fd = take_number(rest);
        } else if (!rest.empty() || follow) {
            if (take(rest, "cwd") && process.fs->directory_known && (!rest.empty() || follow)) {
                return clean_path(process.fs->directory, rest);
            }
            if (take(rest, "root") && (!rest.empty() || follow)) {
                return clean_path("/", rest);
            }
        }
    }
    const auto it = fd && (follow || !rest.empty()) ? process.descriptors->find(*fd) : process.descriptors->end();
    if (it == process.descriptors->end() || !it->second.instance->file) {
        return path;
    }
    return clean_path(files.present_path_of(*it->second.instance->file), rest);
}

// What an open of /dev or /proc, or by a path with "..", led to, where the source says it: `path` else.
std::string Assembler::Impl::opened_name(std::string path, const RawCall& raw) {
    const bool climbs = raw.path.find("..") != raw.path.npos;
    if ((!climbs && !may_be_magic(path)) || raw.result < 0) {
        return path;
    }
    if (!climbs && raw.made && raw.made->kind == HandleKind::file && raw.made->type == FileType::regular) {
        const FileState* const known = files.by_inode(raw.made->device, raw.made->inode, raw.made->generation);
        return known && !known->gone ? files.path_of(*known) : path;
    }
    const Description what = parse_description(raw.fd_path);
    const bool another = !raw.fd_path.empty() && what.kind == HandleKind::file && what.path.starts_with('/') &&
                         !what.deleted && !may_be_magic(what.path);
    return another ? clean_path("/", what.path) : path;
}

// `path` as the process names it from a directory; links before ".." are followed, so far as they are known.
std::string Assembler::Impl::resolved(const Process& process, std::string_view directory, std::string_view path) const {
    return files.resolved(directory, path, [&](const std::string& link) {
        std::string behind = behind_magic_link(process, link, true);
        if (behind != link) {
            return behind;
        }
        return options.link_of ? options.link_of(process.pid, link) : std::string();
    });
}

std::string Assembler::Impl::absolute(Process& process, std::string_view path, std::string_view directory,
                                      int32_t dirfd, const SeenInstance* seen, bool follow) {
    return files.behind_links(behind_magic_link(process, from_start(process, path, directory, dirfd, seen), follow),
                              follow);
}

std::string Assembler::Impl::from_start(Process& process, std::string_view path, std::string_view directory,
                                        int32_t dirfd, const SeenInstance* seen) {
    if (path.starts_with('/')) {
        return resolved(process, "/", path);
    }
    if (!directory.empty()) {
        return resolved(process, directory, path);
    }
    if (dirfd >= 0 && seen && seen->key) {
        const auto instance = find_seen(process, dirfd, *seen, INT64_MAX);
        if (instance->file) {
            return resolved(process, files.present_path_of(*instance->file), path);
        }
    }
    if (dirfd >= 0) {
        const auto it = process.descriptors->find(dirfd);
        if (it != process.descriptors->end() && it->second.instance->file) {
            return resolved(process, files.present_path_of(*it->second.instance->file), path);
        }
        count(Count::directories_unknown);
    }
    if (!process.fs->directory_known && !path.empty()) {
        count(Count::relative_paths_assumed);
    }
    return resolved(process, process.fs->directory, path);
}

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
    const std::string path = absolute(*task.process, raw.path, raw.directory, raw.fd, raw.seen, follows(raw));
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
    add(task, op);
}

void Assembler::Impl::by_path_or_descriptor(Task& task, const RawCall& raw, Op& op) {
    if (raw.path.empty()) {
        return on_descriptor(task, raw, op, Evidence::none);
    }
    const std::string path = absolute(*task.process, raw.path, raw.directory, raw.fd, raw.seen, follows(raw));
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
        from = absolute(process, raw.path, raw.directory, raw.fd, raw.seen, follows(raw));
    }
    if (from.empty() && !names_nothing(raw.path, raw)) {
        count(Count::links_of_unknown_files);
        return;
    }
    const std::string to = absolute(process, raw.path2, raw.fd2_path, raw.fd2, raw.seen2, false);
    op.fd = -1;
    if (raw.result < 0) {
        op.file = names_nothing(raw.path, raw) ? 0 : files.id(files.at(from));
        op.file2 = names_nothing(raw.path2, raw) ? 0 : files.id(files.at(to));
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

// SPDX-License-Identifier: MIT
// Calls by path: what they name, and what their results tell of files.
#include <charconv>

#include "formats/assemble/assembler_impl.h"

namespace reprise {
namespace {

constexpr int64_t kMissing = -2, kExists = -17, kNotDirectory = -20;  // ENOENT, EEXIST, ENOTDIR
constexpr int64_t kNoFollow = 0x100;                                  // AT_SYMLINK_NOFOLLOW
constexpr int64_t kDirectory = 0200000;                               // O_DIRECTORY
constexpr int64_t kExchange = 2;                                      // RENAME_EXCHANGE

}  // namespace

std::string Assembler::Impl::absolute(Process& process, std::string_view path, std::string_view directory,
                                      int32_t dirfd, const SeenInstance* seen) {
    if (path.starts_with('/')) {
        // A magic link leads to what is open, whatever it is called by now.
        constexpr std::string_view kMagic = "/proc/self/fd/";
        if (path.starts_with(kMagic)) {
            int32_t fd = -1;
            const std::string_view digits = path.substr(kMagic.size());
            const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), fd);
            const auto it = process.descriptors->find(fd);
            const std::string_view rest(end, static_cast<size_t>(digits.data() + digits.size() - end));
            if (error == std::errc{} && (rest.empty() || rest.starts_with('/')) && it != process.descriptors->end() &&
                it->second.instance->file) {
                return clean_path(files.path_of(*it->second.instance->file), rest.empty() ? rest : rest.substr(1));
            }
        }
        return clean_path("/", path);
    }
    if (!directory.empty()) {
        return clean_path(directory, path);
    }
    if (dirfd >= 0 && seen && seen->key) {
        const auto instance = find_seen(process, dirfd, *seen, INT64_MAX);
        if (instance->file) {
            return clean_path(files.path_of(*instance->file), path);
        }
    }
    if (dirfd >= 0) {
        const auto it = process.descriptors->find(dirfd);
        if (it != process.descriptors->end() && it->second.instance->file) {
            return clean_path(files.path_of(*it->second.instance->file), path);
        }
        count(Count::directories_unknown);
    }
    if (!process.directory_known && !path.empty()) {
        count(Count::relative_paths_assumed);
    }
    return clean_path(process.directory, path);
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
    if (raw.result >= 0 || raw.result == kExists) {
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
    if (raw.path.empty() && raw.fd >= 0 && raw.kind == OpKind::stat) {
        op.kind = OpKind::fstat;
        RawCall on_fd = raw;
        on_fd.kind = OpKind::fstat;
        return on_descriptor(task, on_fd, op, Evidence::none);
    }
    const std::string path = absolute(*task.process, raw.path, raw.directory, raw.fd, raw.seen);
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

    if (raw.kind == OpKind::mkdir && (done || raw.result == kExists)) {
        file.type = FileType::directory;
    }
    if (raw.kind == OpKind::mkdir && done) {
        file.mode = static_cast<uint32_t>(raw.mode) & 07777;
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
    const std::string path = absolute(*task.process, raw.path, raw.directory, raw.fd, raw.seen);
    op.fd = -1;
    FileState& file = named(path, raw);
    if (raw.result >= 0) {
        const bool no_follow = raw.flags & kNoFollow;
        note_attributes(file, raw, no_follow);
        if (!no_follow) {
            file.followed = true;
        }
        if (raw.kind == OpKind::chmod) {
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
            from = files.path_of(*instance->file);
        }
    } else {
        from = absolute(process, raw.path, raw.directory, raw.fd, raw.seen);
    }
    if (from.empty()) {
        count(Count::links_of_unknown_files);
        return;
    }
    const std::string to = absolute(process, raw.path2, raw.fd2_path, raw.fd2, raw.seen2);
    op.fd = -1;
    if (raw.result < 0) {
        op.file = files.id(files.at(from));
        op.file2 = files.id(files.at(to));
        return add(task, op);
    }
    const auto names =
        raw.kind == OpKind::rename ? files.renamed(from, to, raw.flags & kExchange) : files.linked(from, to);
    op.file = files.id(names.from);
    op.file2 = files.id(names.to);
    add(task, op);
}

}  // namespace reprise

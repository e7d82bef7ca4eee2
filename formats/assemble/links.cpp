// SPDX-License-Identifier: MIT
// Where a path leads: from the directory it starts at, through links of /proc, through those that the job made, and
// through those that were there before.
#include <charconv>

#include "formats/assemble/assembler_impl.h"

namespace reprise {
namespace {

// Flags of *at() calls and of open().
constexpr int64_t kAtNoFollow = 0x100, kAtFollow = 0x400;
constexpr int64_t kOpenCreate = 0100, kOpenExclusive = 0200, kOpenDirectory = 0200000, kOpenNoFollow = 0400000;

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

// Takes "proc", the process and perhaps a thread of it off the front.
bool take_process(std::string_view& rest, int32_t pid) {
    return take(rest, "proc") && (take(rest, "self") || take(rest, "thread-self") || take(rest, std::to_string(pid))) &&
           (!take(rest, "task") || take_number(rest));
}

// The descriptor that a path of /dev or /proc names, with what is behind it in `rest`. `path`: clean.
std::optional<int32_t> named_descriptor(std::string_view path, int32_t pid, std::string_view& rest) {
    rest = path.substr(1);
    constexpr std::string_view kStreams[] = {"stdin", "stdout", "stderr"};
    if (take(rest, "dev")) {
        for (int32_t i = 0; i < 3; ++i) {
            if (take(rest, kStreams[i])) {
                return i;
            }
        }
        return take(rest, "fd") ? take_number(rest) : std::nullopt;
    }
    return take_process(rest, pid) && take(rest, "fd") ? take_number(rest) : std::nullopt;
}

// Calls that act on a link itself.
bool follows(const RawCall& raw) {
    switch (raw.kind) {
        case OpKind::readlink:
        case OpKind::unlink:
        case OpKind::rmdir:
        case OpKind::mkdir:
        case OpKind::symlink:
        case OpKind::rename: return false;
        case OpKind::link: return (raw.flags & kAtFollow) != 0;
        case OpKind::open: {
            const bool makes = (raw.flags & kOpenCreate) != 0 && (raw.flags & kOpenExclusive) != 0;
            return (raw.flags & kOpenNoFollow) == 0 && !makes;
        }
        default: return (raw.flags & kAtNoFollow) == 0;
    }
}

}  // namespace

// What the call does with a link that its path ends in.
Assembler::Impl::LastPart Assembler::Impl::last_part(const RawCall& raw) {
    if (!follows(raw)) {
        return LastPart::itself;
    }
    const bool by_stat = raw.stat_mode && file_type_of_mode(*raw.stat_mode) == FileType::directory;
    const bool by_open = raw.kind == OpKind::open && (raw.flags & kOpenDirectory) != 0;
    const bool directory = (raw.made && raw.made->type == FileType::directory) || by_stat || by_open;
    return directory && raw.result >= 0 ? LastPart::directory : LastPart::followed;
}

// A link that was there before and that the call met without following it: what it holds, where that can be asked for.
void Assembler::Impl::ask_for_target(const Process& process, const std::string& path, FileState& file) {
    if (file.created || file.target || !options.link_of) {
        return;
    }
    if (const auto target = options.link_of(process.pid, path); target && !target->empty()) {
        files.saw_link(file, *target);
    }
}

// Links of /proc lead to what is open or to a directory, whatever it is called by now; those of /dev lead there.
// `path`: clean. `follow`: also where the link is the whole path.
std::string Assembler::Impl::behind_magic_link(const Process& process, std::string path, bool follow) const {
    if (!may_be_magic(path)) {
        return path;
    }
    std::string_view rest;
    const std::optional<int32_t> fd = named_descriptor(path, process.pid, rest);
    if (!fd) {
        rest = std::string_view(path).substr(1);
        if (take_process(rest, process.pid) && (!rest.empty() || follow)) {
            if (take(rest, "cwd") && process.fs->directory_known && (!rest.empty() || follow)) {
                return clean_path(process.fs->directory, rest);
            }
            if (take(rest, "root") && (!rest.empty() || follow)) {
                return clean_path("/", rest);
            }
        }
        return path;
    }
    const auto it = follow || !rest.empty() ? process.descriptors->find(*fd) : process.descriptors->end();
    if (it == process.descriptors->end() || !it->second.instance->file) {
        return path;
    }
    return clean_path(files.present_path_of(*it->second.instance->file), rest);
}

// What an open of /proc/self/fd/3 and the like led to where the file has lost its name, which may be another's by now.
// nullptr: none of these.
FileState* Assembler::Impl::opened_without_name(const Process& process, const RawCall& raw) {
    if (!raw.made || raw.made->inode == 0 || !raw.path.starts_with('/') || !may_be_magic(raw.path)) {
        return nullptr;
    }
    std::string_view rest;
    const std::string path = clean_path("/", raw.path);
    const std::optional<int32_t> fd = named_descriptor(path, process.pid, rest);
    const auto it = fd && rest.empty() ? process.descriptors->find(*fd) : process.descriptors->end();
    if (it == process.descriptors->end() || !it->second.instance->file) {
        return nullptr;
    }
    FileState& file = *it->second.instance->file;
    const bool same =
        file.inode != 0 && !FileTable::is_another(file, raw.made->device, raw.made->inode, raw.made->generation);
    return same ? files.without_name(file) : nullptr;
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
    return files.resolved(directory, path, [&](const std::string& link) -> std::optional<std::string> {
        std::string behind = behind_magic_link(process, link, true);
        if (behind != link) {
            return behind;
        }
        return options.link_of ? options.link_of(process.pid, link) : std::optional<std::string>();
    });
}

// The same for links that stand on the way to `path`. One that the job changed since is found by what was behind it: by
// `inode`, that of the file at `path`; 0: not known.
FileTable::LinkOf Assembler::Impl::links_to(const Process& process, const std::string& path, uint64_t inode) {
    return [this, pid = process.pid, &path, inode](const std::string& link) -> std::optional<std::string> {
        if (!options.link_of) {
            return "";
        }
        std::optional<std::string> target = options.link_of(pid, link);
        if (target || !inode || !options.directory_was || !path.starts_with(link + "/")) {
            return target;
        }
        std::string was = options.directory_was(link, std::string_view(path).substr(link.size() + 1), inode);
        if (was.empty()) {
            return std::nullopt;
        }
        files.saw_directory_link(link, was);
        return was;
    };
}

// Where an open led to a file of the same name in another directory, a link was on the way: that directory is what the
// source says, here and from now on.
std::string Assembler::Impl::behind_told_link(std::string path, const RawCall& raw) {
    if (raw.fd_path.empty() || raw.result < 0 || raw.path.find("..") != raw.path.npos) {
        return path;  // what ".." led to is no link of that name
    }
    const Description what = parse_description(raw.fd_path);
    if (what.deleted || !what.path.starts_with('/') || what.path == path || may_be_magic(path) ||
        may_be_magic(what.path)) {
        return path;
    }
    std::string_view link = path, target = what.path;
    for (;;) {
        const size_t a = link.rfind('/'), b = target.rfind('/');
        if (a == 0 || b == 0 || a == link.npos || b == target.npos || link.substr(a) != target.substr(b)) {
            break;
        }
        link = link.substr(0, a);
        target = target.substr(0, b);
    }
    if (link.size() == path.size() || is_or_lies_below(target, link)) {
        return path;
    }
    files.saw_directory_link(link, target);
    return std::string(what.path);
}

std::string Assembler::Impl::absolute(Process& process, std::string_view path, std::string_view directory,
                                      int32_t dirfd, const SeenInstance* seen, LastPart last, uint64_t inode) {
    const std::string whole =
        behind_magic_link(process, from_start(process, path, directory, dirfd, seen), last != LastPart::itself);
    return files.behind_links(whole, last, links_to(process, whole, inode));
}

std::string Assembler::Impl::absolute(Process& process, const RawCall& raw, LastPart last) {
    const uint64_t inode = raw.result < 0 ? 0 : raw.made ? raw.made->inode : last == LastPart::itself ? 0 : raw.inode;
    return absolute(process, raw.path, raw.directory, raw.fd, raw.seen, last, inode);
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

}  // namespace reprise

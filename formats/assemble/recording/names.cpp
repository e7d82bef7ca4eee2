// SPDX-License-Identifier: MIT
// What absolute and relative paths of a process start from: its root, its current directory, its mount namespace. Paths
// in the log are those that the mount namespace sees, with the directory of a chroot before them.
#include <algorithm>
#include <charconv>

#include "formats/assemble/file_table.h"
#include "formats/assemble/recording/recording_impl.h"
#include "formats/support/path.h"

namespace reprise {
namespace {

// What follows `above` in `path`, with its slash; nothing where it is not below it. Of "/" both are "".
std::optional<std::string> rest_of(const std::string& path, const std::string& above) {
    if (!path.starts_with(above)) {
        return std::nullopt;
    }
    std::string rest = path.substr(above.size());
    if (!rest.empty() && rest.front() != '/') {
        return std::nullopt;
    }
    return rest;
}

constexpr int64_t kRemount = 32, kBind = 4096;  // of mount(2)

std::string without_slash(std::string_view path) { return path == "/" ? std::string() : std::string(path); }

}  // namespace

void RawAssembly::below_root(RawCall& raw) {
    const auto process = processes_.find(static_cast<uint32_t>(raw.pid));
    if (process == processes_.end() || process->second.root.empty()) {
        return;
    }
    // What a symbolic link holds leads from the root of who follows it: mostly from that of who made or read it.
    std::string_view& target = raw.kind == OpKind::symlink ? raw.text : raw.link_target;
    size_t i = 0;
    for (std::string_view* path : {&raw.path, &raw.path2, &target}) {
        std::string& whole = rooted_[i++];
        if (!path->starts_with('/')) {
            continue;
        }
        const bool climbs = !clean_path_within(*path);  // not above the new root
        whole = process->second.root + (climbs ? clean_path("/", *path) : std::string(*path));
        *path = whole;
    }
}

// A symbolic link that was there before the job, as the disk has it now. Of links changed since then, and of what is
// gone, nothing is known; where another mount namespace may hold something else, nothing is asked for.
std::optional<std::string> RawAssembly::link_on_disk(uint32_t pid, const std::string& path) const {
    const auto process = processes_.find(pid);
    const uint64_t mounts = process == processes_.end() ? 0 : process->second.mounts;
    if (!options_.link_on_disk || (mounts != 0 && mounts != options_.mounts)) {
        return "";
    }
    const std::optional<LinkOnDisk> link = options_.link_on_disk(path);
    if (!link) {
        return "";
    }
    if (link->target.empty() || !changed_before(link->changed_unix_ns)) {
        return std::nullopt;
    }
    const bool rooted = link->target.starts_with('/') && process != processes_.end();
    return rooted ? process->second.root + link->target : link->target;
}

bool RawAssembly::changed_before(int64_t unix_ns) const {
    constexpr int64_t kTick = 20'000'000;  // ns, of the clock that dates files
    return unix_ns <= facts_.origin_unix - kTick;
}

// By the last names, as the rest may lead there by links and descriptors.
bool RawAssembly::renames_now(std::string_view from, std::string_view to) const {
    const auto last = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
    RawCallFiller filler;
    return later_ && later_([&](const raw_head& head) {
               if (head.type != RAW_CALL) {
                   return false;
               }
               const auto& call = reinterpret_cast<const raw_call&>(head);
               const Syscall* const row = find_syscall(call.nr);
               RawCall raw;
               return row != nullptr && row->kind == OpKind::rename && call.result == 0 && call.enter <= now_ &&
                      filler.fill(call, *row, static_cast<int64_t>(facts_.origin), raw) &&
                      last(raw.path) == last(from) && last(raw.path2) == last(to);
           });
}

// One that was renamed since may itself have been what is taken for a link.
std::string RawAssembly::directory_was(const std::string& link, std::string_view rest, uint64_t inode) const {
    const auto found = options_.directory_was ? options_.directory_was(link, rest, inode) : std::nullopt;
    return found && changed_before(found->changed_unix_ns) ? found->target : std::string();
}

// A path does not tell which process it is of: where one has mounts of its own, nothing is looked up.
std::optional<FoundAtEnd> RawAssembly::find_at_end(const std::string& path) const {
    const bool elsewhere = std::any_of(processes_.begin(), processes_.end(), [&](const auto& process) {
        return process.second.mounts != 0 && process.second.mounts != options_.mounts;
    });
    return elsewhere ? std::nullopt : options_.find_at_end(path);
}

// The state of a process when its recording began.
void RawAssembly::seed_names(uint32_t pid, const raw_part& part) {
    const std::string_view text = raw_part_text(part);
    if (part.which == 1) {
        assembler_.set_directory(static_cast<int32_t>(pid), text);
    }
    if (part.which == 2 && text.starts_with('/')) {
        processes_[pid].root = without_slash(text);
    }
    if (part.which == 3) {
        uint64_t inode = 0;  // "mnt:[INODE]"
        const size_t digits = std::min(text.find('[') + 1, text.size());
        std::from_chars(text.data() + digits, text.data() + text.size(), inode);
        processes_[pid].mounts = inode;
    }
    if (part.which == 4) {
        int64_t mask = 0;
        if (std::from_chars(text.data(), text.data() + text.size(), mask, 8).ec == std::errc()) {
            assembler_.set_umask(static_cast<int32_t>(pid), mask);
        }
    }
}

// A call that succeeded.
void RawAssembly::changed_names(const raw_call& record, const Syscall& row, const RawCall& raw) {
    const auto pid = raw.pid;
    ProcessState& process = processes_[record.head.pid];
    switch (row.action) {
        case CallAction::chdir:
            if (!raw.path.empty()) {
                assembler_.set_directory(pid, raw.path, raw.tid);
            }
            return;
        case CallAction::fchdir:
            if (const std::string path = assembler_.path_of(pid, raw.fd, raw.seen, raw.tid); !path.empty()) {
                assembler_.set_directory(pid, path, raw.tid);
            }
            return;
        case CallAction::chroot:
            if (!raw.path.empty()) {
                process.root = without_slash(assembler_.resolved(pid, raw.path, raw.tid));
            }
            return;
        case CallAction::mount:
            // A directory that lies at another place, too. Not where a mount only changes its flags or its kind.
            if ((raw.flags & kBind) != 0 && (raw.flags & kRemount) == 0 && !raw.path.empty()) {
                assembler_.bound(pid, raw.path, raw.path2, raw.tid);
            }
            return;
        case CallAction::umount: return assembler_.unbound(pid, raw.path, raw.tid);
        case CallAction::unshare:
            assembler_.unshare(pid, raw.tid, raw.flags);
            if (raw.flags & kNewMounts) {
                process.mounts = ++namespaces_;
            }
            return;
        case CallAction::setns: {
            // Without a type the descriptor's path shows it, usually below /proc.
            const bool typed = raw.flags != 0;
            if (typed ? !(raw.flags & kNewMounts) : !assembler_.path_of(pid, raw.fd, raw.seen).ends_with("/ns/mnt")) {
                return;
            }
            const bool of_namespace = raw.seen && raw.seen->type == FileType::regular;  // and not a pidfd
            process.mounts = of_namespace && raw.seen->inode ? raw.seen->inode : ++namespaces_;
            process.root.clear();
            assembler_.set_directory(pid, "/");
            return;
        }
        case CallAction::pivot_root:
            return pivoted(record.head.pid, assembler_.resolved(pid, raw.path), assembler_.resolved(pid, raw.path2));
        default: return;
    }
}

// For all in the namespace: what was below the new root is now below the old one's place, and what was below the old
// root is where that was put.
void RawAssembly::pivoted(uint32_t pid, const std::string& new_root, const std::string& put_old) {
    const std::string place = processes_[pid].root, from = without_slash(new_root);
    const uint64_t mounts = processes_[pid].mounts;
    const std::string old = place + rest_of(without_slash(put_old), from).value_or("");
    const auto moved = [&](const std::string& path) {
        if (path == place) {
            return std::string(place);  // the kernel moves processes whose root or directory is the old root
        }
        if (const auto rest = rest_of(path, from)) {
            return place + *rest;
        }
        if (const auto rest = rest_of(path, place)) {
            return old + *rest;
        }
        return path;
    };
    for (auto& [id, process] : processes_) {
        if (process.mounts != mounts) {
            continue;
        }
        process.root = moved(process.root);
        const std::string directory = moved(without_slash(assembler_.directory_of(static_cast<int32_t>(id))));
        assembler_.set_directory(static_cast<int32_t>(id), directory.empty() ? "/" : directory);
    }
}

}  // namespace reprise
